package fabric

import (
	"fmt"
	"sort"

	"github.com/simccl/simccl/units"
)

// Wire is one direction of a cable.
type Wire struct {
	Name     string
	From, To int32 // vertices: nets first, then switches, then single ports of fused nets
	BW       units.GBps
	Latency  units.Time
	Loss     float64 // share of packets that are lost on it
	Cable    int     // index in Network.Cables
	down     bool
}

// Fabric is a Network bound to the ports of a Cluster. Once Degrade has done
// what it has to, it is immutable; each simulation routes by a Router of its
// own.
type Fabric struct {
	Network *Network
	Wires   []Wire

	first []int32       // host → its first net's vertex; one more at the end
	inner int32         // the first vertex behind the switches
	ports map[End]int32 // vertices of single ports
	out   [][]int32     // vertex → wires that leave it
	seed  uint64
}

// Seeded returns the Fabric with routes hashed from another seed.
func (f *Fabric) Seeded(seed uint64) *Fabric {
	g := *f
	g.seed = seed
	return &g
}

// Routed returns the Fabric with another Routing of its network: Adaptive, Static or ECMP.
func (f *Fabric) Routed(how Routing) *Fabric {
	n, g := *f.Network, *f
	n.Routing = how
	g.Network = &n
	return &g
}

// Router computes routes through a Fabric. With adaptive routing a route depends on the routes returned
// before it.
type Router struct {
	*Fabric
	dist  map[int32][]int32 // port, or the switch that it hangs on → wires to it from every vertex
	load  []float64         // adaptive: queue pairs on each wire over its speed
	in    [][]int32         // vertex → wires that enter it and are not down
	equal []int32
	roots map[int32]int // switch → trees that it is root of
}

// Router returns a Router without load on its wires.
func (f *Fabric) Router() *Router {
	r := &Router{Fabric: f, dist: map[int32][]int32{}, load: make([]float64, len(f.Wires)),
		in: make([][]int32, len(f.out)), roots: map[int32]int{}}
	for i := range f.Wires {
		if w := &f.Wires[i]; !w.down {
			r.in[w.To] = append(r.in[w.To], int32(i))
		}
	}
	return r
}

// BindError is a Network that does not fit a Cluster.
type BindError struct{ Problem, Hint string }

func (e *BindError) Error() string {
	if e.Hint == "" {
		return "fabric: " + e.Problem
	}
	return "fabric: " + e.Problem + "; " + e.Hint
}

// Bind joins a network to hosts: nets lists how many ports each has. Every port
// must be cabled, and no cable may end at a port that does not exist.
func (n *Network) Bind(nets []int, seed uint64) (*Fabric, error) {
	f := &Fabric{Network: n, seed: seed, first: []int32{0}, ports: map[End]int32{}}
	for _, k := range nets {
		f.first = append(f.first, f.first[len(f.first)-1]+int32(k))
	}
	vertex := make(map[string]int32, len(n.Switches))
	for i := range n.Switches {
		vertex[n.Switches[i].Name] = f.first[len(f.first)-1] + int32(i)
	}
	f.inner = f.first[len(f.first)-1] + int32(len(n.Switches))
	f.out = make([][]int32, f.inner)
	for i := range n.Cables {
		c := &n.Cables[i]
		var ends [2]int32
		for k, end := range []string{c.A, c.B} {
			port, isPort := ParseEnd(end)
			switch v, known := vertex[end]; {
			case isPort:
				ends[k] = f.vertex(port, nets)
			case known:
				ends[k] = v
			default:
				return nil, &BindError{fmt.Sprintf("no switch %q", end), "declare it under switches"}
			}
		}
		if ends[0] < 0 || ends[1] < 0 {
			continue
		}
		for k := range max(1, c.Count) {
			f.addWire(i, c, c.A, c.B, ends[0], ends[1], k)
			f.addWire(i, c, c.B, c.A, ends[1], ends[0], k)
		}
	}
	for h, k := range nets {
		for net := range k {
			_, single := f.ports[End{h, net, 1}]
			if whole := len(f.out[f.first[h]+int32(net)]) > 0; whole == single {
				return nil, cabling(End{Host: h, Net: net}, single)
			}
		}
	}
	return f, nil
}

