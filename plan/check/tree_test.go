package check

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// joined is NCCL's own layout of so many nodes of a machine.
func joined(t testing.TB, machine string, nodes int) *connect.Layout {
	t.Helper()
	spec, err := topoxml.Parse(builtin.Lookup(machine).XML(), machine)
	if err != nil {
		t.Fatal(err)
	}
	host, err := topo.Build(spec, topo.Params{Rules: rules.Default()})
	if err != nil {
		t.Fatal(err)
	}
	var parts []comm.Part
	for n := range nodes {
		parts = append(parts, comm.Part{System: host.Systems[0], First: int32(n * host.NRanks()),
			Host: int32(n)})
	}
	c, err := comm.FromSystems(parts, comm.Params{Rules: rules.Default(), Multicast: comm.MulticastOn})
	if err != nil {
		t.Fatal(err)
	}
	return c.Layout
}

// treeRequests are all_reduces along trees.
func treeRequests() (out []plan.Request) {
	for _, proto := range []coll.Protocol{coll.LL, coll.LL128, coll.Simple} {
		out = append(out, plan.Request{Func: coll.AllReduce, Algo: coll.Tree, Proto: proto, Warps: 16,
			Channels: 2})
	}
	return append(out, plan.Request{Func: coll.AllReduce, Algo: coll.NVLSTree, Proto: coll.Simple, Warps: 20,
		Channels: 2})
}

// A right plan along trees is proved by a node of each shape, of few nodes as the whole proves it.
func TestRightTreesAreProvedByShapes(t *testing.T) {
	proved := map[coll.Algorithm]int{}
	for _, machine := range []string{"hgx-h100-4", "dgx-a100", "dgx-h100", "gb200-nvl72-2tray"} {
		for _, nodes := range []int{2, 3, 4, 7, 12} {
			c := joined(t, machine, nodes)
			for _, r := range treeRequests() {
				for i := range 4 {
					r.Type, r.InPlace, r.Op = coll.Float32, i%2 == 1, [...]coll.RedOp{coll.Sum, coll.Avg}[i/2]
					r.Count = [...]int64{1, 4099, 1 << 20, 5_000_001}[i]
					p, err := build.Plan(c, r)
					if err != nil {
						continue // no NVLS
					}
					proved[r.Algo]++
					if ok, err := ofTree(p); !ok || err != nil {
						t.Errorf("%s x %d: %v/%v of %d: %t, %v", machine, nodes, r.Algo, r.Proto, r.Count, ok,
							err)
					}
				}
			}
		}
	}
	if proved[coll.Tree] == 0 || proved[coll.NVLSTree] == 0 {
		t.Errorf("proved: %v", proved)
	}
}

// Random trees over ranks are right plans, too: those whose nodes form trees are proved.
func TestRandomTreesAreProvedByShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Layout(t, draw.Shape{PerNode: rapid.IntRange(1, 3).Draw(t, "perNode"),
			Nodes: rapid.IntRange(2, 6).Draw(t, "nodes"), Channels: 2})
		r := draw.Request(t, c)
		r.Func, r.Algo = coll.AllReduce, coll.Tree
		p, err := build.Plan(c, r)
		if err != nil || r.Count == 0 {
			return
		}
		if ok, err := ofTree(p); ok && err != nil {
			t.Fatalf("%v of %d on %d nodes: %v", r.Proto, r.Count, c.NNodes, err)
		}
	})
}

// changedOp is a plan with one op changed, or left out, of one program.
type changedOp struct {
	altered
	at     plan.Program
	seq    int32
	change func(op *plan.Op) (left bool)
}

type changedOps struct {
	plan.Stream
	of changedOp
}

func (c changedOp) Open(pr *plan.Program, _ plan.Stream) plan.Stream {
	ops := c.Plan.Open(pr)
	if pr.Rank != c.at.Rank || pr.Channel != c.at.Channel || pr.Group != c.at.Group {
		return ops
	}
	return changedOps{ops, c}
}

func (s changedOps) Next(op *plan.Op) bool {
	return s.Stream.Next(op) && (op.Seq != s.of.seq || !s.of.change(op) || s.Stream.Next(op))
}

// Of every node that represents others, whatever is wrong with an op is seen.
func TestTreesShowEveryFault(t *testing.T) {
	faults := map[string]func(op *plan.Op) (left bool){
		"size":    func(op *plan.Op) bool { op.Bytes -= 4; return false },
		"step":    func(op *plan.Op) bool { op.Step++; return false },
		"deed":    func(op *plan.Op) bool { op.Do ^= plan.Copy; return false },
		"missing": func(*plan.Op) bool { return true },
		"source":  func(op *plan.Op) bool { op.Src.Off += 4; return false },
		"target":  func(op *plan.Op) bool { op.Dst.Off += 4; return false },
		"from": func(op *plan.Op) bool {
			op.From = append([]int32(nil), op.From...)
			op.From[0]++
			return false
		},
		"to": func(op *plan.Op) bool { op.To = append([]int32(nil), op.To[1:]...); return false },
	}
	c := joined(t, "dgx-h100", 4)
	tried := 0
	for _, r := range treeRequests() {
		r.Count, r.Type = 60000, coll.Float32
		p, err := build.Plan(c, r)
		if err != nil {
			t.Fatal(err)
		}
		ch := int32(p.Split.ChannelLo)
		for _, node := range nodesOf(p, ch).reps {
			for _, rank := range c.NodeRanks[node] {
				for _, pr := range p.Programs(rank) {
					if pr.Channel != ch {
						continue
					}
					tried += showsFaults(t, p, pr, faults)
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("%d faults were tried", tried)
	}
}

// showsFaults changes some ops of a program.
func showsFaults(t *testing.T, p *plan.Plan, pr plan.Program,
	faults map[string]func(*plan.Op) bool) (tried int) {
	n := int32(p.NumOps(&pr))
	for seq := range n {
		if seq > 1 && seq != n/2 && seq != n-1 {
			continue
		}
		var op plan.Op
		for cur := p.Open(&pr); cur.Next(&op) && op.Seq < seq; {
		}
		for name, change := range faults {
			switch {
			case name == "source" && op.Src.Buf == plan.NoBuffer, name == "target" &&
				op.Dst.Buf == plan.NoBuffer,
				name == "from" && len(op.From) == 0, name == "to" && len(op.To) == 0:
				continue
			}
			q, err := plan.New(p.Comm, p.Req, p.Split, changedOp{altered{p,
				func(l []plan.Program) []plan.Program { return l }}, pr, seq, change})
			if err != nil {
				t.Fatal(err)
			}
			tried++
			if ok, err := ofTree(q); !ok || err == nil {
				t.Errorf("%v/%v, rank %d group %d op %d of %d: another %s is not seen", p.Req.Algo,
					p.Req.Proto,
					pr.Rank, pr.Group, seq, n, name)
			} else if why := fmt.Sprint(err); why == "" {
				t.Error("no reason")
			}
		}
	}
	return tried
}
