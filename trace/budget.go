package trace

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// LimitError reports a trace that exceeds a limit of its reader.
type LimitError struct {
	Line    int    // line of the trace; 0: not known
	Problem string // the exceeded limit
	Hint    string // remedy
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

// DefaultMemory is the default limit of the memory that a reader of traces uses for them.
const DefaultMemory units.Bytes = 384 << 20

// Budget counts the memory that a reader of traces uses for them, by estimate. The zero Budget has a limit of
// DefaultMemory.
type Budget struct{ max, used int64 }

// NewBudget returns a Budget of max bytes; 0: of DefaultMemory.
func NewBudget(max units.Bytes) *Budget {
	return &Budget{max: int64(max)}
}

// Keep adds n bytes to the memory in use, for data at a line of a trace. Error: *LimitError if the limit is
// exceeded.
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

// size formats a number of bytes for people.
func size(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

// Free subtracts n bytes from the memory in use.
func (b *Budget) Free(n int64) { b.used -= n }
