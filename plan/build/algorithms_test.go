package build

import (
	"reflect"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
)

// TestEveryAlgorithmIsInTheTable: an algorithm of coll without a line here
// would panic on its first request.
func TestEveryAlgorithmIsInTheTable(t *testing.T) {
	for _, a := range coll.Algorithms() {
		if algorithms[a] == nil {
			t.Errorf("%v has no line in the table algorithms", a)
		}
	}
}

// TestStreamsAreReused: one cursor goes through all programs of all kinds of
// plans and makes the same ops as a new one for each. Streams of one kind are
// reused, so what a stream keeps of the program before would show.
func TestStreamsAreReused(t *testing.T) {
	var used plan.Cursor
	var op, want plan.Op
	for _, nodes := range []int{1, 2} {
		c := draw.Plain(4, nodes, 2)
		for _, r := range draw.Kernels(nodes) {
			for _, count := range []int64{5, 70001} {
				r.Count, r.Type, r.Channels = count, coll.Float32, 2
				p, err := Plan(c, r)
				if err != nil {
					t.Fatal(err)
				}
				for rank := range int32(c.NRanks) {
					for _, pr := range p.Programs(rank) {
						p.OpenInto(&used, &pr)
						for fresh := p.Open(&pr); fresh.Next(&want); {
							if !used.Next(&op) || !reflect.DeepEqual(op, want) {
								t.Fatalf("%v %v/%v, %d elements, rank %d: %+v, want %+v", r.Func, r.Algo,
									r.Proto, count, rank, op, want)
							}
						}
						if used.Next(&op) {
							t.Fatalf("%v %v/%v: an op too many: %+v", r.Func, r.Algo, r.Proto, op)
						}
						p.OpenInto(&used, &pr)
						used.Next(&op) // left in the middle
					}
				}
			}
		}
	}
}

// TestRolesKeepTheirConns: the simulator finds connections in the first
// three ops of a program only, unless its role varies them.
func TestRolesKeepTheirConns(t *testing.T) {
	for _, s := range [][3]int{{4, 1, 2}, {2, 3, 2}, {1, 5, 1}} {
		c := draw.Plain(s[0], s[1], s[2])
		for _, r := range draw.Kernels(s[1]) {
			r.Count, r.Type, r.Channels = 3_000_000, coll.Float32, s[2]
			p, err := Plan(c, r)
			if err != nil {
				t.Fatal(err)
			}
			for _, pr := range p.Programs(int32(c.NRanks - 1)) {
				if pr.Role.VariesConns() {
					continue
				}
				seen := map[int32]bool{}
				var op plan.Op
				for cur := p.Open(&pr); cur.Next(&op); {
					for _, id := range append(append([]int32{}, op.From...), op.To...) {
						if op.Seq > 2 && !seen[id] {
							t.Fatalf("%v %v, role %v: op %d is the first over connection %d", r.Func, r.Algo,
								pr.Role, op.Seq, id)
						}
						seen[id] = true
					}
				}
			}
		}
	}
}
