package build

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// A shortened plan is a right plan, with the programs of the whole: groups, threads
// and chunks, and the ops of each iteration fewer by the same number.
func TestShortenedPlansAreRight(t *testing.T) {
	shortened := map[coll.Func]int{}
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Layout(t, draw.Shape{
			PerNode:  rapid.IntRange(1, 4).Draw(t, "perNode"),
			Nodes:    rapid.IntRange(1, 3).Draw(t, "nodes"),
			Channels: rapid.IntRange(1, 3).Draw(t, "channels"),
		})
		r := draw.Request(t, c)
		if r.Algo == coll.Ring || r.Algo == coll.Tree || r.Func.IsP2P() {
			r.Count = rapid.Int64Range(1<<16, 1<<22).Draw(t, "large")
			c.P2PChunkSize = 16 << 10
		}
		p, err := Plan(c, r)
		if err != nil || p.Iterations() < 2 {
			return
		}
		n := p.Iterations()
		k := rapid.Int64Range(1, n-1).Draw(t, "iterations")
		for _, rest := range []bool{true, false} {
			short, err := p.Shorten(k, rest)
			if err != nil {
				t.Fatal(err)
			}
			if short == nil {
				continue
			}
			shortened[r.Func]++
			sameLoop(t, p, short, n-k, rest)
			sameLines(t, p, short)
			if !rest {
				continue
			}
			if short, err = p.Smaller(k); err != nil || short == nil {
				t.Fatalf("no smaller plan: %v", err)
			}
			sameLoop(t, p, short, n-k, rest)
			if err := check.Plan(short); err != nil {
				t.Fatalf("%v %v/%v of %d iterations, %d of them: %v", r.Func, r.Algo, r.Proto, n, k, err)
			}
		}
		if whole, err := p.Shorten(n, true); err != nil || whole == nil || whole.Req.Count != p.Req.Count ||
			whole.Split != p.Split {
			t.Fatalf("of %d iterations all are another plan: %v", n, err)
		}
	})
	if testing.Short() {
		return // of too few draws
	}
	var none []coll.Func // a hundred draws may leave one or two out
	for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast,
		coll.Reduce, coll.AllToAll, coll.SendRecv} {
		if shortened[f] == 0 {
			none = append(none, f)
		}
	}
	if len(none) > 3 {
		t.Errorf("none of %v was shortened: the test shows nothing of them", none)
	}
}

// sameLines compares where in a line of 128 bytes the first ops of a plan's first
// channel begin with those of a part.
func sameLines(t *rapid.T, p, short *plan.Plan) {
	for rank := range int32(p.Comm.NRanks) {
		for i, pr := range short.Programs(rank) {
			if pr.Channel != 0 && !p.Req.Func.IsP2P() {
				continue
			}
			all := p.Programs(rank)
			whole, part := p.Open(&all[i]), short.Open(&pr)
			var a, b plan.Op
			for n := 0; n < p.Comm.NRanks && whole.Next(&a) && part.Next(&b); n++ {
				if (a.Src.Off-b.Src.Off)%128 != 0 || (a.Dst.Off-b.Dst.Off)%128 != 0 {
					t.Fatalf("%v: rank %d, op %d at %d and %d, of the part at %d and %d", p.Req.Func, rank, n,
						a.Src.Off, a.Dst.Off, b.Src.Off, b.Dst.Off)
				}
			}
		}
	}
}

// sameLoop compares the programs of a plan with those of a part that has so many
// iterations fewer.
func sameLoop(t *rapid.T, p, short *plan.Plan, fewer int64, rest bool) {
	for rank := range int32(p.Comm.NRanks) {
		whole, part := p.Programs(rank), short.Programs(rank)
		if len(whole) != len(part) {
			t.Fatalf("rank %d has %d programs, of the part %d", rank, len(whole), len(part))
		}
		for i := range whole {
			a, b := whole[i], part[i]
			ops, left := p.NumOps(&a), short.NumOps(&b)
			copies := a.Role == plan.RoleCopy // one op of any size
			if a.Transfer.Chunk != b.Transfer.Chunk && !copies {
				t.Fatalf("rank %d: chunks of %d, of the part %d", rank, a.Transfer.Chunk, b.Transfer.Chunk)
			}
			a.Transfer, b.Transfer = plan.Transfer{}, plan.Transfer{}
			if a != b {
				t.Fatalf("rank %d: %+v, of the part %+v", rank, a, b)
			}
			if rest && !copies && (ops-left)%fewer != 0 {
				t.Fatalf("rank %d: %d ops, of the part %d: not the same for each of %d iterations", rank, ops,
					left, fewer)
			}
		}
	}
}
