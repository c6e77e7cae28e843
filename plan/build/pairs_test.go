package build

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
)

// TestUnequalAlltoall: of any counts by pair, of ranks that send nothing among them, every
// element comes once where it belongs, as many are received as are sent, and a request that
// contradicts its counts is refused.
func TestUnequalAlltoall(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Plain(rapid.IntRange(1, 4).Draw(t, "perNode"), rapid.IntRange(1, 3).Draw(t, "nodes"), 4)
		x := draw.Pairs(t, c.NRanks, 1<<rapid.IntRange(0, 18).Draw(t, "magnitude"))
		r := plan.Request{Func: coll.AllToAll, Type: coll.DataType(rapid.IntRange(0, 9).Draw(t, "type")),
			Count: x.Count(), Pairs: x}
		p, err := Plan(c, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Plan(p); err != nil {
			t.Fatal(err)
		}
		if _, err := new(check.Proofs).Parts(p); err != nil {
			t.Fatalf("by parts: %v", err)
		}
		sent, received := int64(0), int64(0)
		for rank := range int32(c.NRanks) {
			sent += moved(p, rank, plan.RoleSend)
			received += moved(p, rank, plan.RoleRecv)
		}
		if total := totalOf(x); c.NRanks > 1 && x.Count() > 0 &&
			(sent != received || sent != total*int64(r.Type.Size())) {
			t.Fatalf("%d bytes sent, %d received of other ranks, should be %d elements", sent, received,
				total)
		}
		r.Count++
		if _, err := Plan(c, r); err == nil {
			t.Fatal("a count that is not the mean is planned")
		}
	})
}

// moved is how many bytes the programs of a role move.
func moved(p *plan.Plan, rank int32, role plan.Role) (n int64) {
	for _, pr := range p.Programs(rank) {
		if pr.Role == role {
			n += int64(pr.Transfer.Bytes)
		}
	}
	return n
}

// totalOf sums up what goes from rank to rank, each rank's own part left out.
func totalOf(x *coll.Pairs) (n int64) {
	for src := range int32(x.Ranks()) {
		for dst := range int32(x.Ranks()) {
			if src != dst {
				n += x.At(src, dst)
			}
		}
	}
	return n
}

// TestEqualCountsAreAlltoall: counts that are all the same give the programs of alltoall.
func TestEqualCountsAreAlltoall(t *testing.T) {
	for _, shape := range [][2]int{{4, 1}, {8, 1}, {4, 2}, {3, 2}} {
		c := draw.Plain(shape[0], shape[1], 4)
		for _, count := range []int64{1, 1000, 1 << 20} {
			x, err := coll.NewPairs(c.NRanks, slices.Repeat([]int64{count}, c.NRanks*c.NRanks))
			if err != nil || !x.Equal() {
				t.Fatal(x, err)
			}
			plain := plan.Request{Func: coll.AllToAll, Type: coll.Float32, Count: count}
			pairs := plain
			pairs.Pairs = x
			a, err := Plan(c, plain)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Plan(c, pairs)
			if err != nil {
				t.Fatal(err)
			}
			for rank := range int32(c.NRanks) {
				if !reflect.DeepEqual(a.Programs(rank), b.Programs(rank)) ||
					a.Layout(rank) != b.Layout(rank) {
					t.Fatalf("%v ranks, %d elements: rank %d does something else than in alltoall", shape,
						count, rank)
				}
			}
		}
	}
}
