package build

import (
	"cmp"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/units"
)

// p2p generates the programs of operations made of sends and receives.
type p2p struct {
	base
	*channels.Sizer
	peersPerRank int64 // number of destinations per source with connection ids of their own
	// fixed, in a shortened plan, is the division that all transfers use whatever their bytes; else nil.
	fixed  *channels.Transfer
	turned int32 // ranks of a node if ids are shared (plan.SharingGenerator), else 0
}

// newP2P computes the schedule of rounds and the channel counts
// (enqueue.cc:1052-1056).
func newP2P(b base) (plan.Generator, error) {
	if r := &b.req; r.Count == 0 && r.Func != coll.SendRecv && r.Func != coll.Send {
		return noOps{}, nil
	}
	sizer, err := channels.NewSizer(b.comm, b.req.Params, b.req.Func.String())
	if err != nil {
		return nil, err
	}
	switch sizer.Direct = b.req.Direct; b.req.Func {
	case coll.Send, coll.Gather, coll.Scatter:
		err = sizer.Hub(b.req.Func == coll.Send, b.req.Func.String())
	}
	if err != nil {
		return nil, err
	}
	g := &p2p{base: b, Sizer: sizer, peersPerRank: 1}
	if c := b.comm; b.req.Func == coll.AllToAll {
		g.peersPerRank = int64(c.NRanks)
		if per := int64(len(c.NodeRanks[0])); g.NumConns() > math.MaxInt32 && equalNodes(c) &&
			per*g.peersPerRank*int64(g.ChMax) <= math.MaxInt32 {
			g.turned = int32(per)
		}
	}
	return g, nil
}

// equalNodes reports whether all nodes have the same number of ranks, and consecutive ranks.
func equalNodes(c *connect.Layout) bool {
	per := len(c.NodeRanks[0])
	for i, ranks := range c.NodeRanks {
		if len(ranks) != per {
			return false
		}
		for j, r := range ranks {
			if int(r) != i*per+j {
				return false
			}
		}
	}
	return true
}

// transfers returns a rank's send and receive in a round.
func (g *p2p) transfers(rank int32, round int) (send, recv channels.Transfer) {
	to, from := g.Peers(rank, round)
	n := int32(g.comm.NRanks)
	bytes, step := g.req.Count*int64(g.req.Type.Size()), g.req.BlockStep()
	root := g.req.Root
	send, recv = channels.Transfer{Peer: to, Bytes: -1}, channels.Transfer{Peer: from, Bytes: -1}
	switch g.req.Func {
	case coll.SendRecv:
		if to == (rank+1)%n {
			send.Bytes = bytes
		}
		if from == (rank-1+n)%n {
			recv.Bytes = bytes
		}
	case coll.AllToAll:
		if g.req.Pairs != nil {
			channels.PairTransfers(g.req.Pairs, int64(g.req.Type.Size()), rank, &send, &recv)
			break
		}
		send.Bytes, send.Off, send.At = bytes, int64(to)*step, int64(rank)*step
		recv.Bytes, recv.Off = bytes, int64(from)*step
		if g.req.Same {
			send.Off = 0
		}
	case coll.Gather:
		if to == root {
			send.Bytes, send.At = bytes, int64(rank)*step
		}
		if rank == root {
			recv.Bytes, recv.Off = bytes, int64(from)*step
		}
	case coll.Scatter:
		if rank == root {
			send.Bytes, send.Off = bytes, int64(to)*step
		}
		if from == root {
			recv.Bytes = bytes
		}
	}
	if g.req.Func == coll.Send && g.Of(root, g.req.Peer) == round {
		if rank == root && to == g.req.Peer {
			send.Bytes = bytes
		}
		if rank == g.req.Peer && from == root {
			recv.Bytes = bytes
		}
	}
	if to < 0 {
		send.Bytes = -1
	}
	if from < 0 {
		recv.Bytes = -1
	}
	if to == rank && g.req.InPlace && !g.req.Same && !g.comm.Rules.Plan.P2PPieces &&
		(g.req.Pairs == nil || send.Off == recv.Off) {
		send.Bytes, recv.Bytes = -1, -1
	}
	g.size(&send, rank, to, round)
	g.size(&recv, from, rank, round)
	return send, recv
}

