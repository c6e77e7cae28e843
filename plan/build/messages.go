package build

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
)

// messages generates the programs of a list of messages, as p2p does for operations with a fixed pattern.
type messages struct {
	p2p
	list  []plan.Message
	lists [][]plan.Exchange // by rank
	conn  []int32           // message → its first connection id
	conns int32
	ends  []int32 // connection id → message
}

// Messages makes the plan of a group's messages; each rank executes its exchanges in order. Messages that no
// exchange names have no connections. Only Params and Direct of req are used.
func Messages(c *connect.Layout, req plan.Request, list []plan.Message, lists [][]plan.Exchange) (*plan.Plan,
	error) {
	req = plan.Request{Func: coll.SendRecv, Type: coll.Int8, Params: req.Params, Direct: req.Direct}
	for _, own := range lists {
		req.Count = max(req.Count, channels.Sent(list, own))
	}
	sizer, err := channels.NewSizer(c, req.Params, "send/recv")
	if err != nil {
		return nil, err
	}
	sizer.Direct = req.Direct
	out := &messages{p2p: p2p{base: base{comm: c, req: req}, Sizer: sizer, peersPerRank: 1}, list: list,
		lists: lists, conn: make([]int32, len(list))}
	if err := out.number(); err != nil {
		return nil, err
	}
	return plan.New(c, req, plan.Split{}, out)
}

// number gives every message of the kernel a connection for each of its parts. In NCCL a pair of ranks has
// one FIFO per channel, which later messages reuse; here each message has its own.
func (g *messages) number() error {
	sent, taken := make([]bool, len(g.list)), make([]bool, len(g.list))
	for _, list := range g.lists {
		for i := range list {
			x := &list[i]
			if x.Send >= 0 {
				sent[x.Send] = true
			}
			if x.Recv >= 0 {
				taken[x.Recv] = true
			}
		}
	}
	for i := range g.list {
		g.conn[i] = g.conns
		if sent[i] != taken[i] {
			m := &g.list[i]
			return &plan.UnsupportedError{What: fmt.Sprintf("a message of %d bytes from rank %d to rank %d",
				m.Bytes, m.Src, m.Dst),
				Why: "its send and its receive come in different kernels of the group"}
		}
		if !sent[i] || g.list[i].Src == g.list[i].Dst {
			continue
		}
		m := &g.list[i]
		t := g.Message(m, g.fixed, g.Of(m.Src, m.Dst), false)
		for range t.Parts {
			g.ends = append(g.ends, int32(i))
		}
		g.conns += int32(t.Parts)
	}
	return nil
}

// worksOf lists the works of a rank, by channel, batch and place in the batch.
func (g *messages) worksOf(rank int32) []work {
	if g.comm.Rules.Plan.P2PPieces {
		return g.pieceWorks(rank)
	}
	var out []work
	type place struct{ batch, n int32 }
	open := make([]place, g.comm.P2PChannels)
	for i := range g.lists[rank] {
		x := &g.lists[rank][i]
		w := work{send: channels.Transfer{Bytes: -1}, recv: channels.Transfer{Bytes: -1}}
		if x.Send >= 0 {
			w.send = g.Message(&g.list[x.Send], g.fixed, int(x.Round), false)
		}
		if x.Recv >= 0 {
			w.recv = g.Message(&g.list[x.Recv], g.fixed, int(x.Round), true)
		}
		for part, batch := range x.Batch {
			ch := g.Channel(rank, w.send.Peer, int(x.Round), part)
			if p := &open[ch]; p.batch != batch {
				*p = place{batch: batch}
			}
			w.channel, w.phase, w.index, w.part = ch, batch, open[ch].n, part
			w.sendConn, w.recvConn = g.connOf(x.Send, part), g.connOf(x.Recv, part)
			open[ch].n++
			out = append(out, w)
		}
	}
	return byChannel(out, g.comm.P2PChannels)
}

func (g *messages) connOf(message int32, part int) int32 {
	if message < 0 {
		return -1
	}
	return g.conn[message] + int32(part)
}

// AppendPrograms implements plan.Generator.
func (g *messages) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return g.programsOf(dst, rank, g.worksOf(rank))
}

// NumConns implements plan.Generator.
func (g *messages) NumConns() int64 { return int64(g.conns) }

// Sharing implements plan.SharingGenerator.
func (g *messages) Sharing() int { return 1 }

// Conn implements plan.Generator.
func (g *messages) Conn(c *plan.Conn) {
	i := g.ends[c.ID]
	m := &g.list[i]
	c.Kind = connect.P2PRoute
	c.Src, c.Dst = m.Src, m.Dst
	c.Channel = g.Channel(m.Src, m.Dst, g.Of(m.Src, m.Dst), int(c.ID-g.conn[i]))
}
