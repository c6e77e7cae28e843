package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Network is the network that reduces (CollNet) where a Conn names a rank.
const Network = connect.Network

// NetGroup is what the network handles together: up to eight channels of one
// head of every node. Each rank has two Conns with the network on each of the
// channels, one to it and one from it. Step n of the group is one operation of
// the network: it starts when every Conn to the network, of all ranks and
// channels, holds its step n and every Conn from the network has room for its
// own, and fills that step of all Conns from the network. A head starts the
// steps of its groups round-robin: step n of the last before step n+1 of the first
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
func (p *Plan) NetGroups() []NetGroup { return p.nets }

// NetSpan is what of one step of the network concerns one node.
type NetSpan struct {
	// Off and Bytes are the step's place in the blocks of all nodes, laid end to
	// end. Mine and MyBytes are the place of the node's part in it, counted from
	// Off. All-reduce has no blocks: the whole step concerns every node.
	Off, Bytes    units.Bytes
	Mine, MyBytes units.Bytes
}

// NetSpan returns the part that a node has in step n of a channel of a group,
// given by its index in Channels (transport/coll_net.cc:677). The network
// moves it whole: in all-reduce that is a full chunk of every channel, even
// where the data does not fill it (coll_net.cc:703).
func (p *Plan) NetSpan(group, channel, node int32, n int64) NetSpan {
	g := &p.nets[group]
	chunk := int64(g.Chunk)
	off := (n*int64(g.Total) + int64(g.First+channel)) * chunk
	if p.Req.Func == coll.AllReduce {
		return NetSpan{Off: units.Bytes(off), Bytes: g.Chunk, MyBytes: g.Chunk}
	}
	block := p.Req.Count * int64(p.Req.Type.Size())
	return SpanOf(off, chunk, block, int64(len(g.Ranks)), int64(node))
}

// SpanOf returns what of the bytes that begin at off, in the blocks of all nodes laid end
// to end, concerns one node.
//
// With blocks of 10 bytes, bytes 8 to 15 are the last two of node 0's block and
// the first six of node 1's: for node 1 SpanOf(8, 8, 10, nodes, 1) has Off 8,
// Bytes 8, Mine 2 and MyBytes 6.
func SpanOf(off, bytes, block, nodes, node int64) NetSpan {
	end := min(off+bytes, nodes*block)
	off = min(off, nodes*block)
	lo := min(max(off, node*block), end)
	hi := max(min(end, (node+1)*block), lo)
	return NetSpan{units.Bytes(off), units.Bytes(end - off), units.Bytes(lo - off), units.Bytes(hi - lo)}
}

// NetBytes returns what a node's head gives to the network and takes from it
// in step n of a group, over all of the group's channels.
func (p *Plan) NetBytes(group, node int32, n int64) (send, recv units.Bytes) {
	g := &p.nets[group]
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
