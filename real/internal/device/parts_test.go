package device

import (
	"context"
	"errors"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/cuda/fake"
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
		s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: []int{0, 1, 2, 3}[:ranks], Ranks: ranks, Buffer: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []coll.Func{coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.SendRecv} {
			for root := range ranks {
				if root > 0 && f == coll.SendRecv || root == 0 && f != coll.SendRecv || fake.Sanitized() && root != 1 {
					continue
				}
				for _, count := range counts {
					op := &Case{Func: f, Type: coll.Float32, Red: coll.Sum, Root: root, Sizes: coll.CountSizes(f, count, ranks), InPlace: root == 1, Blocks: 2}
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
		if shape, _ := by.Shape(); (op.Sizes.Count > 60_000) != (shape == cuda.Copies || shape == cuda.Relay || shape == cuda.Direct) && op.Sizes.Count != 1237 {
			continue // large ones by what large ones take
		}
		o := Options{Iters: 2, Check: 1}
		if op.Root == ranks-1 {
			o.Replays = 1
		}
		m, err := s.Measure(context.Background(), op, by, o)
		if err != nil || m.Wrong != 0 || m.Checked != !(op.InPlace && noInPlace(op.Func)) {
			t.Errorf("%d ranks, %v of %d from %d by %v: %d wrong (%s), checked %t, %v", ranks, op.Func, op.Sizes.Count, op.Root, by, m.Wrong, m.First, m.Checked, err)
		}
		between := &Case{Func: coll.AllReduce, Type: coll.Float32, Red: coll.Sum, Sizes: coll.CountSizes(coll.AllReduce, 100, ranks), Blocks: 1}
		if m, err := s.Measure(context.Background(), between, Free(cuda.OneShot), Options{Iters: 1, Check: 1}); err != nil || m.Wrong != 0 {
			t.Errorf("all_reduce after %v by %v: %d wrong (%s), %v", op.Func, by, m.Wrong, m.First, err)
		}
	}
}

// TestUnequalParts checks an alltoall whose ranks get unequal parts, one of them
// none, by every shape.
func TestUnequalParts(t *testing.T) {
	d, control := driver(t)
	s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: []int{0, 1, 2}, Ranks: 3, Buffer: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, shares := range []Shares{{1, 0, 3}, {1000, 237, 0}, {40_004, 68_001, 20_000}} {
		total := shares[0] + shares[1] + shares[2]
		op := &Case{Func: coll.AllToAll, Type: coll.Float32, Red: coll.Sum, Shares: shares, Blocks: 2,
			Sizes: coll.Sizes{Count: total / 3, SendCount: total, RecvCount: total}}
		for _, by := range s.FreeMethods(op) {
			if shape, _ := by.Shape(); total > 60_000 && shape != cuda.Direct && shape != cuda.Copies {
				continue
			}
			m, err := s.Measure(context.Background(), op, by, Options{Iters: 2, Check: 1})
			if err != nil || m.Wrong != 0 || !m.Checked {
				t.Errorf("%v by %v: %d wrong (%s), checked %t, %v", shares, by, m.Wrong, m.First, m.Checked, err)
			}
		}
		if _, err := s.Measure(context.Background(), op, Planned, Options{Iters: 1}); !errors.Is(err, exec.ErrNotImplemented) {
			t.Errorf("a plan of unequal parts: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}
