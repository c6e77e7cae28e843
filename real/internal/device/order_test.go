package device

import (
	"context"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/cuda"
)

// TestShapesInAnyOrder runs push, direct and relay behind each other in one session: the counts of pieces
// that one leaves in the arenas are those that the next begins with.
func TestShapesInAnyOrder(t *testing.T) {
	d, control := driver(t)
	const ranks = 3
	s, err := Open(context.Background(), Config{Driver: d, Free: true, GPUs: []int{0, 1, 2}, Ranks: ranks,
		Buffer: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	type step struct {
		op *Case
		by Method
	}
	var steps []step
	for _, f := range []coll.Func{coll.AllReduce, coll.Broadcast} {
		op := &Case{Func: f, Type: coll.Float32, Red: coll.Sum, Sizes: coll.CountSizes(f, 68_003, ranks),
			Blocks: 2}
		for _, by := range s.FreeMethods(op) {
			if shape, _ := by.shape(); shape == cuda.Push || shape == cuda.Relay || shape == cuda.Direct {
				steps = append(steps, step{op, by})
			}
		}
	}
	for _, a := range steps {
		for _, b := range steps {
			for _, x := range []step{a, b} {
				m, err := s.Measure(context.Background(), x.op, x.by, Options{Iters: 2, Check: 1})
				if err != nil || m.Wrong != 0 {
					t.Fatalf("%v by %v behind %v by %v: %d wrong (%s), %v", x.op.Func, x.by, a.op.Func, a.by,
						m.Wrong, m.First, err)
				}
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	empty(t, control)
}
