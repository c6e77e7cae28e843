package connect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// apuUnits are the compute units of the MI300A, whose GPUs share memory with the processor; a topology file
// does not say that.
const apuUnits = 228

// APU reports whether rank 0's GPU shares its memory with the processor.
func (c *Layout) APU() bool {
	sys := c.Domains[0].System
	return sys.Nodes[sys.Of(topo.GPU)[0]].GPU.CU == apuUnits
}

// Copies is how many times searched channels are used: the least of all nodes (init.cc:1688 of RCCL 2.30.4).
func (c *Layout) Copies(r *rules.Connect) int {
	least := 0
	for i := range c.Domains {
		d := &c.Domains[i]
		if n := d.copies(r.Copies, c.NRanks); i == 0 || n < least {
			least = n
		}
	}
	return least
}

func (d *Domain) copies(list []rules.CopyRule, ranks int) int {
	sys, rings := d.System, max(d.Graphs[search.RingID].NChannels, 1)
	gpu := sys.Nodes[sys.Of(topo.GPU)[0]].GPU
	n := 0
	for i := range list {
		r := &list[i]
		switch {
		case !strings.HasPrefix(gpu.Arch, r.Arch), r.Alone && sys.Inter, r.Between && !sys.Inter,
			r.Chordal && sys.Kinds&topo.ChordalRing == 0, r.APU && gpu.CU != apuUnits, r.Ranks > 0 &&
				r.Ranks != ranks,
			r.XGMI && !sys.ByXGMI(2):
			continue
		}
		if r.N > 0 {
			n = r.N
		}
		if r.Spread > 0 {
			n = max(n, r.Spread/rings)
		}
	}
	return n
}

// mostChannels bounds the channels (graph/connect.cc:1173 of RCCL 2.30.4).
func (c *Layout) mostChannels(r *rules.Ruleset) int {
	sys, k := c.Domains[0].System, &r.Connect
	gpu := sys.Nodes[sys.Of(topo.GPU)[0]].GPU
	most := k.MostOld
	if slices.Contains(k.MostCUs, gpu.Arch) {
		most = min(gpu.CU, r.MaxChannels)
	}
	if c.Final[search.RingID].NIntraChannels > 0 || c.NNodes > 1 {
		most = min(most, k.MostBetween)
	}
	return max(most, 1)
}

// countAMD doubles, copies and cuts channels to their final number (graph/connect.cc:1173-1312 of RCCL
// 2.30.4).
func (j *joiner) countAMD() {
	c := j.c
	most := c.mostChannels(j.p.Rules)
	user := int(j.p.maxUserChannels())
	uses := min(min(user, most)/j.n, c.Copies(&j.p.Rules.Connect)) * j.n
	n := j.n
	if n <= most/2 {
		n *= 2
	}
	n = min(n, most)
	lo, hi := j.p.ctas()
	for ch := range n {
		c.searched = append(c.searched, int32(ch%j.n))
	}
	n = atMost(min(user, n, int(hi)), j.p.Top.Channels)
	c.Channels, c.searched = c.Channels[:n], c.searched[:n]
	c.copyChannels(atMost(max(int(c.leastChannels(j.p, most)), uses, int(lo)), j.p.Top.Channels))
	c.defineTrees()
	c.NChannels, c.CollChannels = len(c.Channels), len(c.Channels)
}

// leastChannels is the user's lower bound, of which RCCL ignores what it cannot have.
func (c *Layout) leastChannels(p *Params, most int) int64 {
	def := p.Rules.Connect.MinChannels
	n := def
	if p.MinNChannels.Set || p.MinNRings.Set {
		n = p.minChannels()
	}
	if c.NNodes > 1 {
		n = min(n, 64)
	}
	if c.NRanks < 8 && n > 64 || n > int64(most) {
		return def
	}
	return n
}

// halfTrees are trees where the first half of the channels has the first tree and the second half the second
// (graph/connect.cc:599 of RCCL 2.30.4).
func (j *joiner) halfTrees() error {
	c, half := j.c, j.n/2
	for ch := range j.n {
		chain, ends, err := j.chains(func(int) int { return ch })
		if err != nil {
			return err
		}
		plain := append([]TreeLinks(nil), chain...)
		if ch < 2*half {
			for node := range c.Domains {
				t0, t1 := doubleTree(c.NNodes, node)
				if ch >= half {
					t0 = t1
				}
				if !link(chain, ends, node, t0) {
					return fail("tree %d: a rank of node %d has more than 3 children", ch, node)
				}
			}
		}
		c.Channels[ch].Tree, c.Channels[ch+j.n].Tree = chain, plain
	}
	c.Joined = slices.Clone(c.Channels)
	return nil
}

