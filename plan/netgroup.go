package plan

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Network stands for the network that reduces (CollNet) where a Conn names a
// rank.
const Network = connect.Network

// netChannels is how many channels of a head travel in one operation of the
// network (COLLNET_GROUP_NSUBS, transport/coll_net.cc:32).
const netChannels = 8

// NetGroup is what the network handles together: up to eight channels of one
// head of every node. Each rank has two Conns with the network on each of the
// channels, one to it and one from it. Step n of the group is one operation of
// the network: it starts when every Conn to the network, of all ranks and
// channels, holds its step n and every Conn from the network has room for its
// own, and fills that step of all Conns from the network. A head starts the
// steps of its groups in turn: step n of the last before step n+1 of the first
// (transport/coll_net.cc:947).
//
// In all-reduce a Conn from the network gets the sum of what all ranks sent on
// that channel. In all-gather and reduce-scatter steps run through the blocks
// of all nodes, laid end to end: a node has a part in a step where its block
// does (NetSpan).
type NetGroup struct {
	Ranks    []int32 // the head of each node, by node
	Channels []int32
	// Chunk is what a channel takes of a step. First is the place of Channels[0]
	// among the Total channels of the head.
	Chunk        units.Bytes
	First, Total int32
}

// NetGroups lists the plan's groups; Conn.NetGroup is an index in it. The
// result is not to be changed.
func (p *Plan) NetGroups() []NetGroup {
	if p.kind == listed {
		return p.list.NetGroups
	}
	return p.nets
}

// NetSpan is what of one step of the network concerns one node.
type NetSpan struct {
	// Off and Bytes are the step's place in the blocks of all nodes, laid end to
	// end. Mine and MyBytes are the place of the node's part in it, counted from
	// Off. All-reduce has no blocks: all of the step is everybody's.
	Off, Bytes    units.Bytes
	Mine, MyBytes units.Bytes
}

// NetSpan returns the part that a node has in step n of a channel of a group,
// given by its index in Channels (transport/coll_net.cc:677). The network
// moves it whole: in all-reduce that is a full chunk of every channel, even
// where the data does not fill it (coll_net.cc:703).
func (p *Plan) NetSpan(group, channel, node int32, n int64) NetSpan {
	g := &p.NetGroups()[group]
	chunk := int64(g.Chunk)
	off := (n*int64(g.Total) + int64(g.First+channel)) * chunk
	if p.Req.Func == coll.AllReduce {
		return NetSpan{Off: units.Bytes(off), Bytes: g.Chunk, MyBytes: g.Chunk}
	}
	block := p.Req.Count * int64(p.Req.Type.Size())
	return spanOf(off, chunk, block, int64(len(g.Ranks)), int64(node))
}

// spanOf cuts a piece of the blocks of all nodes.
func spanOf(off, bytes, block, nodes, node int64) NetSpan {
	end := min(off+bytes, nodes*block)
	off = min(off, nodes*block)
	lo := min(max(off, node*block), end)
	hi := max(min(end, (node+1)*block), lo)
	return NetSpan{units.Bytes(off), units.Bytes(end - off), units.Bytes(lo - off), units.Bytes(hi - lo)}
}

// NetBytes returns what a node's head gives to the network and takes from it
// in step n of a group, over all of the group's channels.
func (p *Plan) NetBytes(group, node int32, n int64) (send, recv units.Bytes) {
	g := &p.NetGroups()[group]
	for ch := range g.Channels {
		s := p.NetSpan(group, int32(ch), node, n)
		switch p.Req.Func {
		case coll.AllGather:
			send, recv = send+s.MyBytes, recv+s.Bytes
		case coll.ReduceScatter:
			send, recv = send+s.Bytes, recv+s.MyBytes
		default:
			send, recv = send+s.Bytes, recv+s.Bytes
		}
	}
	return send, recv
}

// buildNets groups the channels of the split by the ranks that meet in the
// network: on each channel so many sets of ranks, each listed by node.
func (p *Plan) buildNets(sets int, ranks func(ch int32, set int) []int32) error {
	n := p.Comm.NRanks
	owner := make([]int32, n) // rank → set + 1
	var met []NetGroup
	for ch := int32(p.Split.ChannelLo); ch <= int32(p.Split.ChannelHi); ch++ {
		for set := range sets {
			of := ranks(ch, set)
			at := owner[of[0]]
			if at == 0 {
				if err := p.checkRail(of); err != nil {
					return err
				}
				met = append(met, NetGroup{Ranks: of, Chunk: p.Split.Lo.ChunkSize})
			}
			for _, r := range of {
				if owner[r] != at {
					return &RequestError{"Comm", fmt.Sprintf("on channel %d rank %d meets other ranks in the network than on those before", ch, r)}
				}
				if at == 0 {
					owner[r] = int32(len(met))
				}
			}
			g := &met[owner[of[0]]-1]
			g.Channels = append(g.Channels, ch)
		}
	}
	p.netOf = slices.Repeat([]int32{-1}, n*p.Split.NChannels)
	for _, g := range met {
		all := g.Channels
		g.Total = int32(len(all))
		for g.Channels = range slices.Chunk(all, netChannels) {
			for _, ch := range g.Channels {
				for _, r := range g.Ranks {
					p.netOf[(int(ch)-p.Split.ChannelLo)*n+int(r)] = int32(len(p.nets))
				}
			}
			p.nets = append(p.nets, g)
			g.First += int32(len(g.Channels))
		}
	}
	return nil
}

// checkRail makes sure that NCCL connects these ranks, one of each node, with
// each other: it connects the heads of equal index (transport.cc:319).
func (p *Plan) checkRail(ranks []int32) error {
	all := p.Comm.CollNet.NetHeads
	h := -1
	for node, r := range ranks {
		i := -1
		if node < len(all) {
			i = slices.Index(all[node], r)
		}
		if i < 0 || node > 0 && i != h {
			return &RequestError{"Comm", fmt.Sprintf("rank %d is not connected to the network as rank %d is", r, ranks[0])}
		}
		h = i
	}
	return nil
}

// netConn makes c the connection of a head to the network, or from it.
func (p *Plan) netConn(c *Conn, head int32, from bool) {
	group := p.netOf[(int(c.Channel)-p.Split.ChannelLo)*p.Comm.NRanks+int(head)]
	if group < 0 {
		return
	}
	c.Kind, c.NetGroup = connect.CollNetRoute, group
	c.Src, c.Dst = head, Network
	if from {
		c.Src, c.Dst = Network, head
	}
}