// size sets a transfer's protocol, parts and chunks.
func (g *p2p) size(t *channels.Transfer, src, dst int32, round int) {
	g.SizeAs(t, g.fixed, src, dst, round)
}

// work is a rank's send and receive of one round on one channel.
type work struct {
	channel, phase int32
	index          int32 // within the batch; with P2PPieces, receives have even indexes and sends odd ones
	part           int
	idle           bool // no data is moved, though it occupies an index
	send, recv     channels.Transfer
	// Connections of the part; -1 if the rank does not send, or receive.
	sendConn, recvConn int32
}

// eachRound calls do for every round in which the rank sends or receives.
func (g *p2p) eachRound(rank int32, do func(round int)) {
	n := int32(g.comm.NRanks)
	var some [2]int
	switch {
	case g.req.Func == coll.Send:
		if rank == g.req.Root || rank == g.req.Peer {
			do(g.Of(g.req.Root, g.req.Peer))
		}
		return
	case g.req.Func == coll.SendRecv:
		some = [2]int{g.Of(rank, (rank+1)%n), g.Of((rank-1+n)%n, rank)}
	case g.req.Func == coll.Gather && rank != g.req.Root:
		some = [2]int{g.Of(rank, g.req.Root), g.Of(rank, g.req.Root)}
	case g.req.Func == coll.Scatter && rank != g.req.Root:
		some = [2]int{g.Of(g.req.Root, rank), g.Of(g.req.Root, rank)}
	default:
		for k := range g.Len() {
			do(k)
		}
		return
	}
	do(min(some[0], some[1]))
	if some[0] != some[1] {
		do(max(some[0], some[1]))
	}
}

// works lists the works of a rank, by channel, batch and place in the batch, as addWorkBatchToPlan does
// (enqueue.cc:110): a batch of a channel holds up to eight (Sizer.Batch) transfers of the same eight rounds.
// All batches are one kernel here; NCCL starts another kernel after about 250 works (testBudget), from about
// a thousand ranks on.
func (g *p2p) works(rank int32) []work {
	if g.comm.Rules.Plan.P2PPieces {
		return g.pieces(rank)
	}
	var list []work
	if c := g.comm; g.req.Func == coll.AllToAll || rank == g.req.Root {
		list = make([]work, 0, c.NRanks)
	}
	type batch struct{ phase, n, epoch, most int32 }
	var few [64]batch
	open := few[:]
	if n := g.comm.P2PChannels; n > len(few) {
		open = make([]batch, n)
	}
	g.eachRound(rank, func(round int) {
		send, recv := g.transfers(rank, round)
		if send.Bytes < 0 && recv.Bytes < 0 {
			return
		}
		parts := max(send.Parts, recv.Parts)
		if list == nil {
			list = make([]work, 0, 2*parts)
		}
		for part := range parts {
			ch := g.Channel(rank, send.Peer, round, part)
			b := &open[ch]
			epoch := int32(0)
			if g.comm.Rules.Plan.BatchByRound {
				epoch = int32(round / g.Batch)
			}
			most := int32(g.Most(send.Bytes, recv.Bytes))
			if b.n > 0 && (b.n >= min(b.most, most) || b.epoch != epoch) {
				b.phase++
				b.n = 0
			}
			b.epoch, b.most = epoch, most
			list = append(list, work{channel: ch, phase: b.phase, index: b.n, part: part, send: send,
				recv:     recv,
				sendConn: g.connID(rank, send.Peer, part), recvConn: g.connID(recv.Peer, rank, part)})
			b.n++
		}
	})
	return byChannel(list, g.comm.P2PChannels)
}

// fewWorks is the length up to which a list of works is sorted in place.
const fewWorks = 16