// cabling returns the error of a net with no cable, or with cables both of the whole net and of its ports.
func cabling(e End, both bool) error {
	if both {
		return &BindError{fmt.Sprintf("net %v is cabled as a whole and port by port", e),
			"write one of the two"}
	}
	return &BindError{"port " + e.String() + " has no cable",
		"the network is for fewer hosts or nets than the run has"}
}

// vertex returns the vertex of a host's port, -1 for hosts and nets that the job does not use.
func (f *Fabric) vertex(e End, nets []int) int32 {
	switch {
	case e.Host >= len(nets) || e.Net >= nets[e.Host]:
		return -1
	case e.Port == 0:
		return f.first[e.Host] + int32(e.Net)
	}
	v, ok := f.ports[e]
	if !ok {
		v = int32(len(f.out))
		f.out = append(f.out, nil)
		f.ports[e] = v
	}
	return v
}

// addWire adds one direction of a cable; its other follows it, so that they
// differ in the last bit of their numbers.
func (f *Fabric) addWire(cable int, c *Cable, a, b string, from, to int32, k int) {
	name := a + "→" + b
	if c.Count > 1 {
		name += fmt.Sprintf("#%d", k)
	}
	f.out[from] = append(f.out[from], int32(len(f.Wires)))
	f.Wires = append(f.Wires, Wire{Name: name, From: from, To: to, BW: units.GBps(c.Gbit / 8),
		Latency: units.FromMicros(c.Latency), Cable: cable})
}

// Down reports whether the wire is failed: no route uses it.
func (w *Wire) Down() bool { return w.down }

// EndOf returns the port of a vertex; ok is false for a switch.
func (f *Fabric) EndOf(v int32) (e End, ok bool) {
	if v >= f.inner {
		for port, at := range f.ports { //lint:sorted the one at v
			if at == v {
				return port, true
			}
		}
	}
	hosts := len(f.first) - 1
	if v >= f.first[hosts] {
		return e, false
	}
	h := sort.Search(hosts, func(h int) bool { return f.first[h+1] > v })
	return End{Host: h, Net: int(v - f.first[h])}, true
}

// NameOf returns the name of a vertex in the network's file.
func (f *Fabric) NameOf(v int32) string {
	if e, ok := f.EndOf(v); ok {
		return e.String()
	}
	return f.Network.Switches[v-f.first[len(f.first)-1]].Name
}

// Lose makes the cables between two ends lose a share (0 to 1) of their packets. It returns the number of
// wires changed, two per cable.
func (f *Fabric) Lose(a, b string, share float64) int {
	return f.between(a, b, func(w *Wire) { w.Loss = 1 - float64((1-w.Loss)*(1-share)) })
}

// between calls do for both wires of each cable between two ends and returns the number of wires.
func (f *Fabric) between(a, b string, do func(*Wire)) int {
	touched := 0
	for i := range f.Wires {
		w := &f.Wires[i]
		if c := &f.Network.Cables[w.Cable]; c.A == a && c.B == b || c.A == b && c.B == a {
			do(w)
			touched++
		}
	}
	return touched
}

// Degrade divides the bandwidth of the cables between two ends by a factor, or fails them if it is 0, and
// adds `more` to their latency. It returns the number of wires changed.
func (f *Fabric) Degrade(a, b string, factor float64, more units.Time) int {
	return f.between(a, b, func(w *Wire) {
		if factor == 0 {
			w.down = true
		} else {
			w.BW = units.GBps(float64(w.BW) / factor)
		}
		w.Latency += more
	})
}

// distances counts the wires from every vertex to a port.
func (f *Router) distances(to int32) []int32 {
	if d, ok := f.dist[to]; ok {
		return d
	}
	d := make([]int32, len(f.out))
	for i := range d {
		d[i] = -1
	}
	d[to] = 0
	nets := f.first[len(f.first)-1]
	for queue := []int32{to}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if (v < nets || v >= f.inner) && v != to {
			continue // hosts forward nothing
		}
		for _, w := range f.in[v] {
			if u := f.Wires[w].From; d[u] < 0 {
				d[u] = d[v] + 1
				queue = append(queue, u)
			}
		}
	}
	f.dist[to] = d
	return d
}

