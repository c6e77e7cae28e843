package connect

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// Join makes the communicator that the domains' graphs lead to (init.cc:1082
// ff.). Errors are *Error: domains that do not partition the ranks, or a graph
// that is no permutation of its domain.
func Join(in Input, p Params) (*Layout, error) {
	for i := range in.Domains {
		if err := p.Rules.Check("connect", in.Domains[i].System.Rules); err != nil {
			return nil, err
		}
	}
	c := &Layout{Rules: p.Rules}
	if err := c.place(in.Domains); err != nil {
		return nil, err
	}
	c.agree(&in, &p)
	j := joiner{c: c, p: &p, n: c.Final[search.RingID].NChannels}
	if err := j.rings(); err != nil {
		return nil, err
	}
	if err := j.trees(); err != nil {
		return nil, err
	}
	if len(p.Rules.Connect.Copies) > 0 {
		j.countAMD()
	} else if err := j.count(); err != nil {
		return nil, err
	}
	c.joinNVLS(&in, &p)
	if c.NVLSSupport && p.Rules.Connect.NVLSRaises {
		c.copyChannels(c.NVLSChannels)
		c.NChannels = len(c.Channels)
		if !p.Rules.Connect.NVLSApart {
			c.CollChannels = c.NChannels
		}
	}
	c.CollNet.attach(c)
	c.buffers(&p)
	c.p2pChannels(&p)
	c.p2pGroup(&p)
	c.RouteOf = newRouter(c, &in.Access, &p).route
	return c, nil
}

// place numbers the nodes and gives every rank its node. NCCL numbers nodes by
// the first rank that names them (init.cc:1092), which is their smallest.
func (c *Layout) place(domains []Domain) error {
	c.Domains = slices.Clone(domains)
	smallest := func(d *Domain) int32 {
		lo := int32(1<<31 - 1)
		for _, id := range d.System.Of(topo.GPU) {
			lo = min(lo, int32(d.System.Nodes[id].GPU.Rank))
		}
		return lo + d.First
	}
	slices.SortStableFunc(c.Domains, func(a, b Domain) int { return cmp.Compare(smallest(&a), smallest(&b)) })
	c.NNodes = len(c.Domains)
	for i := range c.Domains {
		c.NRanks += len(c.Domains[i].System.Of(topo.GPU))
	}
	if c.NRanks == 0 {
		return fail("no ranks: give at least one GPU")
	}
	c.NodeOf = make([]int32, c.NRanks)
	c.HostOf = make([]int32, c.NRanks)
	c.LocalRank = make([]int32, c.NRanks)
	c.NodeRanks = make([][]int32, c.NNodes)
	for i := range c.NodeOf {
		c.NodeOf[i] = none
	}
	all := make([]int32, 0, c.NRanks)
	for n := range c.Domains {
		d := &c.Domains[n]
		from := len(all)
		for _, id := range d.System.Of(topo.GPU) {
			gpu := d.System.Nodes[id].GPU
			r := d.First + int32(gpu.Rank)
			if int(r) >= c.NRanks || r < 0 || c.NodeOf[r] != none {
				return fail("rank %d of node %d is outside 0..%d or taken twice", r, n, c.NRanks-1)
			}
			c.NodeOf[r], c.HostOf[r] = int32(n), d.Host
			all = append(all, r)
		}
		c.NodeRanks[n] = all[from:len(all):len(all)]
		slices.Sort(c.NodeRanks[n])
		for i, r := range c.NodeRanks[n] {
			c.LocalRank[r] = int32(i)
		}
	}
	return nil
}

