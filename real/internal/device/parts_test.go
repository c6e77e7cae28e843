package device

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/cuda/fake"
)

// TestOperationsWithARoot checks every shape of the operations that do not treat
// all ranks alike, element by element, for every root, in and out of place, of
// sizes that end amid a word, a line, a share and a piece of copies. The shapes
// alternate with an all_reduce in one session: a rank that only sends must not
// overtake one that still reads.
func TestOperationsWithARoot(t *testing.T) {
	d, control := driver(t)
	for _, ranks := range []int{2, 3, 4} {
		s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: []int{0, 1, 2, 3}[:ranks], Ranks: ranks, Buffer: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []coll.Func{coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter, coll.SendRecv} {
			for root := range ranks {
				if root > 0 && f == coll.SendRecv || fake.Sanitized() && root != 1 {
					continue
				}
				for _, count := range []int64{1, 1237, 68_003} {
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
