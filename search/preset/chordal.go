package preset

import (
	"slices"

	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// Chordal is Result.Name of the ring of eight.
const Chordal = "chordal"

// chordalRings are the rings of eight GPUs of which each is joined with all others but one
// (graph/rome_models.cc:2124).
var chordalRings = [...]string{"0 1 2 3 5 4 7 6", "0 2 4 1 7 3 6 5", "0 3 1 5 7 2 6 4", "0 6 7 4 5 3 2 1",
	"0 5 6 3 7 1 4 2", "0 4 6 2 7 5 1 3"}

// chordal matches that ring of eight (graph/rome_models.cc:2123).
func (f *finder) chordal(id int) *search.Graph {
	sys := f.m.sys
	ids := f.chordalIDs()
	if ids == nil {
		return nil
	}
	f.res.Kinds |= topo.ChordalRing
	d := drawing{m: f.m, id: id, gpus: ids}
	g := d.graph(chordalRings[:])
	if nets := sys.Of(topo.NET); len(nets) > 0 && len(f.m.gpus) != f.m.nRanks {
		n := min(len(nets), g.NChannels)
		g.NChannels, g.Intra, g.Inter, g.IntraNets = n, g.Intra[:n], g.Inter[:n], g.IntraNets[:n]
		f.fromNets(g)
	}
	f.res.Name = Chordal
	return g
}

// chordalIDs names the devices by their places in the rings; nil where the machine is none.
func (f *finder) chordalIDs() []int {
	sys, n := f.m.sys, 8
	gpus := sys.Of(topo.GPU)
	if len(gpus) != n {
		return nil
	}
	far := make([]int, n) // what each GPU has no link to
	for i := range gpus {
		sum, count := n*(n-1)/2-sys.Nodes[gpus[i]].GPU.Dev, 0
		for j := range gpus {
			if sys.Adjoining(sys.Path(gpus[i], gpus[j])) {
				sum -= sys.Nodes[gpus[j]].GPU.Dev
				count++
			}
		}
		if count != n-2 || sum < 0 || sum > n-1 {
			return nil
		}
		far[i] = sum
	}
	id := make([]int, n)
	for i := range id {
		id[i] = i
	}
	for i := range n {
		if far[i] == n-1-i {
			continue
		}
		j := i + 1 + slices.Index(far[min(i+1, n):], n-1-i)
		if j <= i {
			return nil
		}
		a, b := far[i], far[j]
		far[i], far[j] = b, a
		id[a], id[b] = id[b], id[a]
		far[a], far[b] = far[b], far[a]
	}
	return id
}

// fromNets turns each ring so that it begins at the GPU nearest to its net of those at which none begins yet.
func (f *finder) fromNets(g *search.Graph) {
	sys := f.m.sys
	gpus, nets := sys.Of(topo.GPU), sys.Of(topo.NET)
	var used []int
	for n := range g.NChannels {
		g.Inter[n] = [2]uint64{uint64(n), uint64(n)}
		first, hops := -1, 0
		for i, id := range gpus {
			h := len(sys.Path(nets[n], id).Links)
			if !slices.Contains(used, sys.Nodes[id].GPU.Rank) && (first < 0 || h < hops) {
				first, hops = i, h
			}
		}
		rank := sys.Nodes[gpus[first]].GPU.Rank
		used = append(used, rank)
		at := slices.Index(g.Intra[n], rank)
		g.Intra[n] = append(append([]int(nil), g.Intra[n][at:]...), g.Intra[n][:at]...)
	}
}