// chains are the searched paths of all nodes, of which of says the channel, as trees, and their ends.
func (j *joiner) chains(of func(node int) int) ([]TreeLinks, []treeEnds, error) {
	c := j.c
	chain, ends := make([]TreeLinks, c.NRanks), make([]treeEnds, c.NNodes)
	for node := range c.Domains {
		order, base, err := j.intra(node, search.TreeID, of(node))
		if err != nil {
			return nil, nil, err
		}
		ends[node] = endsOf(order, base, c.Domains[node].Graphs[search.TreeID].Pattern)
		up := int32(none)
		for i, local := range order {
			r := base + int32(local)
			chain[r] = TreeLinks{Up: up, Down: [3]int32{none, none, none}}
			if i+1 < len(order) {
				chain[r].Down[0] = base + int32(order[i+1])
			}
			up = r
		}
	}
	return chain, ends, nil
}

// parity says whether a node takes the other channel of a pair, so that no tree changes rails
// (graph/connect.cc:881 of RCCL 2.30.4).
func parity(second bool, nodes, node int) int {
	t, t1 := doubleTree(nodes, node)
	dir := 0
	if second {
		t, dir = t1, 1
	}
	if t.up == none {
		return dir
	}
	kind := 0
	if t.second {
		kind = 1
	}
	return (kind + 1 + parity(second, nodes, t.up)) % 2
}

// railTrees are trees by rails: pairs of channels whose paths begin with the same two GPUs in either order
// (graph/connect.cc:898 of RCCL 2.30.4).
func (j *joiner) railTrees() error {
	c, half := j.c, j.n/2
	var plain [][]TreeLinks
	for ch := range j.n {
		chain, _, err := j.chains(func(int) int { return ch })
		if err != nil {
			return err
		}
		plain = append(plain, chain)
		c.Channels[ch].Tree, c.Channels[ch+j.n].Tree = chain, append([]TreeLinks(nil), chain...)
	}
	for dir := range 2 {
		flip := make([]int, c.NNodes)
		for node := range flip {
			flip[node] = parity(dir == 1, c.NNodes, node)
		}
		for ch := 0; ch+1 < half; ch += 2 {
			if err := j.railPair(dir, dir*half+ch, flip, plain); err != nil {
				return err
			}
		}
	}
	c.Joined = slices.Clone(c.Channels)
	return nil
}

// railPair joins one pair of channels in one of the two trees.
func (j *joiner) railPair(dir, first int, flip []int, plain [][]TreeLinks) error {
	c := j.c
	var ends [2][]treeEnds // as searched, by channel and node
	for i := range ends {
		var err error
		if _, ends[i], err = j.chains(func(int) int { return first + i }); err != nil {
			return err
		}
	}
	for i := range 2 {
		tree := make([]TreeLinks, c.NRanks)
		for r := range tree {
			tree[r] = plain[first+(i+flip[c.NodeOf[r]])%2][r]
		}
		for node := range c.Domains {
			t, t1 := doubleTree(c.NNodes, node)
			if dir == 1 {
				t = t1
			}
			own := ends[(i+flip[node])%2][node]
			if t.up != none {
				up := ends[(i+flip[t.up])%2][t.up]
				tree[own.parent].Up = up.child0
				if t.second {
					tree[own.parent].Up = up.child1
				}
			}
			for k, from := range [2]int32{own.child0, own.child1} {
				if d := t.down[k]; d != none && !tree[from].add(ends[(i+flip[d])%2][d].parent) {
					return fail("tree %d: a rank of node %d has more than 3 children", first+i, node)
				}
			}
		}
		c.Channels[first+i].Tree = tree
	}
	return nil
}

