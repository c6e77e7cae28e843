package page

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
)

// systems are the hosts of all built-in machines, a rack of 18 trays as one host among them.
func systems(t *testing.T, each func(name string, s *topo.System)) {
	t.Helper()
	load := func(name string, nodes int) error {
		s := scenario.Spec{}
		s.Machine.Nodes, s.Workload.Op = []scenario.Nodes{{Topo: name, Count: nodes}}, "all_reduce"
		site, err := scenario.Load(&s, scenario.Options{Warn: func(error) {}, Files: os.DirFS("/")})
		if err == nil {
			for _, sys := range site.Cluster.Host(0).Systems {
				each(name, sys)
			}
		}
		return err
	}
	for _, m := range builtin.List() {
		if err := load(m.Name, max(1, m.Domain)); err != nil {
			t.Fatal(m.Name, err)
		}
	}
	files, _ := filepath.Glob("../../../../shared/topos/*/*.xml") // where it is
	for _, name := range files {
		abs, _ := filepath.Abs(name)
		_ = load(strings.TrimPrefix(abs, "/"), 1) // some are wrong on purpose
	}
}

// TestNoLineThroughABox: of every built-in machine no line runs through a box that is not its end, boxes do
// not touch, all is within the drawing, and every device but a NIC that is its port has a box.
func TestNoLineThroughABox(t *testing.T) {
	n, largest := 0, 0
	systems(t, func(name string, s *topo.System) {
		n++
		d := LayOut(s)
		largest = max(largest, len(s.Nodes))
		hit := func(p BoxPoint, b Box) bool {
			return math.Abs(p[0]-b.X) < b.W/2-0.2 && math.Abs(p[1]-b.Y) < b.H/2-0.2
		}
		for i := range d.Lines {
			l := &d.Lines[i]
			at := l.Along()
			for k := range at[1:] {
				for f := 0.0; f <= 1; f += 1 / (1 + math.Hypot(at[k+1][0]-at[k][0], at[k+1][1]-at[k][1])) {
					p := BoxPoint{at[k][0] + f*(at[k+1][0]-at[k][0]), at[k][1] + f*(at[k+1][1]-at[k][1])}
					if p[0] < 0 || p[0] > d.Width || p[1] < 0 || p[1] > d.Height {
						t.Fatalf("%s: %s – %s leaves the drawing at %v", name, s.Name(l.A), s.Name(l.B), p)
					}
					for n, boxes := range d.Boxes {
						for _, b := range boxes {
							if hit(p, b) && (topo.NodeID(n) != l.A && topo.NodeID(n) != l.B) {
								t.Fatalf("%s: %s – %s runs through %s at %v", name, s.Name(l.A), s.Name(l.B),
									s.Name(topo.NodeID(n)), p)
							}
						}
					}
				}
			}
		}
		var all []Box
		for n, boxes := range d.Boxes {
			if len(boxes) == 0 && s.Nodes[n].Kind != topo.NIC {
				t.Errorf("%s: %s has no box", name, s.Name(topo.NodeID(n)))
			}
			all = append(all, boxes...)
		}
		for i, a := range all {
			for _, b := range all[:i] {
				if math.Abs(a.X-b.X) < (a.W+b.W)/2 && math.Abs(a.Y-b.Y) < (a.H+b.H)/2 {
					t.Fatalf("%s: boxes %+v and %+v touch", name, a, b)
				}
			}
		}
	})
	t.Logf("%d machines, the largest of %d devices", n, largest)
	if n < 40 || largest < 200 {
		t.Errorf("%d machines, the largest of %d devices", n, largest)
	}
}
