// Package bench measures an operation over a sweep of sizes, as nccl-tests does, and verifies every result:
// on GPUs (OpenDevices) with NCCL's library or our own kernels, or in host memory (OpenHost) by NCCL's
// schedule over sockets, verbs or shared memory. A Spec says what to measure; a Backend measures it; a Model,
// supplied by the caller, knows NCCL's rules for the machine: plans, predictions and NCCL's other possible
// choices. The result is data.
//
// All processes of a run call everything here in the same order.
package bench

import (
	"cmp"
	"slices"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// Size is one size of a sweep. Exact sizes are shown as requested, others as nccl-tests rounds them.
type Size struct {
	Asked units.Bytes
	Exact bool
}

// counts returns the element counts of the size on the given number of ranks.
func (z Size) counts(f coll.Func, typ coll.DataType, ranks int) coll.Sizes {
	if z.Exact {
		return coll.ExactSizes(f, z.Asked, typ, ranks)
	}
	return coll.TestSizes(f, z.Asked, typ, ranks)
}

// Spec says what to measure, in the words of nccl-tests' options.
type Spec struct {
	Func   coll.Func
	Sizes  []Size
	Bounds coll.Sweep // of the sizes, for the table's head
	Types  []coll.DataType
	Ops    []coll.RedOp
	Shares []float64 // of an alltoall with unequal parts: relative amounts that each rank sends to each
	// Parts are the counts that ranks exchange in an all_to_all_v.
	Parts  pairs.Source
	Name   string // of the operation; empty: nccl-tests' name
	Root   int    // -1: each rank, one after the other
	Cycles int    // number of passes through all sizes
	Seed   uint64 // of the input data

	// InPlace, if not nil, selects the form of both columns of the table: that of a schedule with a single
	// form.
	InPlace *bool

	Options    device.Options
	Skip       int // first iterations that the statistics of single iterations omit
	Unalign    int // elements by which buffers are shifted
	Register   device.Registration
	Memory     bool // report the device memory used
	Timestamps bool
	Parallel   bool // ranks are started in parallel: for the table's head

	Limit   time.Duration // of one measurement
	MinBW   float64       // required bus bandwidth; below 0: none
	Columns []Column
	Compare bool // also measure NCCL's own time if another method runs
}

// wants reports whether what is true for any of the requested columns.
func (s *Spec) wants(what func(*Column) bool) bool {
	for i := range s.Columns {
		if what(&s.Columns[i]) {
			return true
		}
	}
	return false
}

// buffer returns the size of the largest buffer on the given number of ranks.
func (s *Spec) buffer(ranks int) units.Bytes {
	most := units.Bytes(0)
	for _, typ := range s.Types {
		for _, z := range s.Sizes {
			counts := z.counts(s.Func, typ, ranks)
			most = max(most, counts.Bytes(typ))
			if x, _, err := s.pairs(counts, typ, ranks); err == nil && x != nil { // points reports the error
				most = max(most, units.Bytes(x.Buffer())*typ.Size())
			}
		}
	}
	return most
}

// pairs returns the counts of an alltoall by pair (nil if they are equal), and their mean.
func (s *Spec) pairs(z coll.Sizes, typ coll.DataType, ranks int) (*coll.Pairs, int64, error) {
	if len(s.Shares) == 0 {
		x, count, err := s.Parts.Of(ranks, z.Count, typ)
		if err != nil {
			err = team.Refuse("%s: %v", s.name(), err)
		}
		return x, count, err
	}
	if len(s.Shares) != ranks {
		return nil, 0, team.Refuse("--shares has %d numbers for %d ranks: write one for each", len(s.Shares),
			ranks)
	}
	x, err := coll.NewPairs(ranks, slices.Repeat(s.shares(z, typ), ranks))
	return x, z.Count, err
}

// name returns the name of the operation in the table.
func (s *Spec) name() string { return cmp.Or(s.Name, s.Func.TestName()) }

// shares divides a rank's buffer into unequal parts of whole 16-byte packs; the largest part gets the
// remainder.
func (s *Spec) shares(z coll.Sizes, typ coll.DataType) []int64 {
	out := make([]int64, len(s.Shares))
	pack, sum, rest, largest := 16/int64(typ.Size()), 0.0, z.SendCount, 0
	for _, w := range s.Shares {
		sum += w
	}
	for r, w := range s.Shares {
		out[r] = int64(float64(z.SendCount)*(w/sum)) / pack * pack
		rest -= out[r]
		if w > s.Shares[largest] {
			largest = r
		}
	}
	out[largest] += rest
	return out
}

// roots lists the roots as the table shows them; -1: the operation has none.
func (s *Spec) roots(ranks int) ([]int, error) {
	switch {
	case s.Root < -1 || s.Root >= ranks:
		return nil, team.Refuse("-r %d: must be a rank from 0 to %d", s.Root, ranks-1)
	case !s.Func.Rooted():
		return []int{-1}, nil
	case s.Root >= 0:
		return []int{s.Root}, nil
	}
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	return all, nil
}

// point is a row to be measured.
type point struct {
	op    device.Case
	root  int         // as the table shows it
	shown units.Bytes // the size as it is shown
}

// points lists the rows in the order in which nccl-tests prints them.
func (s *Spec) points(ranks int) ([]point, error) {
	roots, err := s.roots(ranks)
	if err != nil {
		return nil, err
	}
	var out []point
	for _, typ := range s.Types {
		for _, red := range s.Ops {
			for _, root := range roots {
				for range s.Cycles {
					for _, z := range s.Sizes {
						p := point{op: device.Case{Func: s.Func, Type: typ, Red: red, Root: max(root, 0),
							Sizes: z.counts(s.Func, typ, ranks)}, root: root}
						x, count, err := s.pairs(p.op.Sizes, typ, ranks)
						if err != nil {
							return nil, err
						}
						if p.op.Pairs = x; count != p.op.Sizes.Count {
							p.op.Sizes = coll.CountSizes(s.Func, count, ranks)
						}
						if p.shown = p.op.Sizes.Bytes(typ); z.Exact && s.Parts.Rows == nil {
							p.shown = z.Asked
						}
						out = append(out, p)
					}
				}
			}
		}
	}
	return out, nil
}

// config returns the head of nccl-tests' output.
func (s *Spec) config(about *About) nccltests.Config {
	o := &s.Options
	return nccltests.Config{Program: s.name() + "_perf", NCCLHeaders: about.Headers,
		NCCLLibrary: about.Library,
		Threads:     about.Threads, GPUs: 1, MinBytes: s.Bounds.Min, MaxBytes: s.Bounds.Max,
		StepFactor: s.Bounds.Factor,
		StepBytes:  s.Bounds.StepBytes, Warmup: o.Warmup, Iters: o.Iters, AggIters: o.Agg, Check: o.Check,
		Graph:    o.Replays,
		Blocking: int(o.Wait), CPUTime: o.CPUTime, Unalign: s.Unalign, ParallelInit: s.Parallel,
		PerIter: o.PerIter, PerIterSkip: s.Skip, Timestamps: s.Timestamps}
}