// agree takes the minimum over all ranks, and what else NCCL gathers from them
// (init.cc:1088-1187).
func (c *Layout) agree(in *Input, p *Params) {
	d0 := &c.Domains[0]
	cpu := d0.System.Nodes[d0.System.Of(topo.CPU)[0]].CPU
	c.CPUArch, c.CPUVendor = cpu.Arch, cpu.Vendor
	for id, g := range d0.Graphs {
		final := search.Graph{ID: id}
		if g != nil {
			final = *g
		}
		c.Final[id] = &final
	}
	c.MinSM, c.MinLocalRanks = 1<<30, c.NRanks
	for n := range c.Domains {
		d := &c.Domains[n]
		c.MinLocalRanks = min(c.MinLocalRanks, len(c.NodeRanks[n]))
		c.MaxLocalRanks = max(c.MaxLocalRanks, len(c.NodeRanks[n]))
		if n > 0 && d.System == c.Domains[n-1].System {
			continue // equal to the last: nothing new
		}
		if p.Rules.Connect.MixedCPUs {
			c.agreeCPU(d.System)
		}
		for _, id := range d.System.Of(topo.GPU) {
			sm := d.System.Nodes[id].GPU.SM
			c.MinSM, c.MaxSM = min(c.MinSM, sm), max(c.MaxSM, sm)
		}
		for id, f := range c.Final {
			if g := d.Graphs[id]; g != nil {
				lower(c.Rules, f, g)
			} else {
				f.NChannels = 0
			}
		}
		if t := d.Graphs[search.TreeID]; t != nil && (n == 0 || !p.Rules.Connect.OwnTreePattern) {
			c.TreePattern = max(c.TreePattern, t.Pattern)
		}
	}
	ring, tree := c.Final[search.RingID], c.Final[search.TreeID]
	if !p.Rules.Connect.KeepRings || d0.System.Inter && len(d0.System.Of(topo.NET)) > 0 {
		ring.NChannels = min(ring.NChannels, tree.NChannels)
	}
	if n := p.Rules.Connect.OneRankChannels; n > 0 && c.NRanks == 1 {
		ring.NChannels = n
	}
	tree.NChannels = ring.NChannels
	c.NVLSSupport = NVLSSupported(d0.System, in.Multicast, *p) && c.Final[search.NVLSID].NChannels > 0
	c.CollNet.Off, c.CollNet.OffAt = c.noCollNet(p)
	c.CollNet.Enabled = c.CollNet.Off == ""
	c.IsAllNVLink = allNVLink(d0.System, &p.Rules.Connect)
	for i := range in.Domains {
		if s := in.Domains[i].System; p.Rules.Connect.NVLinkOfAll && s != d0.System {
			c.IsAllNVLink = c.IsAllNVLink && allNVLink(s, &p.Rules.Connect)
		}
	}
	c.TreeDepth = c.NRanks/c.NNodes - 1 + bits.Len(uint(c.NNodes)) - 1
}

// lower brings the agreed graph down to what one more node can do.
func lower(r *rules.Ruleset, f, g *search.Graph) {
	f.NChannels = min(f.NChannels, g.NChannels)
	f.SameChannels = min(f.SameChannels, g.SameChannels)
	f.BWIntra = min(f.BWIntra, g.BWIntra)
	f.BWInter = min(f.BWInter, g.BWInter)
	f.TypeIntra = max(f.TypeIntra, g.TypeIntra)
	if t := &r.Topo; t.Rank(rules.Level(g.TypeInter)) > t.Rank(rules.Level(f.TypeInter)) {
		f.TypeInter = g.TypeInter
	}
	f.CrossNIC = max(f.CrossNIC, g.CrossNIC)
}

// agreeCPU notes nodes with other processors than rank 0's (init.cc:1104).
func (c *Layout) agreeCPU(sys *topo.System) {
	cpu := sys.Nodes[sys.Of(topo.CPU)[0]].CPU
	if cpu.Arch != c.CPUArch {
		c.CPUArch = topo.ArchMixed
	}
	if cpu.Vendor != c.CPUVendor {
		c.CPUVendor = topo.VendorMixed
	}
}

