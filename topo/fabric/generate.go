package fabric

import (
	"cmp"
	"fmt"
	"math"

	"github.com/simccl/simccl/topo"
)

// Layout is the specification of a network to generate.
type Layout struct {
	Kind    string // leaf-spine, rail, fat-tree or planes
	Hosts   int
	Nets    int     // nets of a host
	Ports   int     // of a net that NCCL fuses of several; 0 for 1
	Gbit    float64 // of a port
	PerLeaf int     // hosts of a leaf (leaf-spine), or of a group of rails (rail, planes); 0 for all
	Spines  int     // spines (of each plane), 0 for as many as leaves have hosts' ports over Oversub
	Planes  int     // for planes: port i of a host is in plane i mod Planes
	// Oversub is the oversubscription of a leaf: bandwidth to hosts divided by bandwidth of its uplinks. 1 is
	// non-blocking, 2 is 2:1.
	Oversub float64
	Latency float64 // us of a cable between switches, its switch included
	Radix   int     // ports of every switch, 0 for as many as needed
	Routing Routing
	Rails   bool // the file says of each net which rail and plane it is in
}

// maxParts bounds the ports and cables of a Layout: more than any machine has.
const maxParts = 1 << 22

// LayoutError reports a Layout that cannot be built.
type LayoutError struct{ Problem string }

func (e *LayoutError) Error() string { return "network: " + e.Problem }

// Kinds lists the kinds of networks that Generate builds and a description of each.
func Kinds() [][2]string {
	return [][2]string{
		{"leaf-spine", "all ports of a host go to one leaf; leaves meet in spines"},
		{"rail", "port i of every host of a group goes to leaf i of the group; leaves meet in spines"},
		{"fat-tree", "pods of rail leaves and aggregation switches; pods meet in cores"},
		{"planes", "separate leaf-spine networks, ports assigned round-robin"},
	}
}

// Generate builds the switches and cables of a Layout. It returns a LayoutError if there is no such network.
func Generate(p Layout) (*Network, error) {
	p.Oversub = cmp.Or(p.Oversub, 1)
	p.PerLeaf = cmp.Or(p.PerLeaf, p.Hosts)
	p.Ports = cmp.Or(p.Ports, 1)
	p.Routing = cmp.Or(p.Routing, ECMP)
	if err := p.check(); err != nil {
		return nil, err
	}
	all := p.Nets * p.Ports
	g := &generator{p: p, n: &Network{Name: p.Kind, Routing: p.Routing}}
	switch p.Kind {
	case "leaf-spine":
		g.plane("", func(host, _ int) int { return host / p.PerLeaf }, func(int) bool { return true })
	case "rail":
		g.plane("", func(host, port int) int { return host/p.PerLeaf*all + port }, func(int) bool {
			return true
		})
	case "planes":
		if p.Planes < 2 || p.Planes > all {
			return nil,
				&LayoutError{fmt.Sprintf("%d planes for %d ports a host: from 2 to the number of ports",
					p.Planes, p.Nets)}
		}
		for k := range p.Planes {
			g.plane(fmt.Sprintf("plane%d-", k), func(host, _ int) int { return host / p.PerLeaf },
				func(port int) bool { return port%p.Planes == k })
		}
	case "fat-tree":
		g.fatTree()
	default:
		return nil, &LayoutError{fmt.Sprintf("kind %q; known are leaf-spine, rail, fat-tree, planes", p.Kind)}
	}
	if g.err != nil {
		return nil, g.err
	}
	if p.Rails {
		g.n.Nets = p.rails()
	}
	return g.n, nil
}

// rails returns the rail and the plane of each net. In leaf-spine all nets have rail 0; with leaves per rail
// each net has its own; with planes the nets of a rail are distributed over the planes. A net whose ports are
// in several planes has none.
func (p *Layout) rails() []topo.NetRail {
	var out []topo.NetRail
	for net := range p.Nets {
		n := topo.NetRail{Net: net, Rail: net, Plane: -1}
		switch {
		case p.Kind == "leaf-spine":
			n.Rail = 0
		case p.Kind == "planes" && p.Ports == 1:
			n.Rail, n.Plane = net/p.Planes, net%p.Planes
		}
		out = append(out, n)
	}
	return out
}

