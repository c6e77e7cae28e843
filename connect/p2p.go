package connect

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// pow2Up rounds up to a power of two.
func pow2Up(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// p2pChannels computes the channels of send/recv, all and per peer (paths.cc:861).
// Both are powers of two. Each node takes the minimum per peer over its own GPUs.
// Where NCCL does not exchange it (rules.Connect.PeersAgree), unlike nodes can
// disagree; P2PChannelsPerPeer is rank 0's.
func (c *Layout) p2pChannels(p *Params) {
	n := min(int64(c.NChannels), whole(p.MaxP2PNChannels, p.maxChannels()))
	all := atMost(int(max(n, whole(p.MinP2PNChannels, 1))), p.Top.P2PChannels)
	limit := min(pow2Up(all), pow2Down(int(p.argsChannels())))
	c.P2PChannels = all
	c.PeerChannels = make([]int, len(c.Domains))
	for i := range c.Domains {
		if i > 0 && c.Domains[i].System == c.Domains[i-1].System {
			c.PeerChannels[i] = c.PeerChannels[i-1]
			continue
		}
		c.PeerChannels[i] = c.peerChannels(c.Domains[i].System, p)
	}
	if p.Rules.Connect.PeersAgree {
		least := slices.Min(c.PeerChannels)
		for i := range c.PeerChannels {
			c.PeerChannels[i] = least
		}
	}
	if p.Rules.Connect.AMDPeers {
		c.boundAMD(c.PeerChannels, all, p)
		return
	}
	for i, n := range c.PeerChannels {
		c.PeerChannels[i] = c.boundPeers(pow2Up(n), limit, p)
	}
	c.P2PChannels = limit
	c.P2PChannelsPerPeer = c.PeerChannels[0]
}

// boundPeers returns how many of n channels a peer gets: at most limit; over several nodes n is halved until
// the channels of all batches of peers fit into limit (graph/paths.cc:893 of v2.29.7).
func (c *Layout) boundPeers(n, limit int, p *Params) int {
	batch := p.Rules.Connect.PeerBatch
	if _, set := p.netPeers(); set || batch == 0 || c.NNodes == 1 {
		return min(n, limit)
	}
	room := limit
	if p.Rules.Connect.AMDPeers { // graph/paths.cc of RCCL 2.30.4 halves where they are as many, too
		room--
	}
	for n > 1 && n*((c.NRanks+batch-1)/batch) > room {
		n /= 2
	}
	return n
}

// peerChannels is the minimum that the GPUs of one System have for one peer.
func (c *Layout) peerChannels(sys *topo.System, p *Params) int {
	perPeer := c.P2PChannels
	if p.Rules.Connect.PeersAgree { // nothing else bounds them before they are exchanged
		perPeer = p.Rules.MaxChannels
	}
	gpus := sys.Of(topo.GPU)
	for i, g := range gpus {
		for k, peer := range gpus {
			if i != k {
				perPeer = min(perPeer, localChannels(sys, g, peer, p.Rules))
			}
		}
		if len(gpus) < c.NRanks {
			perPeer = min(perPeer, c.netChannels(sys, i, p))
		}
	}
	return perPeer
}

// PeersDisagree describes nodes that send to a peer over different numbers of
// channels, "" where all agree: "node 0: 4, node 2: 2". Send and receive between
// such nodes wait for each other on different channels.
func (c *Layout) PeersDisagree() (what string, least int) {
	if len(c.PeerChannels) == 0 {
		return "", 0
	}
	least = slices.Min(c.PeerChannels)
	if least == slices.Max(c.PeerChannels) {
		return "", least
	}
	var parts []string
	for _, n := range []int{slices.Max(c.PeerChannels), least} {
		node := slices.Index(c.PeerChannels, n)
		parts = append(parts, fmt.Sprintf("node %d: %d", node, n))
	}
	return strings.Join(parts, ", "), least
}

func pow2Down(n int) int { return 1 << (bits.Len(uint(max(n, 1))) - 1) }

// localChannels is how many channels send/recv to a GPU of the same node uses
// (paths.cc:825): two per NVLink of the path's width, else two.
func localChannels(sys *topo.System, g, peer topo.NodeID, r *rules.Ruleset) int {
	path := sys.Path(peer, g)
	if path.Kind != topo.PathNVL && !(r.Connect.NVBPeers && path.Kind == topo.PathNVB) {
		return 2
	}
	if n := r.Connect.LinkChannels(sys.Arch()); n > 0 {
		return n * max(1, int(path.BW/r.Topo.XGMIRate(sys.Nodes[g].GPU.Arch)))
	}
	return 2 * max(1, int(path.BW/r.Topo.NVLink(sys.Nodes[g].GPU.SM)))
}

// netPeers is how many channels a peer over the network has by the user's word, if there is one.
func (p *Params) netPeers() (n int, set bool) {
	v := whole(p.NChannelsPerNetPeer, 0)
	return int(v), v > 0 || p.NChannelsPerNetPeer.Set && p.Rules.Connect.AMDPeers
}

// netChannels is the same over the network (paths.cc:837).
func (c *Layout) netChannels(sys *topo.System, g int, p *Params) int {
	if n, set := p.netPeers(); set {
		return n
	}
	peer := rules.Peer{Ranks: c.NRanks, P2PChannels: c.P2PChannels,
		ChannelBW: int(max(whole(p.P2PPerChannelNetBW, 14), 1))}
	if p.Rules.Connect.PeersByTurns {
		peer.NetsToFill, peer.NetsBW = turnsToFill(sys, g)
	} else {
		peer.NetsToFill = netsToFill(sys, g)
	}
	return p.Rules.Connect.PeerChannels(peer)
}

// turnsToFill counts the nets that a GPU takes in turn until they have its
// bandwidth to the CPU, and returns theirs together (graph/topo.cc:1506 of v2.29.7).
func turnsToFill(sys *topo.System, g int) (n int, bw float32) {
	id := sys.Of(topo.GPU)[g]
	want := float32(sys.Path(id, sys.LocalCPU(id)).BW)
	for _, net := range sys.LocalNets(g) {
		bw += float32(sys.Path(id, sys.Of(topo.NET)[net]).BW)
		if n++; bw >= want {
			break
		}
	}
	return n, bw
}

// netsToFill counts the nearest nets that a GPU needs to use its link to the
// CPU fully (topo.cc:1576); 0 where no such link is.
func netsToFill(sys *topo.System, g int) int {
	id := sys.Of(topo.GPU)[g]
	var want, sum units.GBps
	for _, l := range sys.Nodes[id].Links {
		if link := sys.Links[l]; sys.Nodes[link.To].Kind == topo.CPU {
			want = link.BW
		}
	}
	nets, _ := sys.Nearest(id, topo.NET)
	n := 0
	for _, net := range nets {
		if sum >= want {
			break
		}
		sum += sys.Path(id, sys.Of(topo.NET)[net]).BW
		n++
	}
	return n
}

// p2pGroup sets how many neighbouring ranks of a node are scheduled together in
// rounds of send/recv (init.cc:768).
func (c *Layout) p2pGroup(p *Params) {
	size := c.MaxLocalRanks
	if c.NNodes > 1 || p.Rules.Connect.P2PGroupAlone {
		size = int(p.P2PGroupSize.Or(p.Rules.Connect.P2PGroup))
	}
	size = max(size, 1)
	for _, ranks := range c.NodeRanks {
		if n := len(ranks); n%size != 0 {
			size = GCD(size, n)
		}
	}
	c.P2PGroupSize = size
}

// GCD is the greatest common divisor of two counts.
func GCD(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