// byChannel sorts works by channel. The works of a channel are already in the order of their batches.
func byChannel(list []work, channels int) []work {
	if len(list) <= fewWorks {
		slices.SortStableFunc(list, func(a, b work) int { return cmp.Compare(a.channel, b.channel) })
		return list
	}
	next := make([]int, channels+1)
	for i := range list {
		next[list[i].channel+1]++
	}
	for ch := range channels {
		next[ch+1] += next[ch]
	}
	out := make([]work, len(list))
	for i := range list {
		at := &next[list[i].channel]
		out[*at] = list[i]
		*at++
	}
	return out
}

// AppendPrograms implements plan.Generator: a rank's send, receive and copy
// groups, with the warps that the kernel gives them (sendrecv.h:94-165).
func (g *p2p) AppendPrograms(dst []plan.Program, rank int32) []plan.Program {
	return g.programsOf(dst, rank, g.works(rank))
}

// programsOf appends the thread groups of works that are sorted by channel.
func (g *p2p) programsOf(dst []plan.Program, rank int32, list []work) []plan.Program {
	dst = slices.Grow(dst, 2*len(list))
	group, n := int32(0), 0
	for i := range list {
		w := &list[i]
		if i > 0 && list[i-1].channel != w.channel {
			group = 0
		}
		if i == 0 || list[i-1].channel != w.channel || list[i-1].phase != w.phase {
			n = 0
			for j := i; j < len(list) && list[j].channel == w.channel && list[j].phase == w.phase; j++ {
				n = max(n, int(list[j].index)+1)
			}
		}
		before := len(dst)
		dst = g.workPrograms(dst, rank, w, n)
		for k := before; k < len(dst); k++ {
			dst[k].Group = group
			group++
		}
	}
	return dst
}

// warpsOf returns the warps of a send and of a receive in a batch of n works.
func (g *p2p) warpsOf(n int) (send, recv int) {
	if g.comm.Rules.Plan.P2PPieces {
		return pieceWarps(n)
	}
	warps := channels.Threads(g.comm) / int(g.lanes()) / n
	if warps > 4 {
		recv = (warps - 1) / 2
		return recv + 1, recv
	}
	return warps / 2, warps / 2
}

// workPrograms appends the thread groups of one of n works of a batch.
func (g *p2p) workPrograms(dst []plan.Program, rank int32, w *work, n int) []plan.Program {
	if w.idle {
		return dst
	}
	pieces := g.comm.Rules.Plan.P2PPieces
	sendWarps, recvWarps := g.warpsOf(n)
	pr := plan.Program{Rank: rank, Channel: w.channel, Phase: w.phase, Proto: coll.Simple, Slices: 1,
		SliceSteps: 1}
	if w.send.Bytes >= 0 && w.send.Peer == rank {
		begin, end := w.send.Bounds(w.part)
		pr.Role, pr.Threads = plan.RoleCopy, int32(sendWarps)*plan.WarpSize
		if !pieces {
			pr.Threads += int32(recvWarps) * g.lanes()
		}
		pr.Transfer = plan.Transfer{Off: units.Bytes(w.send.Off + begin),
			Dst:   units.Bytes(w.recv.Off + begin),
			Bytes: units.Bytes(end - begin), Chunk: units.Bytes(end - begin)}
		return append(dst, g.workers(pr, false))
	}
	hasSend, hasRecv := w.send.Bytes >= 0 && w.part < w.send.Parts, w.recv.Bytes >= 0 && w.part < w.recv.Parts
	if !hasSend && !pieces {
		recvWarps += sendWarps
	}
	if !hasRecv && !pieces {
		sendWarps += recvWarps
	}
	if hasSend {
		pr.Role, pr.Threads = plan.RoleSend, int32(sendWarps)*plan.WarpSize
		dst = append(dst, g.moves(pr, &w.send, w.part, w.sendConn))
	}
	if hasRecv {
		pr.Role, pr.Threads = plan.RoleRecv, int32(recvWarps)*plan.WarpSize
		dst = append(dst, g.moves(pr, &w.recv, w.part, w.recvConn))
	}
	return dst
}

