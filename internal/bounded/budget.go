package bounded

import (
	"fmt"
	"io"
)

// DefaultBudget is the default memory for inputs, in bytes.
const DefaultBudget = 1 << 30

// Budget limits the memory of a program while it reads inputs. The memory for an input is not its length: a
// byte may become an object, and a compressed file of kilobytes a gigabyte. Therefore the memory in use is
// measured between pieces of the input. A nil Budget has no limit.
type Budget struct {
	Limit int64 // bytes
	// Held returns the number of bytes in use; with exact it excludes garbage, which takes longer.
	Held func(exact bool) int64
	next int64 // Held in bytes from which it is looked at exactly
}

// OverBudgetError reports that reading an input has taken more memory than there is for it.
type OverBudgetError struct {
	Name  string
	At    int64 // how much of it had been read, in bytes
	Limit int64 // bytes
}

// Error names the input and the position.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("%s: byte %d: what was read so far takes more than %d MiB of memory; give a shorter "+
		"one (fewer steps or ranks), or more memory (SIMCCL_MEMORY=8G; ulimit -v)", e.Name, e.At, e.Limit>>20)
}

// over reports whether more is held than there may be.
func (b *Budget) over() bool {
	if b == nil || b.Held(false) <= max(b.Limit, b.next) {
		return false
	}
	held := b.Held(true)
	b.next = held + b.Limit/8 // else each look were exact where it is nearly used up
	return held > b.Limit
}

// Reader returns a reader of an input that fails with an OverBudgetError once the memory in use exceeds the
// budget; name is the input's name in the error.
func (b *Budget) Reader(r io.Reader, name string) *Metered {
	return &Metered{r: r, name: name, budget: b}
}

// Metered is an input whose memory is looked at between pieces.
type Metered struct {
	r        io.Reader
	name     string
	budget   *Budget
	at, last int64
	over     *OverBudgetError
}

// Why returns the OverBudgetError that ended the input, else err: a parser may have reported a premature end
// of input instead.
func (m *Metered) Why(err error) error {
	if m.over != nil {
		return m.over
	}
	return err
}

// Read reads at most one piece and checks the budget between pieces.
func (m *Metered) Read(p []byte) (int, error) {
	const piece = 256 << 10
	if m.over == nil && m.at-m.last >= piece {
		if m.last = m.at; m.budget.over() {
			m.over = &OverBudgetError{m.name, m.at, m.budget.Limit}
		}
	}
	if m.over != nil {
		return 0, m.over
	}
	n, err := m.r.Read(p[:min(len(p), piece)])
	m.at += int64(n)
	return n, err
}
