package bounded_test

import (
	"errors"
	"io"
	"testing"

	"github.com/simccl/simccl/internal/bounded"
)

// TestBudget: an input is read as long as what it takes is within the budget, and not further, however
// long it is; garbage is not counted.
func TestBudget(t *testing.T) {
	const limit = 64 << 20
	garbage := int64(limit)
	in := &endless{}
	held := func(exact bool) int64 {
		if exact {
			garbage = 0
		}
		return 2*in.n + garbage // a reader that takes two bytes for one
	}
	b := &bounded.Budget{Limit: limit, Held: held}
	_, err := io.Copy(io.Discard, b.Reader(in, "bomb"))
	var over *bounded.OverBudgetError
	if !errors.As(err, &over) || over.Name != "bomb" || over.Limit != limit {
		t.Fatalf("%v", err)
	}
	if over.At < limit/2 || over.At > limit/2+limit/8 || in.n > over.At+1<<20 {
		t.Errorf("refused at byte %d, with %d read", over.At, in.n)
	}
	if _, err := io.Copy(io.Discard, (*bounded.Budget)(nil).Reader(io.LimitReader(in, limit), "")); err !=
		nil {
		t.Errorf("without a budget: %v", err)
	}
}
