package wire

import "github.com/simccl/simccl/units"

// Steady is a Model whose runs can be cut short where they repeat: the engine
// compares states, and where one recurs it counts the loads of further periods
// without moving their flows.
type Steady interface {
	Model
	// AppendState appends all that decides what the model does from now on, with
	// times and work relative to now. Models with equal states go on equally. It
	// is called between two instants, after Next.
	AppendState(dst []int64, now units.Time) []int64
	// AppendCounts appends what links have carried up to now.
	AppendCounts(dst []int64, now units.Time) []int64
	// AddCounts adds a difference of two AppendCounts so many times.
	AddCounts(delta []int64, times int64)
}
