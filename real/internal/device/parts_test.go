package device

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec/exectest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/realtest"
)

// TestOperationsWithARoot checks every shape of the operations in which
// ranks have different parts, element by element, for roots other than the first, in and out of place, of
// sizes that end amid a word, a line, a share and a piece of copies. The shapes
// alternate with an all_reduce in one session: a rank that only sends must not
// overtake one that still reads.
func TestOperationsWithARoot(t *testing.T) {
	d, control := driver(t)
	counts := []int64{1237, 68_003}
	if testing.Short() {
		counts = counts[:1]
	}
	for _, ranks := range []int{2, 3} {
		s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: []int{0, 1, 2, 3}[:ranks],
			Ranks: ranks, Buffer: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []coll.Func{coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.SendRecv} {
			for root := range ranks {
				if root > 0 && f == coll.SendRecv || root == 0 && f != coll.SendRecv ||
					realtest.Sanitized() && root != 1 {
					continue
				}
				for _, count := range counts {
					op := &Case{Func: f, Type: coll.Float32, Red: coll.Sum, Root: root,
						Sizes: coll.CountSizes(f, count, ranks), InPlace: root == 1, Blocks: 2}
					everyShape(t, s, op, ranks)
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		empty(t, control)
	}
}

// everyShape measures and checks an operation by each shape that fits.
func everyShape(t *testing.T, s *Session, op *Case, ranks int) {
	t.Helper()
	for _, by := range s.FreeMethods(op) {
		if shape, _ := by.shape(); (op.Sizes.Count > 60_000) != (shape == cuda.Copies ||
			shape == cuda.Relay || shape == cuda.Direct) && op.Sizes.Count != 1237 {
			continue // large ones by what large ones take
		}
		o := Options{Iters: 2, Check: 1}
		if op.Root == ranks-1 {
			o.Replays = 1
		}
		m, err := s.Measure(context.Background(), op, by, o)
		if err != nil || m.Wrong != 0 || m.Checked != !(op.InPlace && noInPlace(op.Func)) {
			t.Errorf("%d ranks, %v of %d from %d by %v: %d wrong (%s), checked %t, %v", ranks, op.Func,
				op.Sizes.Count, op.Root, by, m.Wrong, m.First, m.Checked, err)
		}
		between := &Case{Func: coll.AllReduce, Type: coll.Float32, Red: coll.Sum,
			Sizes: coll.CountSizes(coll.AllReduce, 100, ranks), Blocks: 1}
		if m, err := s.Measure(context.Background(), between, Free(cuda.OneShot),
			Options{Iters: 1, Check: 1}); err != nil || m.Wrong != 0 {
			t.Errorf("all_reduce after %v by %v: %d wrong (%s), %v", op.Func, by, m.Wrong, m.First, err)
		}
	}
}

// TestUnequalParts checks an alltoall of unequal parts, of pairs and ranks with nothing
// among them, by every shape and by its plan, to the last element, in types of every size.
func TestUnequalParts(t *testing.T) {
	d, control := driver(t)
	s, err := Open(context.Background(), Config{Driver: d, Free: true, Plans: true, GPUs: []int{0, 1, 2},
		Ranks: 3, Buffer: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	types := []coll.DataType{coll.Int8, coll.Uint8, coll.Int32, coll.Uint32, coll.Int64, coll.Uint64,
		coll.Float16, coll.Float32, coll.Float64, coll.BFloat16}
	for i, counts := range [][]int64{{1, 0, 3, 1, 0, 3, 1, 0, 3}, {0, 0, 0, 5, 1001, 17, 237, 0, 1},
		{40_004, 68_001, 20_000, 0, 7, 270_003, 1, 0, 100_001}} {
		x, err := coll.NewPairs(3, counts)
		if err != nil {
			t.Fatal(err)
		}
		for _, typ := range types {
			if i == 1 || typ == coll.Float32 {
				unequal(t, s, x, typ, i == 2)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}

// unequal measures and checks an alltoall by each of its methods.
func unequal(t *testing.T, s *Session, x *coll.Pairs, typ coll.DataType, large bool) {
	t.Helper()
	p, err := build.Plan(exectest.Comm(3, 1, 2), plan.Request{Func: coll.AllToAll, Type: typ,
		Count: x.Count(), Pairs: x})
	if err != nil {
		t.Fatal(err)
	}
	op := OpOf(p)
	op.Blocks = 2
	for _, by := range append(s.FreeMethods(op), Planned) {
		if shape, free := by.shape(); free && large && shape != cuda.Direct && shape != cuda.Copies {
			continue
		}
		m, err := s.Measure(context.Background(), op, by, Options{Iters: 2, Check: 1})
		if err != nil || m.Wrong != 0 || !m.Checked {
			t.Errorf("%v of %v by %v: %d wrong (%s), checked %t, %v", x.Spread(), typ, by, m.Wrong, m.First,
				m.Checked, err)
		}
	}
}
