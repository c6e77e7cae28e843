package preset

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// drawing turns the texts of rings into a graph of a System.
type drawing struct {
	m       *machine
	id      int
	gpus    []int // device of each GPU of the text
	nics    []int // NIC of the machine for each of the text; nil: as they are
	reverse bool
}

// place is what a text says of one ring: its GPUs, and how many NICs it names.
type place struct {
	gpus  []int
	named int // NICs
}

// parse reads "N0 0 2 3 1 N1". nics is where the NICs are kept from ring to ring, as RCCL does.
func (d *drawing) parse(text string, nics []int) place {
	var p place
	at := 0
	for _, w := range strings.Fields(text) {
		number, isNIC := strings.CutPrefix(w, "N")
		v, _ := strconv.Atoi(number)
		if isNIC {
			if at < len(nics) {
				nics[at] = v
			}
			at++
			p.named++
			continue
		}
		p.gpus = append(p.gpus, v)
		at = 2*len(p.gpus) - 1
	}
	return p
}

// fits reports whether a ring is of all GPUs of the machine.
func (d *drawing) fits(p *place) bool {
	n := len(d.m.gpus)
	if len(p.gpus) != n || p.named%2 != 0 {
		return false
	}
	seen := make([]bool, n)
	for _, g := range p.gpus {
		if g < 0 || g >= n || seen[g] {
			return false
		}
		seen[g] = true
	}
	return true
}

// graph draws the rings that fit the machine (graph/rome_models.cc:1821). The speed of each is its share of
// all.
func (d *drawing) graph(rings []string) *search.Graph {
	m := d.m
	sys, n := m.sys, len(m.gpus)
	nets := sys.Of(topo.NET)
	g := &search.Graph{ID: d.id, Pattern: search.RingPattern, SameChannels: 1,
		TypeIntra: bestKind(sys, topo.GPU), TypeInter: bestKind(sys, topo.NET)}
	if d.id == search.TreeID {
		g.Pattern = search.BalancedTree
	}
	nics := make([]int, 2*n)
	for i := range nics {
		nics[i] = -1
	}
	for _, text := range rings {
		p := d.parse(text, nics)
		if !d.fits(&p) {
			continue
		}
		inter := [2]uint64{}
		switch {
		case p.named > 0:
			d.mapNICs(nics, len(nets))
			g.NIntraChannels++
			if nics[0] >= len(nets) || nics[2*n-1] >= len(nets) {
				continue
			}
			inter = [2]uint64{uint64(max(nics[0], 0)), uint64(max(nics[2*n-1], 0))}
		case len(nets) > 0:
			c := g.NChannels
			inter = [2]uint64{sys.Nodes[nets[c%len(nets)]].Ident, sys.Nodes[nets[(c+1)%len(nets)]].Ident}
		}
		g.Intra = append(g.Intra, d.ranks(p.gpus))
		g.Inter = append(g.Inter, inter)
		g.IntraNets = append(g.IntraNets, append([]int(nil), nics...))
		g.NChannels++
	}
	share := units.GBps(float32(sys.TotalBW) / float32(g.NChannels))
	g.BWIntra, g.BWInter = share, share
	if d.id == search.TreeID {
		d.treeNets(g)
	}
	return g
}

// mapNICs gives the NICs of a text the numbers of the machine's.
func (d *drawing) mapNICs(nics []int, nets int) {
	for i, v := range nics {
		if d.nics != nil && v >= 0 && v < nets {
			nics[i] = d.nics[v]
		}
	}
	if last := len(nics) - 1; d.reverse {
		nics[0], nics[last] = nics[last], nics[0]
	}
}

// ranks are the local ranks of a ring's GPUs.
func (d *drawing) ranks(gpus []int) []int {
	out := make([]int, len(gpus))
	for i, v := range gpus {
		at := i
		if d.reverse {
			at = len(gpus) - 1 - i
		}
		out[at] = d.m.rankOf(d.gpus[v])
	}
	return out
}

// rankOf is the local rank of a device.
func (m *machine) rankOf(dev int) int {
	for i, d := range m.devs {
		if d == dev {
			return m.sys.Nodes[m.sys.Of(topo.GPU)[m.gpuAt[i]]].GPU.Rank
		}
	}
	return -1
}

// treeNets gives each tree the net of its second GPU to leave by.
func (d *drawing) treeNets(g *search.Graph) {
	sys := d.m.sys
	at := map[int]int{}
	for i, n := range sys.Of(topo.GPU) {
		at[sys.Nodes[n].GPU.Rank] = i
	}
	for c := range g.NChannels {
		if len(g.Intra[c]) < 2 {
			continue
		}
		if nets := sys.LocalNets(at[g.Intra[c][1]]); len(nets) > 0 {
			g.Inter[c][1] = sys.Nodes[sys.Of(topo.NET)[nets[c%len(nets)]]].Ident
		}
	}
}

// bestKind is the best kind of path from GPUs to other nodes of a kind, as a graph begins with.
func bestKind(sys *topo.System, k topo.NodeKind) topo.PathKind {
	if k == topo.NET && !sys.SearchesNets() {
		return topo.PathPIX
	}
	if k == topo.GPU && len(sys.Of(topo.GPU)) == 1 {
		return topo.PathLOC
	}
	best := topo.PathSYS
	for _, a := range sys.Of(topo.GPU) {
		for _, b := range sys.Of(k) {
			if a != b {
				best = min(best, sys.Path(a, b).Kind)
			}
		}
	}
	return best
}

// named keeps a model's trees with the graph of an id, its GPUs under the numbers that the machine has.
func (f *finder) named(id int, ref *model, to func(int) int) {
	number := regexp.MustCompile(`\d+`)
	var out []string
	for _, t := range ref.trees {
		out = append(out, number.ReplaceAllStringFunc(t, func(s string) string {
			v, _ := strconv.Atoi(s)
			return strconv.Itoa(to(v))
		}))
	}
	if f.res.Trees == nil {
		f.res.Trees = map[int][]string{}
	}
	f.res.Trees[id] = out
}