// check returns a LayoutError if a member of the Layout is out of its bounds.
func (p *Layout) check() error {
	sane := func(v float64) bool { return v >= 0 && v <= 1e6 } // not so NaN
	switch {
	case p.Ports < 1 || p.Ports > 4:
		return &LayoutError{fmt.Sprintf("%d ports of a net: NCCL fuses up to 4", p.Ports)}
	case p.Hosts < 1 || p.Nets < 1 || !sane(p.Gbit) || p.Gbit == 0:
		return &LayoutError{fmt.Sprintf("%d hosts of %d ports of %g Gbit/s: each must be at least 1", p.Hosts,
			p.Nets, p.Gbit)}
	case p.Hosts > maxParts/p.Nets/p.Ports:
		return &LayoutError{fmt.Sprintf("%d hosts of %d ports: at most %d ports in all", p.Hosts,
			p.Nets*p.Ports, maxParts)}
	case p.PerLeaf < 1 || p.Spines < 0 || p.Planes < 0 || p.Radix < 0:
		return &LayoutError{"a number below zero"}
	case !sane(p.Oversub) || !sane(p.Latency) || p.Oversub < 1e-3:
		return &LayoutError{fmt.Sprintf("oversubscription %g, latency %g us: the factor must be positive, "+
			"e.g. 2; the latency at least 0", p.Oversub, p.Latency)}
	}
	return nil
}

type generator struct {
	p     Layout
	n     *Network
	place map[string]int // of a switch in the Network
	used  []int          // ports of each
	err   error          // the first switch that has too few ports
}

func (g *generator) add(format string, args ...any) string {
	name := fmt.Sprintf(format, args...)
	if g.place == nil {
		g.place = map[string]int{}
	}
	g.place[name] = len(g.n.Switches)
	g.n.Switches = append(g.n.Switches, Switch{Name: name, Radix: g.p.Radix})
	g.used = append(g.used, 0)
	return name
}

// cable joins two ends by so much: cables of a port's speed side by side, where
// one is not enough.
func (g *generator) cable(a, b string, gbit, latency float64) {
	count := max(1, int(math.Ceil(gbit/g.p.Gbit*(1-1e-9))))
	g.n.Cables = append(g.n.Cables, Cable{A: a, B: b, Gbit: gbit / float64(count), Latency: latency,
		Count: count})
	for _, end := range []string{a, b} {
		i, ok := g.place[end]
		if !ok {
			continue
		}
		if g.used[i] += count; g.p.Radix > 0 && g.used[i] > g.p.Radix && g.err == nil {
			g.err = &LayoutError{fmt.Sprintf("%s needs more than its %d ports; fewer hosts a leaf, more "+
				"spines, or more oversubscription leave it fewer cables", end, g.p.Radix)}
		}
	}
}

// leaves cables the hosts, whose ports are numbered net by net; it returns the
// leaves and the speed of each to hosts.
func (g *generator) leaves(prefix string, leafOf func(host, port int) int, in func(port int) bool) (
	names []string, down []float64) {
	for host := range g.p.Hosts {
		for port := range g.p.Nets * g.p.Ports {
			if !in(port) {
				continue
			}
			l := leafOf(host, port)
			for len(names) <= l {
				names = append(names, g.add("%sleaf%d", prefix, len(names)))
				down = append(down, 0)
			}
			end := End{Host: host, Net: port / g.p.Ports}
			if g.p.Ports > 1 {
				end.Port = port%g.p.Ports + 1
			}
			g.cable(end.String(), names[l], g.p.Gbit, 0)
			down[l] += g.p.Gbit
		}
	}
	return names, down
}

// plane adds one leaf-spine network: its leaves and, if there are several, its spines.
func (g *generator) plane(prefix string, leafOf func(host, port int) int, in func(port int) bool) {
	leaves, down := g.leaves(prefix, leafOf, in)
	if len(leaves) == 1 {
		return
	}
	spines := g.p.Spines
	if spines == 0 {
		spines = max(1, int(down[0]/g.p.Gbit/g.p.Oversub))
	}
	for s := range spines {
		spine := g.add("%sspine%d", prefix, s)
		for l, leaf := range leaves {
			g.cable(leaf, spine, down[l]/g.p.Oversub/float64(spines), g.p.Latency)
		}
	}
}

// fatTree is three levels: rail leaves and as many aggregation switches in a
// pod of PerLeaf hosts, cores above; Oversub counts between pod and core.
func (g *generator) fatTree() {
	p, all := &g.p, g.p.Nets*g.p.Ports
	leaves, down := g.leaves("", func(host, port int) int { return host/p.PerLeaf*all + port },
		func(int) bool { return true })
	pods := (p.Hosts + p.PerLeaf - 1) / p.PerLeaf
	cores := cmp.Or(p.Spines, all)
	var core []string
	for c := range cores {
		core = append(core, g.add("core%d", c))
	}
	for pod := range pods {
		for a := range all {
			agg := g.add("agg%d-%d", pod, a)
			up := 0.0
			for l := range all {
				leaf := pod*all + l
				g.cable(leaves[leaf], agg, down[leaf]/float64(all), p.Latency)
				up += down[leaf] / float64(all)
			}
			for _, c := range core {
				g.cable(agg, c, up/p.Oversub/float64(cores), p.Latency)
			}
		}
	}
}
