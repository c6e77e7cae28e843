package ncclog

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
)

// lineSize is the size of NCCL's buffer for most lines (init.cc:1242, tuning.cc:505).
const lineSize = 1024

// OfRank returns the lines that a rank logs during the creation of the communicator.
func OfRank(c *comm.Comm, rank int32) []Line {
	var l log
	node := c.NodeOf[rank]
	d := &c.Domains[node]
	for _, line := range show.Log(d.System, int(d.First)) {
		l.add(Graph, "%s", line)
	}
	for _, id := range [...]int{search.RingID, search.TreeID, search.CollNetChainID, search.CollNetDirectID,
		search.NVLSID} {
		if g := d.Graphs[id]; searched(c, d, id) {
			l.graph(d, g)
		}
	}
	l.nvlsTuning(c, rank)
	l.trees(c, rank)
	l.nvls(c, rank)
	if rank == 0 {
		for i := range c.Channels {
			if c.Rules.Log.WideRings {
				l.wideRing(i, len(c.Channels), c.Channels[i].Order)
				continue
			}
			l.ringOrder(i, len(c.Channels), c.Channels[i].Order)
		}
	}
	l.links(c, rank)
	l.add(Init, "P2P Chunksize set to %d", c.P2PChunkSize)
	if c.Rules.Connect.P2PGroup > 0 { // since 2.28.3 (init.cc:768)
		l.add(Graph, "ncclP2pSchedule: group size used is %d", c.P2PGroupSize)
	}
	if c.NRanks > 1 && rank == 0 {
		l.table(c.Model)
	}
	if c.NRanks > 1 {
		l.thresholds(c.Model)
	}
	l.add(Init, "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p channels "+
		"per peer",
		c.NChannels, c.NChannels, c.NVLSChannels, c.P2PChannels, c.P2PChannelsPerPeer)
	return l
}

// searched reports whether NCCL searched a graph, and so prints it
// (init.cc:1015-1058).
func searched(c *comm.Comm, d *connect.Domain, id int) bool {
	switch id {
	case search.CollNetChainID:
		return c.Params.Connect.CollNet
	case search.CollNetDirectID:
		return c.Params.Connect.CollNet && !c.Rules.Search.OneCollNetGraph
	case search.NVLSID:
		return connect.NVLSSupported(d.System, c.Multicast, c.Params.Connect)
	}
	return true
}

// graph logs a searched graph (search.cc:1199).
func (l *log) graph(d *connect.Domain, g *search.Graph) {
	form := &d.System.Rules.Log
	l.add(Graph, "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d",
		g.Pattern, g.CrossNIC, g.NChannels, g.BWIntra, g.BWInter, d.System.PathName(g.TypeIntra),
		d.System.PathName(g.TypeInter), g.SameChannels)
	names := map[int]string{}
	for _, id := range d.System.Of(topo.GPU) {
		names[d.System.Nodes[id].GPU.Rank] = d.System.Name(id)
		if form.GPURanks {
			names[d.System.Nodes[id].GPU.Rank] = fmt.Sprintf("GPU/%d", int(d.First)+
				d.System.Nodes[id].GPU.Rank)
		}
	}
	const local = uint64(1)<<56 - 1
	net := func(id uint64) string {
		if form.RawIDs {
			return fmt.Sprintf(" NET/%x", id)
		}
		return fmt.Sprintf(" NET/%x-%x", id>>56, id&local)
	}
	for c := range g.NChannels {
		var b strings.Builder
		fmt.Fprintf(&b, "%2d :", c)
		ends := d.System.Inter && g.NIntraChannels == 0
		if ends {
			b.WriteString(net(g.Inter[c][0]))
		}
		ranks := g.Intra[c]
		if g.ID == search.NVLSID {
			ranks = ranks[:min(len(ranks), 1)]
		}
		for i, r := range ranks {
			b.WriteString(intraNet(g, c, 2*i) + " " + names[r] + intraNet(g, c, 2*i+1))
		}
		if form.GPURanks { // entries that the search does not set, as in NVLS, are zero
			b.WriteString(strings.Repeat(" GPU/0", len(names)-len(ranks)))
		}
		if ends {
			leaves := g.Inter[c][1]
			if form.FirstNetTwice {
				leaves = leaves&^local | g.Inter[c][0]&local
			}
			b.WriteString(net(leaves))
		}
		l.add(Graph, "%s", b.String())
	}
}

