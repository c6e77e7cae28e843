package trace

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// LimitError says that a trace is beyond a bound of its reader.
type LimitError struct {
	Line    int    // where, 0: not known
	Problem string // what is too much
	Hint    string // what to do about it
}

// Error prints line, problem and hint.
func (e *LimitError) Error() string {
	s := e.Problem
	if e.Line > 0 {
		s = fmt.Sprintf("%d: %s", e.Line, s)
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// DefaultMemory is how much a reader of traces keeps, by default.
const DefaultMemory units.Bytes = 384 << 20

// Budget counts what a reader of traces keeps in memory of them, by estimate.
// The zero Budget is one of DefaultMemory.
type Budget struct{ max, used int64 }

// NewBudget returns a Budget of that many bytes; 0: of DefaultMemory.
func NewBudget(max units.Bytes) *Budget {
	return &Budget{max: int64(max)}
}

// Keep notes that n bytes more are kept, for what is at a line of a trace, and
// fails where that is too much.
func (b *Budget) Keep(n int64, line int) error {
	if b.max < 1 {
		b.max = int64(DefaultMemory)
	}
	if b.used += n; b.used <= b.max {
		return nil
	}
	return &LimitError{Line: line, Problem: "the trace needs more than " + size(b.max) + " of memory",
		Hint: "allow more with --max-memory, or write a smaller trace (--trace-detail, --trace-ranks)"}
}

// size is a number of bytes for people.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// Free notes that n bytes are not kept any more.
func (b *Budget) Free(n int64) { b.used -= n }