// mix hashes 64 bits to 64 bits (splitmix64 with its increment).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// NoRouteError reports that there is no route between two ports.
type NoRouteError struct{ From, To string }

func (e *NoRouteError) Error() string {
	return "fabric: no route from " + e.From + " to " + e.To +
		": messages go from one to the other, and no cables that are up join them"
}

// at returns the vertex of an end: the port's, or its net's if the net is cabled as a whole; -1 if neither
// has a cable.
func (f *Fabric) at(e End) int32 {
	net := f.first[e.Host] + int32(e.Net)
	if v, ok := f.ports[e]; ok {
		return v
	}
	if len(f.out[net]) == 0 {
		return -1
	}
	return net
}

// Route appends the wires from src to end for a queue pair. flow identifies the queue pair besides the two
// ports: the UDP source port, which RoCE derives from the queue pairs' numbers and ECMP hashes.
func (f *Router) Route(dst []int32, src, end End, flow uint64) ([]int32, error) {
	from, to := f.at(src), f.at(end)
	for _, e := range []End{src, end} {
		if f.at(e) < 0 {
			return dst, &BindError{"port " + e.String() + " has no cable",
				"node0/0 is a net, node0/0.1 the first port of a fused one, as simccl topo show has them"}
		}
	}
	if from == to {
		return dst, nil
	}
	last, behind := f.access(to)
	d := f.distances(behind)
	if d[from] < 0 {
		return dst, &NoRouteError{src.String(), end.String()}
	}
	tuple := mix(mix(uint64(from)<<32|uint64(uint32(to))) ^ mix(flow))
	for v := from; v != to; {
		w := last
		if v != behind {
			w = f.choose(v, to, d, tuple)
		}
		f.load[w] += 1 / float64(f.Wires[w].BW)
		dst = append(dst, w)
		v = f.Wires[w].To
	}
	return dst, nil
}

// Ways calls each, hop by hop, with the wires that a route from one end to another may use at that hop. It
// does nothing for an end without a cable.
func (f *Router) Ways(src, end End, each func(wires []int32)) error {
	from, to := f.at(src), f.at(end)
	if from < 0 || to < 0 || from == to {
		return nil
	}
	last, behind := f.access(to)
	d := f.distances(behind)
	if d[from] < 0 {
		return &NoRouteError{src.String(), end.String()}
	}
	seen := map[int32]bool{from: true}
	for at := []int32{from}; len(at) > 0; { // all that are equally far from the end
		var wires, next []int32
		for _, v := range at {
			if v == behind {
				if last >= 0 {
					wires = append(wires, last)
				}
				continue
			}
			for _, w := range f.out[v] {
				u := f.Wires[w].To
				if f.Wires[w].down || d[u] != d[v]-1 {
					continue
				}
				if wires = append(wires, w); !seen[u] {
					seen[u] = true
					next = append(next, u)
				}
			}
		}
		if len(wires) > 0 {
			each(wires)
		}
		at = next
	}
	return nil
}

// access returns the wire that leads to a port and the switch that it comes from, whose ports share one table
// of distances; the port itself if there is no such wire.
func (f *Router) access(to int32) (wire, behind int32) {
	if in := f.in[to]; len(in) == 1 {
		if from := f.Wires[in[0]].From; from >= f.first[len(f.first)-1] && from < f.inner {
			return in[0], from
		}
	}
	return -1, to
}

// choose picks the next wire among those on a shortest route.
func (f *Router) choose(v, to int32, d []int32, tuple uint64) int32 {
	equal := f.equal[:0]
	for _, w := range f.out[v] {
		if !f.Wires[w].down && d[f.Wires[w].To] == d[v]-1 {
			equal = append(equal, w)
		}
	}
	f.equal = equal
	switch f.Network.Routing {
	case Static:
		return equal[int(to)%len(equal)]
	case Adaptive:
		best := equal[0]
		for _, w := range equal[1:] {
			if f.load[w]+1/float64(f.Wires[w].BW) < f.load[best]+1/float64(f.Wires[best].BW) {
				best = w
			}
		}
		return best
	}
	return equal[mix(tuple^mix(f.seed^uint64(v)))%uint64(len(equal))]
}