// intraNet is a NIC within a channel of one of RCCL's models (graph/search.cc:1389 of RCCL 2.30.4).
func intraNet(g *search.Graph, channel, at int) string {
	if channel >= len(g.IntraNets) || at >= len(g.IntraNets[channel]) || g.IntraNets[channel][at] < 0 {
		return ""
	}
	return fmt.Sprintf(" NET/%d", g.IntraNets[channel][at])
}

// trees prints the rank's place in trees that leave its node (connect.cc:165).
func (l *log) trees(c *comm.Comm, rank int32) {
	n := len(c.Joined) / 2
	for ch := range n {
		ends := c.TreeEnds(int(c.NodeOf[rank]), ch)
		if rank != ends[0] && rank != ends[1] && rank != ends[2] {
			continue
		}
		for _, i := range [...]int{ch, ch + n} {
			t := &c.Joined[i].Tree[rank]
			l.add(Graph, "Tree %d : %d -> %d -> %d/%d/%d", i, t.Up, rank, t.Down[0], t.Down[1], t.Down[2])
		}
	}
}

// nvls prints heads and trees of NVLS over several nodes (connect.cc:279-318).
func (l *log) nvls(c *comm.Comm, rank int32) {
	if len(c.NVLS) == 0 || c.NNodes == 1 {
		return
	}
	if c.NodeOf[rank] == 0 {
		for h, ranks := range c.NVLSHeads {
			var b strings.Builder
			for _, r := range ranks[:min(len(ranks), 20)] {
				fmt.Fprintf(&b, " %2d", r)
			}
			l.add(Init, "NVLS Head %2d:%s", h, b.String())
		}
	}
	a, up0 := c.NVLS[0].TreeDown[rank], c.NVLS[0].TreeUp[rank]
	var b [3]int32
	var up1 int32 // the second channel's memory is still zero where there is one only
	if len(c.NVLS) > 1 {
		b, up1 = c.NVLS[1].TreeDown[rank], c.NVLS[1].TreeUp[rank]
	}
	l.add(Graph, "NVLS Trees : %d/%d/%d->%d->%d %d/%d/%d->%d->%d", a[0], a[1], a[2], rank, up0, b[0], b[1],
		b[2], rank, up1)
}

// nvlsTuning prints the channels and chunks of NVLS (2.30.7 transport/nvls.cc:242),
// which is before the graphs of all ranks are joined (init.cc:1456).
func (l *log) nvlsTuning(c *comm.Comm, rank int32) {
	if !c.Rules.Log.NVLSTuning || len(c.NVLS) == 0 {
		return
	}
	l.add(Init, "NVLS tuning: nChannels %d chunkSize %d treeMaxChunkSize %d", c.NVLSCount[rank],
		c.NVLSChunkSize, c.NVLSTreeLimit(c.Params.Plan.NVLSTreeMaxChunk))
}

// ringOrder prints a ring as NCCL fits it in 128 bytes (rings.cc:9).
func (l *log) ringOrder(channel, of int, order []int32) {
	const size = 128
	width := len(fmt.Sprint(len(order) - 1))
	b := fmt.Appendf(nil, "Channel %02d/%02d :", channel, of)
	for _, r := range order {
		if len(b) >= size-1 {
			break
		}
		b = fmt.Appendf(b, " %*d", width, r)
	}
	if len(b) >= size {
		b = append(b[:size-4], "..."...)
	}
	l.add(Init, "%s", b)
}

// wideRing prints a ring as NCCL did before 2.23.4 (2.22.3 rings.cc:12).
func (l *log) wideRing(channel, of int, order []int32) {
	const most = 20
	b := fmt.Appendf(nil, "Channel %02d/%02d : ", channel, of)
	for _, r := range order[:min(len(order), most)] {
		b = fmt.Appendf(b, " %3d", r)
	}
	l.add(Init, "%s", b)
}

// links logs the rank's rings and trees (init.cc:1244).
func (l *log) links(c *comm.Comm, rank int32) {
	line := ""
	for i := range c.Channels {
		ring, t := c.Channels[i].Ring[rank], c.Channels[i].Tree[rank]
		l.add(Graph, "Ring %02d : %d -> %d -> %d", i, ring.Prev, rank, ring.Next)
		if room := lineSize - 1 - len(line); room > 0 {
			line += cut(fmt.Sprintf(" [%d] %d/%d/%d->%d->%d", i, t.Down[0], t.Down[1], t.Down[2], rank, t.Up),
				room)
		}
	}
	l.add(Init, "Trees%s", line)
}
