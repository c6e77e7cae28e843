package search

import "github.com/simccl/simccl/topo"

// netTable is what the search needs of nets, computed once: NCCL computes
// it again at every channel.
type netTable struct {
	count int
	gpus  int
	info  []*topo.NetInfo
	first []int32 // the first net with the same id: ids may repeat
	rail  []int32 // nets with equal asic and port share a number
	host  []uint8 // system id
	slot  []int32 // nets with equal PCI address and port share a number
	rails []int   // as the plugin reports them, -1 for none
	plane []int
	peers [][]int32
	// nearest GPUs of each net, other than its own GPU; cut[n] is set where no
	// GPU reaches the net.
	near [][]int32
	all  [][]int32 // the same with its own
	cut  []bool
	own  []int32
	// lists[kind] holds the nets of a search's start, then of every GPU.
	lists     [topo.PathDIS + 1][][]int32
	sys       *topo.System
	localNets [][]int32
	scatter   bool
	most      int // channels at most
	longest   int // nets that are tried per list, as many as NCCL's arrays hold (graph.h:89)
}

func newNetTable(sys *topo.System, p Params) *netTable {
	nets, gpus := sys.Of(topo.NET), sys.Of(topo.GPU)
	t := &netTable{
		count: len(nets), gpus: len(gpus), sys: sys,
		scatter: sys.NHosts > 1 && p.ScatterNets.Or(p.Rules.Search.ScatterNets),
		most:    p.Rules.MaxChannels, longest: p.Rules.Topo.MaxNodes,
		localNets: make([][]int32, len(gpus)),
	}
	t.group(nets)
	for n, id := range nets {
		near, kind := sys.Nearest(id, topo.GPU)
		info := sys.Nodes[id].Net
		own := info.LocalGPU
		t.info = append(t.info, info)
		t.rails, t.plane = append(t.rails, info.Rail), append(t.plane, info.Plane)
		var others, all []int32
		for _, g := range near {
			all = append(all, int32(g))
			if g != own {
				others = append(others, int32(g))
			}
		}
		t.near, t.all = append(t.near, others), append(t.all, all)
		t.cut = append(t.cut, kind == topo.PathDIS)
		t.own = append(t.own, int32(own))
		t.peers = append(t.peers, nil)
		for o := range nets {
			if t.rail[o] == t.rail[n] {
				t.peers[n] = append(t.peers[n], int32(o))
			}
		}
	}
	for g := range gpus {
		for _, n := range sys.LocalNets(g) {
			t.localNets[g] = append(t.localNets[g], t.first[n])
		}
	}
	return t
}

// group numbers ids, rails and slots by their first net.
func (t *netTable) group(nets []topo.NodeID) {
	for n, id := range nets {
		a := &t.sys.Nodes[id]
		first, rail, slot := int32(n), int32(n), int32(n)
		for o := n - 1; o >= 0; o-- {
			b := &t.sys.Nodes[nets[o]]
			if a.Ident == b.Ident {
				first = int32(o)
			}
			if a.Net.Port != b.Net.Port {
				continue
			}
			if a.Net.ASIC == b.Net.ASIC {
				rail = int32(o)
			}
			if a.Net.PCIBusID == b.Net.PCIBusID && (a.Net.PCIBusID != "" || a.Net.ASIC == b.Net.ASIC) {
				slot = int32(o)
			}
		}
		t.first = append(t.first, first)
		t.rail = append(t.rail, rail)
		t.slot = append(t.slot, slot)
		t.host = append(t.host, uint8(a.Ident>>56))
	}
}

// returns lists the nets by which GPU g may leave, best first.
func (t *netTable) returns(kind topo.PathKind, g int) []int32 { return t.list(kind, g+1) }

// list returns the nets for GPU i-1 at paths of a kind, 0 for all GPUs together; each list is made once.
func (t *netTable) list(kind topo.PathKind, i int) []int32 {
	if t.lists[kind] == nil {
		t.lists[kind] = make([][]int32, t.gpus+1)
	}
	l := t.lists[kind][i]
	if l == nil {
		if i == 0 {
			l = t.choose(kind, 0, t.gpus)
		} else {
			l = t.choose(kind, i-1, i)
		}
		t.lists[kind][i] = l
	}
	return l
}

// choose lists nets for the GPUs from lo to below hi: first those that they
// prefer, then, as the policy allows, all that they reach well enough.
func (t *netTable) choose(kind topo.PathKind, lo, hi int) []int32 {
	list := make([]int32, 0, t.count)
	seen := make([]bool, t.count)
	add := func(n int32) {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	if t.scatter {
		t.preferByGPU(lo, hi, add)
	} else {
		t.preferByChannel(lo, hi, add)
	}
	limit := t.longest
	if t.sys.NetDevs.Mode == topo.NetDevsMax && t.sys.Rules.Search.CapNets {
		limit = t.sys.NetDevs.Max * (hi - lo)
	}
	gpus, nets := t.sys.Of(topo.GPU), t.sys.Of(topo.NET)
	for k := topo.PathLOC; k <= kind; k++ {
		for g := lo; g < hi; g++ {
			for n := 0; n < t.count && n < t.most; n++ {
				if len(list) >= limit {
					return list
				}
				if t.sys.Rank(t.sys.Path(gpus[g], nets[n]).Kind) == k {
					add(int32(n))
				}
			}
		}
	}
	return list
}

// preferByChannel adds each GPU's nets until the first comes back
// (search.cc:483).
func (t *netTable) preferByChannel(lo, hi int, add func(int32)) {
	for g := lo; g < hi; g++ {
		localNets := t.localNets[g]
		if len(localNets) == 0 {
			continue
		}
		for c := 0; c < t.most; c++ {
			n := localNets[c%len(localNets)]
			if c > 0 && n == localNets[0] {
				break
			}
			add(n)
		}
	}
}

// preferByGPU adds the first net of every GPU, then the second of every GPU,
// and so on (search.cc:446): the order of multi-host NVLink domains.
func (t *netTable) preferByGPU(lo, hi int, add func(int32)) {
	done := make([]bool, hi)
	for c := 0; c < t.most; c++ {
		for g := lo; g < hi; g++ {
			localNets := t.localNets[g]
			if done[g] || len(localNets) == 0 {
				continue
			}
			n := localNets[c%len(localNets)]
			if c > 0 && n == localNets[0] {
				done[g] = true
				continue
			}
			add(n)
		}
	}
}
