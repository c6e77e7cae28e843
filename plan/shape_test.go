package plan

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
)

// step is what a Shape promises to be equal of an op.
type shapeStep struct {
	do               Do
	from, to         int
	bytes            units.Bytes
	step             int32
	recvOff, sendOff units.Bytes
}

func steps(p *Plan, pr *Program) []shapeStep {
	var list []shapeStep
	var op Op
	for c := p.Open(pr); c.Next(&op); {
		list = append(list, shapeStep{op.Do, len(op.From), len(op.To), op.Bytes, op.Step, op.RecvOff, op.SendOff})
	}
	return list
}

// TestEqualShapesDoTheSame: programs of equal shape cannot be told apart by
// what they do.
func TestEqualShapesDoTheSame(t *testing.T) {
	classes, programs := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := randomComm(t, shape{rapid.IntRange(1, 6).Draw(t, "perNode"), rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "channels")})
		p, err := Build(c, randomRequest(t, c))
		if err != nil {
			t.Fatal(err)
		}
		if p.TotalOps() > 50000 {
			t.Skip("long")
		}
		first := map[Shape][]shapeStep{}
		for rank := range int32(c.NRanks) {
			for _, pr := range p.Programs(rank) {
				programs++
				s, got := p.Shape(&pr), steps(p, &pr)
				want, seen := first[s]
				if !seen {
					first[s] = got
					classes++
					continue
				}
				for i := range want {
					if i >= len(got) || got[i] != want[i] {
						t.Fatalf("%v %v/%v: two programs of shape %+v differ at op %d", p.Req.Func, p.Req.Algo, p.Req.Proto, s, i)
					}
				}
			}
		}
	})
	t.Logf("%d programs of %d shapes", programs, classes)
}

// TestRingBlocks: the blocks that the ops are about are those of the closed
// form, and even rings have one shape.
func TestRingBlocks(t *testing.T) {
	for _, count := range []int64{1, 1000, 1 << 20, 5_000_011} {
		c := plain(8, 2, 4)
		p, err := Build(c, Request{Func: coll.AllReduce, Algo: coll.Ring, Proto: coll.LL, Count: count, Type: coll.Float32, Channels: 4, Warps: 16})
		if err != nil {
			t.Fatal(err)
		}
		for _, pr := range p.Programs(3) {
			var op Op
			for cur := p.Open(&pr); cur.Next(&op); {
				turn, block := op.Chunk/16, op.Chunk%16
				size, full, part, turns := p.RingBlocks(pr.Channel, turn)
				want := units.Bytes(0)
				switch {
				case block < full:
					want = size
				case block == full:
					want = part
				}
				if turn >= turns || op.Bytes != want {
					t.Fatalf("count %d: block %d of turn %d has %d bytes, want %d", count, block, turn, op.Bytes, want)
				}
			}
		}
	}
	p := benchPlan(t, coll.AllReduce, coll.Ring, 1<<30, 4)
	shapes := map[Shape]int{}
	for rank := range int32(32) {
		for _, pr := range p.Programs(rank) {
			shapes[p.Shape(&pr)]++
		}
	}
	if len(shapes) != 1 {
		t.Errorf("an even ring of 32 ranks and 16 channels has %d shapes", len(shapes))
	}
	if p.RingPos(0, 5) != 5 || p.RingPos(99, 0) != -1 {
		t.Error("position of rank 5")
	}
}
