package topo_test

import (
	"math"
	"testing"

	gonum "gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/traverse"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/topo"
)

// widest computes, by gonum's spanning tree, the bandwidth of the widest route
// between any two nodes: the bottleneck on a maximum spanning tree.
func widest(s *topo.System) func(a, b topo.NodeID) float64 {
	g := simple.NewWeightedUndirectedGraph(0, 0)
	for i := range s.Nodes {
		g.AddNode(simple.Node(i))
	}
	best := map[[2]int64]float64{}
	for _, l := range s.Links {
		k := [2]int64{int64(min(l.From, l.To)), int64(max(l.From, l.To))}
		best[k] = max(best[k], float64(l.BW))
	}
	for k, bw := range best { //lint:sorted the tree's bottlenecks do not depend on the order
		g.SetWeightedEdge(simple.WeightedEdge{F: simple.Node(k[0]), T: simple.Node(k[1]), W: -bw})
	}
	tree := simple.NewWeightedUndirectedGraph(0, 0)
	path.Kruskal(tree, g)
	return func(a, b topo.NodeID) float64 {
		width := map[int64]float64{int64(a): math.Inf(1)}
		d := traverse.DepthFirst{Traverse: func(e gonum.Edge) bool {
			from, to := e.From().ID(), e.To().ID()
			if _, seen := width[to]; !seen {
				w, _ := tree.Weight(from, to)
				width[to] = min(width[from], -w)
			}
			return true
		}}
		d.Walk(tree, tree.Node(int64(a)), func(n gonum.Node) bool { return n.ID() == int64(b) })
		return width[int64(b)]
	}
}

// TestNoPathIsWiderThanTheWidest holds NCCL's paths against a second, dumb
// computation: none may claim more than the widest route has. Many have less,
// for NCCL prefers fewer hops and does not route through GPUs.
func TestNoPathIsWiderThanTheWidest(t *testing.T) {
	cells, equal := 0, 0
	for _, r := range golden.Own(t) {
		if r.Nodes != 2 || len(r.Env) > 0 {
			continue
		}
		r.Load(t)
		systems, err := topo.Complete(refsys.System(t, &r), accessOf(r.Env), 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		s := systems[0]
		limit := widest(s)
		for _, from := range []topo.NodeKind{topo.GPU, topo.NET} {
			for _, to := range []topo.NodeKind{topo.GPU, topo.NET, topo.CPU} {
				for _, a := range s.Of(from) {
					for _, b := range s.Of(to) {
						p := s.Path(a, b)
						if a == b || len(p.Links) == 0 {
							continue
						}
						cells++
						w := limit(a, b)
						if float64(p.BW) > w*(1+1e-6) {
							t.Errorf("%s: %s to %s claims %v GB/s, the widest route has %v", r.Name,
								s.Name(a), s.Name(b), p.BW, w)
						}
						if math.Abs(float64(p.BW)-w) <= 1e-6*w {
							equal++
						}
					}
				}
			}
		}
	}
	if equal == 0 {
		t.Error("no path is as wide as can be")
	}
	t.Logf("%d paths, %d of them as wide as can be", cells, equal)
}
