package plan

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/units"
)

// Network takes the place of a rank in a Conn for the network that reduces (CollNet).
const Network = connect.Network

// NetGroup is the unit that the network handles together: up to eight channels of one head of every node.
// Each rank has two Conns with the network on each of the channels, one to it and one from it. Step n of the
// group is one operation of the network: it starts when every Conn to the network, of all ranks and channels,
// holds its step n and every Conn from the network has room for its step n, and fills that step of all Conns
// from the network. A head starts the steps of its groups round-robin: step n of the last before step n+1 of
// the first (transport/coll_net.cc:947).
//
// In all-reduce a Conn from the network receives the sum of the data that all ranks sent on that channel. In
// all-gather and reduce-scatter the steps run through the blocks of all nodes, laid end to end: a node takes
// part in a step that overlaps its block (NetSpan).
type NetGroup struct {
	Ranks    []int32 // the head of each node, by node
	Channels []int32
	// Chunk is the bytes of a step on one channel. First is the index of Channels[0] among the Total channels
	// of the head.
	Chunk        units.Bytes
	First, Total int32
}

// NetGroups lists the plan's groups; Conn.NetGroup is an index into it. The caller must not change the
// result.
func (p *Plan) NetGroups() []NetGroup { return p.nets }

// NetSpan is the part of one step of the network that concerns one node.
type NetSpan struct {
	// Off and Bytes are the step's range in the blocks of all nodes, laid end to end. Mine and MyBytes are
	// the range of the node's part in it, counted from Off. All-reduce has no blocks: the whole step concerns
	// every node.
	Off, Bytes    units.Bytes
	Mine, MyBytes units.Bytes
}

// NetSpan returns a node's part in step n of a channel of a group; channel is an index into Channels
// (transport/coll_net.cc:677). In all-reduce the network moves a full chunk of every channel, even where the
// data does not fill it (coll_net.cc:703).
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

// SpanOf returns the part that concerns one node of the bytes that begin at off, in the blocks of all nodes
// laid end to end.
//
// With blocks of 10 bytes, bytes 8 to 15 are the last two of node 0's block and the first six of node 1's:
// for node 1 SpanOf(8, 8, 10, nodes, 1) has Off 8, Bytes 8, Mine 2 and MyBytes 6.
func SpanOf(off, bytes, block, nodes, node int64) NetSpan {
	end := min(off+bytes, nodes*block)
	off = min(off, nodes*block)
	lo := min(max(off, node*block), end)
	hi := max(min(end, (node+1)*block), lo)
	return NetSpan{units.Bytes(off), units.Bytes(end - off), units.Bytes(lo - off), units.Bytes(hi - lo)}
}

// NetBytes returns the bytes that a node's head sends to the network and receives from it in step n of a
// group, over all of the group's channels.
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