// allNVLink reports whether no pair of GPUs is farther apart than NVLink or C2C, or, by
// older rules, whether some pair is not
// (paths.cc:942).
func allNVLink(sys *topo.System, r *rules.Connect) bool {
	gpus := sys.Of(topo.GPU)
	for _, a := range gpus {
		for _, b := range gpus {
			if near := sys.Path(a, b).Kind < topo.PathPIX; a != b && near == r.AnyNVLink {
				return near
			}
		}
	}
	return !r.AnyNVLink
}

// count doubles, copies and cuts channels to their final number
// (connect.cc:448-492).
func (j *joiner) count() error {
	c, n := j.c, min(2*j.n, j.p.Rules.MaxChannels)
	c.Channels = c.Channels[:n]
	for ch := range n {
		c.searched = append(c.searched, int32(ch%j.n))
	}
	chain, ring := c.Final[search.CollNetChainID], c.Final[search.RingID]
	if c.CollNet.Enabled {
		if chain.BWIntra > chain.BWInter && c.NRanks > c.NNodes {
			c.copyChannels(min(j.p.Rules.MaxChannels, n+n/2))
		}
		if err := j.joinCollNet(); err != nil {
			return err
		}
	}
	r := &j.p.Rules.Connect
	if (c.MinSM == r.DoubleSM || c.MinSM > r.DoubleSM && !r.DoubleExact) && c.NNodes > 1 &&
		ring.BWIntra > r.DoubleBW && len(c.Channels) < r.DoubleBelow {
		c.copyChannels(2 * len(c.Channels))
	}
	lo, hi := j.p.ctas()
	n = atMost(int(min(j.p.maxUserChannels(), int64(len(c.Channels)), hi)), j.p.Top.Channels)
	c.Channels, c.searched = c.Channels[:n], c.searched[:n]
	c.copyChannels(atMost(int(max(j.p.minChannels(), lo)), j.p.Top.Channels))
	c.NChannels, c.CollChannels = len(c.Channels), len(c.Channels)
	return nil
}

// copyChannels repeats the channels from the first on until there are n.
func (c *Layout) copyChannels(n int) {
	have := len(c.Channels)
	for i := have; i < n; i++ {
		c.Channels = append(c.Channels, c.Channels[i-have])
		c.searched = append(c.searched, c.searched[i-have])
	}
}

// steps is NCCL_STEPS (device.h:24), how many chunks a buffer holds.
const steps = 8

// buffers sets buffer and chunk sizes (init.cc:708). NCCL keeps them in 32-bit
// integers.
func (c *Layout) buffers(p *Params) {
	size := func(o units.Opt[int64], def int64) units.Bytes { return units.Bytes(whole(o, def)) }
	r := &p.Rules.Connect
	c.BuffSizes = [3]units.Bytes{size(p.LLBuffSize, r.Buffers[coll.LL]),
		size(p.LL128BuffSize, r.Buffers[coll.LL128]), size(p.BuffSize, r.Buffers[coll.Simple])}
	if wide := r.WideLL128; wide != "" && c.Domains[0].System.Arch() == wide && !p.LL128BuffSize.Set {
		c.BuffSizes[1] *= 2
	}
	switch {
	case c.NNodes > 1:
		c.P2PChunkSize = size(p.P2PNetChunkSize, c.netChunk(r))
		if c.CPUArch == topo.ArchARM && c.MinSM >= 100 { // few GPUs a host
			c.P2PChunkSize *= units.Bytes(max(r.P2PChunkARM, 1))
		}
	case c.IsAllNVLink:
		c.P2PChunkSize = size(p.P2PNVLChunkSize, r.P2PNVLChunk)
	default:
		c.P2PChunkSize = size(p.P2PPCIChunkSize, r.P2PChunk)
	}
	if simple := c.BuffSizes[2]; units.Bytes(int32(c.P2PChunkSize*steps)) > simple {
		c.P2PChunkSize = simple / steps
	}
	c.P2PChunkSize = atMost(c.P2PChunkSize, p.Top.P2PChunkSize)
}
