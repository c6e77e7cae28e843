package build

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// TestSlicesCoverThePayload: slices are whole 16 elements, never below 1/32 of
// a slice of the FIFO, and together hold every payload that an op can have.
func TestSlicesCoverThePayload(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typ := rapid.SampledFrom(coll.DataTypes()).Draw(t, "type")
		r := plan.Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.Simple, Type: typ, Channels: 1,
			Warps: 17,
			Count: int64(rapid.IntRange(1, 1<<22).Draw(t, "count"))}
		p, err := Plan(draw.Plain(3, 1, 1), r)
		if err != nil {
			t.Fatal(err)
		}
		pr := p.Programs(0)[0]
		for op := range p.Ops() {
			n, size := p.Slices(&pr, op.Bytes)
			if n != 2 || size*2 < op.Bytes || size%(16*typ.Size()) != 0 || size < 32<<10 || size > 1<<20 {
				t.Fatalf("%d bytes: %d slices of %d", op.Bytes, n, size)
			}
		}
	})
}

// TestSlicesOfAChunk gives the numbers of a full and a short chunk at NCCL's
// default buffers.
func TestSlicesOfAChunk(t *testing.T) {
	p := benchPlan(t, coll.AllReduce, coll.Ring, 1<<28, 1)
	pr := p.Programs(0)[0]
	for _, tc := range []struct{ payload, size units.Bytes }{{2 << 20, 1 << 20}, {100 << 10, 50 << 10},
		{40 << 10, 32 << 10}, {4, 32 << 10}, {0, 32 << 10}} {
		if n, size := p.Slices(&pr, tc.payload); n != 2 || size != tc.size {
			t.Errorf("%d bytes: %d slices of %d, want 2 of %d", tc.payload, n, size, tc.size)
		}
	}
	tree := benchPlan(t, coll.AllReduce, coll.Tree, 1<<28, 1)
	pr = tree.Programs(1)[0]
	if n, size := tree.Slices(&pr, 512<<10); n != 1 || size != 512<<10 {
		t.Errorf("a tree's chunk is %d slices of %d", n, size)
	}
}