// defineTrees gives ranks the trees that a preset has for them in place of those that were joined
// (graph/connect.cc:231 of RCCL 2.30.4).
func (c *Layout) defineTrees() {
	for node := range c.Domains {
		d := &c.Domains[node]
		if d.Preset == nil || !d.Preset.TreeDefined || len(d.Preset.Trees[search.TreeID]) == 0 {
			continue
		}
		trees := d.Preset.Trees[search.TreeID]
		for ch := range c.Channels {
			tree := slices.Clone(c.Channels[ch].Tree)
			at := parseTree(trees[ch%len(trees)])
			for _, r := range c.NodeRanks[node] {
				if links, ok := at[r]; ok {
					tree[r] = links
				}
			}
			c.Channels[ch].Tree = tree
		}
	}
}

// parseTree reads "(4(2(3)(1))(6(5)))" as the links of each rank in it.
func parseTree(text string) map[int32]TreeLinks {
	out := map[int32]TreeLinks{}
	var up []int32
	for i := 0; i < len(text); i++ {
		if text[i] == ')' && len(up) > 0 {
			up = up[:len(up)-1]
		}
		if text[i] < '0' || text[i] > '9' {
			continue
		}
		end := i
		for end < len(text) && text[end] >= '0' && text[end] <= '9' {
			end++
		}
		v, _ := strconv.ParseInt(text[i:end], 10, 32)
		r, links := int32(v), TreeLinks{Up: none, Down: [3]int32{none, none, none}}
		if len(up) > 0 {
			links.Up = up[len(up)-1]
			above := out[links.Up]
			above.add(r)
			out[links.Up] = above
		}
		out[r] = links
		up = append(up, r)
		i = end - 1
	}
	return out
}

// boundAMD brings the channels of send/recv to what processor and kind of machine allow
// (graph/paths.cc:1199-1250 of RCCL 2.30.4). least is by node.
func (c *Layout) boundAMD(least []int, all int, p *Params) {
	c.P2PChannels = all
	for i := range least {
		n, channels := c.peersOn(c.Domains[i].System, least[i], all, p)
		c.PeerChannels[i] = n
		if i == 0 {
			c.P2PChannels = channels
		}
	}
	c.P2PChannelsPerPeer = c.PeerChannels[0]
}

// PeersOfExpl are the channels of send/recv, all and for one peer, of RCCL's tools/topo_expl: its
// communicators have 0 for a peer over the network in their configuration, where a program's leave it
// undefined.
func (c *Layout) PeersOfExpl(p *Params) (all, perPeer int) {
	l, as := *c, *p
	as.NChannelsPerNetPeer = units.Some[int64](0)
	l.p2pChannels(&as)
	return l.P2PChannels, l.P2PChannelsPerPeer
}

func (c *Layout) peersOn(sys *topo.System, peers, all int, p *Params) (perPeer, channels int) {
	r, cpu, arch := &p.Rules.Connect, sys.Nodes[sys.Of(topo.CPU)[0]].CPU, sys.Arch()
	switch {
	case cpu.Arch == topo.ArchX86 && cpu.Vendor == topo.VendorIntel && sys.Kinds&topo.XGMIForAll == 0:
		peers, all = 8, 8
	case !sys.Inter && sys.Kinds&topo.Rome4P2H != 0 && sys.Kinds&(topo.GDRForAll|topo.XGMIForAll) == 0:
		peers, all = 2, min(pow2Up(all), pow2Down(int(p.argsChannels())))
	default:
		if peers = pow2Up(peers); !sys.Inter && slices.Contains(r.MostCUs, arch) {
			peers *= 2
		}
		all = pow2Up(all)
		if r.PeersFit {
			all = max(all, pow2Up(peers))
		}
		all = min(all, 64)
		if r.PeersFit && arch == "gfx950" && (c.NNodes == 2 || c.NNodes == 4) {
			switch c.NRanks / c.NNodes {
			case 8:
				all = min(all, 32)
			case 4:
				all = min(all, 16)
			}
		}
		peers = min(peers, p.Rules.MaxChannels)
	}
	if !r.PeersFit {
		return peers, all
	}
	return c.boundPeers(peers, all, p), all
}

// netChunk is the chunk of send/recv between nodes.
func (c *Layout) netChunk(r *rules.Connect) int64 {
	if chunk, ok := r.NetChunkOf(c.Domains[0].System.Arch(), c.NRanks); ok {
		return chunk
	}
	return r.P2PChunk
}