// moves completes a program that moves part of a transfer over a connection.
func (g *p2p) moves(pr plan.Program, t *channels.Transfer, part int, conn int32) plan.Program {
	begin, end := t.Bounds(part)
	proto, chunk := t.Cut(part)
	pr.Proto = proto
	pr.Transfer = plan.Transfer{Conn: conn, Off: units.Bytes(t.Off + begin), Bytes: units.Bytes(end - begin),
		Chunk: units.Bytes(chunk)}
	if g.Direct && pr.Role == plan.RoleSend {
		pr.Transfer.Dst = units.Bytes(t.At + begin)
	}
	return g.workers(pr, pr.Role == plan.RoleSend)
}

// connID numbers connections by one end (the end that differs between ranks), the other end (all-to-all
// only), and the part.
func (g *p2p) connID(src, dst int32, part int) int32 {
	if g.turned > 0 {
		n, first := int32(g.comm.NRanks), src/g.turned*g.turned
		src, dst = src-first, (dst-first+n)%n
	}
	id := int64(src)
	switch g.req.Func {
	case coll.AllToAll:
		id = id*g.peersPerRank + int64(dst)
	case coll.Scatter:
		id = int64(dst)
	}
	return int32(id*int64(g.ChMax) + int64(part))
}

// Sharing implements plan.SharingGenerator.
func (g *p2p) Sharing() int {
	if g.turned > 0 {
		return g.comm.NNodes
	}
	return 1
}

// NumConns implements plan.Generator.
func (g *p2p) NumConns() int64 {
	if g.turned > 0 {
		return int64(g.turned) * g.peersPerRank * int64(g.ChMax)
	}
	return int64(g.comm.NRanks) * g.peersPerRank * int64(g.ChMax)
}

// Conn implements plan.Generator.
func (g *p2p) Conn(c *plan.Conn) {
	part := int(c.ID) % g.ChMax
	id := c.ID / int32(g.ChMax)
	n := int32(g.comm.NRanks)
	src, dst := id, g.req.Root
	switch g.req.Func {
	case coll.SendRecv:
		dst = (id + 1) % n
	case coll.Send:
		dst = g.req.Peer
	case coll.AllToAll:
		src, dst = id/n, id%n
	case coll.Scatter:
		src, dst = g.req.Root, id
	}
	c.Kind = connect.P2PRoute
	if src == dst {
		return
	}
	c.Src, c.Dst = src, dst
	c.Channel = g.Channel(src, dst, g.Of(src, dst), part)
}

// NumOps implements plan.Generator.
func (g *p2p) NumOps(pr *plan.Program) int64 {
	t := &pr.Transfer
	return max(1, channels.DivUp(int64(t.Bytes), max(int64(t.Chunk), 1)))
}

// Open implements plan.Generator.
func (g *p2p) Open(pr *plan.Program, old plan.Stream) plan.Stream {
	s := reuse[p2pStream](old)
	s.open(pr)
	t := &pr.Transfer
	s.role, s.part = pr.Role, *t
	s.from, s.to = append(s.from, t.Conn), append(s.to, t.Conn)
	s.done, s.iter = 0, 0
	return s
}

// p2pStream is the stream of one part of a transfer, chunk by chunk.
type p2pStream struct {
	stream
	role plan.Role
	part plan.Transfer
	done units.Bytes
	iter int32
}

// Next makes the next op. An empty transfer takes one step, too (sendrecv.h:25-33).
func (s *p2pStream) Next(op *plan.Op) bool {
	t := &s.part
	if s.done >= t.Bytes && s.seq > 0 {
		return false
	}
	bytes := min(max(t.Chunk, 1), t.Bytes-s.done)
	op.Chunk = s.iter
	src := plan.Ref{Buf: plan.Input, Off: t.Off + s.done}
	switch s.role {
	case plan.RoleSend:
		s.emit(op, plan.Send, int64(bytes))
		op.Src = src
	case plan.RoleRecv:
		s.emit(op, plan.Recv|plan.Copy, int64(bytes))
		op.Dst = plan.Ref{Buf: plan.Output, Off: t.Off + s.done}
	default:
		s.emit(op, plan.Copy, int64(bytes))
		op.Src, op.Dst = src, plan.Ref{Buf: plan.Output, Off: t.Dst + s.done}
	}
	s.done += max(bytes, 1)
	s.iter++
	return true
}
