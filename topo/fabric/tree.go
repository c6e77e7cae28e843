package fabric

import (
	"fmt"

	"github.com/simccl/simccl/units"
)

// Tree is an in-network reduction tree over a set of ports (SHARP). Data goes up to the root, each switch
// forwards the sum of its inputs, and the result comes down on the same cables. Every wire transfers the data
// once, however many ports are below it.
type Tree struct {
	Root     string  // the switch at its top
	Up, Down []int32 // wires, each once; Down[i] is the other direction of Up[i]
	Levels   int     // switches between a port and the network's top, at most
	Later    units.Time
	Loss     float64 // the largest of a port's route up and down
}

// NoTreeError reports that no switch is reached by all ports that would reduce
// together.
type NoTreeError struct{ Ports int }

func (e *NoTreeError) Error() string {
	return fmt.Sprintf("fabric: no switch is reached by all %d ports of a reduction: a plugin would not "+
		"connect them, and NCCL continues without CollNet (NCCL_COLLNET_ENABLE=0)", e.Ports)
}

// Tree builds the reduction tree for a set of ports, as an aggregation manager does (SHARP: Graham et al.,
// COM-HPC 2016). The root is the switch nearest to all ports, among equals the one that is root of the fewest
// trees so far; among parallel cables each switch takes the least loaded one. Later is the latency of the
// cables up and down the longest route (Wire.Latency), Loss that of the worst route. It returns a
// NoTreeError, or a BindError if a port has no cable.
func (f *Router) Tree(ends []End) (Tree, error) {
	from := make([]int32, len(ends))
	for i, e := range ends {
		if from[i] = f.at(e); from[i] < 0 {
			return Tree{}, &BindError{"port " + e.String() + " has no cable",
				"a net is cabled as a whole (node0/0) where the network reduces"}
		}
	}
	root := f.rootOf(from)
	if root < 0 {
		return Tree{}, &NoTreeError{len(ends)}
	}
	f.roots[root]++
	t := Tree{Root: f.Network.Switches[root-f.first[len(f.first)-1]].Name}
	d := f.distances(root)
	next := map[int32]int32{} // vertex → its wire up
	for _, v := range from {
		t.Levels = max(t.Levels, int(d[v]))
		later, kept := units.Time(0), 1.0
		for v != root {
			w, known := next[v]
			if !known {
				w = f.lightest(v, d)
				next[v] = w
				f.load[w] += 1 / float64(f.Wires[w].BW)
				t.Up, t.Down = append(t.Up, w), append(t.Down, w^1)
			}
			later += f.Wires[w].Latency + f.Wires[w^1].Latency
			kept *= (1 - f.Wires[w].Loss) * (1 - f.Wires[w^1].Loss)
			v = f.Wires[w].To
		}
		t.Later, t.Loss = max(t.Later, later), max(t.Loss, 1-float64(kept))
	}
	return t, nil
}

// rootOf returns the switch with the shortest longest route from a set of vertices, among equals that with
// the smallest sum of routes, then that which is root of the fewest trees; -1 if no switch is reached from
// all.
func (f *Router) rootOf(from []int32) int32 {
	type rank struct{ far, sum, trees int }
	best, root := rank{}, int32(-1)
	for v := f.first[len(f.first)-1]; v < f.inner; v++ {
		d := f.distances(v)
		r := rank{trees: f.roots[v]}
		for _, p := range from {
			if d[p] < 0 {
				r.far = -1
				break
			}
			r.far, r.sum = max(r.far, int(d[p])), r.sum+int(d[p])
		}
		if r.far < 0 {
			continue
		}
		if root < 0 || r.far < best.far || r.far == best.far && (r.sum < best.sum || r.sum == best.sum &&
			r.trees < best.trees) {
			best, root = r, v
		}
	}
	return root
}

// lightest returns the least loaded wire from a vertex towards a root.
func (f *Router) lightest(v int32, d []int32) int32 {
	best := int32(-1)
	for _, w := range f.out[v] {
		if f.Wires[w].down || d[f.Wires[w].To] != d[v]-1 {
			continue
		}
		if best < 0 || f.load[w]+1/float64(f.Wires[w].BW) < f.load[best]+1/float64(f.Wires[best].BW) {
			best = w
		}
	}
	return best
}
