package build

import (
	"fmt"
	"math"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/rounds"
	"github.com/simccl/simccl/units"
)

const (
	p2pWarps  = 640 / 32 // a send/recv kernel has NCCL_MAX_NTHREADS (enqueue.cc:1045)
	partGrain = 4 << 10  // parts of a transfer start at such offsets (ncclP2pPartBounds)
)

// p2p generates the programs of operations made of sends and receives.
type p2p struct {
	base
	rounds.Rounds
	chMin, chMax int       // channels of a transfer
	llMax        int64     // bytes up to which LL is used
	peersPerRank int64     // destinations per source with connection ids of their own
	fixed        *transfer // of what size chunks and parts are; nil: of the transfer's own
	turned       int32     // ranks of a node where ids are shared (plan.SharingGenerator), else 0
}

// newP2P computes the schedule of rounds and the channel counts
// (enqueue.cc:1052-1056).
func newP2P(b base) (plan.Generator, error) {
	c, r := b.comm, &b.req
	if r.Count == 0 && r.Func != coll.SendRecv {
		return noOps{}, nil
	}
	if c.P2PChannels < 1 || c.P2PChannels&(c.P2PChannels-1) != 0 || c.P2PChannelsPerPeer < 1 || c.P2PChannelsPerPeer > c.P2PChannels {
		return nil, badRequest("Comm", "%d send/recv channels, %d per peer: need a power of two, and no more per peer", c.P2PChannels, c.P2PChannelsPerPeer)
	}
	if c.P2PChunkSize < 1 || c.BuffSizes[coll.LL] < plan.FIFOSteps*16 || len(c.NodeRanks) != c.NNodes {
		return nil, badRequest("Comm", "send/recv needs P2PChunkSize, LL buffers and the ranks of each node")
	}
	g := &p2p{base: b, Rounds: rounds.New(c, r.Params), chMax: c.P2PChannelsPerPeer, chMin: c.P2PChannelsPerPeer, peersPerRank: 1}
	for g.chMin*c.NRanks > c.P2PChannels && g.chMin > 1 {
		g.chMin /= 2
	}
	if fixed := r.Params.ChunkSize.Or(0); fixed > min(int64(c.P2PChunkSize), int64(c.BuffSizes[coll.LL])/plan.FIFOSteps) {
		return nil, &plan.UnsupportedError{What: fmt.Sprintf("%v in chunks of %d bytes (NCCL_CHUNK_SIZE)", r.Func, fixed),
			Why: fmt.Sprintf("NCCL would write past the steps of its buffers, which have %d bytes, of LL %d", c.P2PChunkSize, c.BuffSizes[coll.LL]/plan.FIFOSteps)}
	}
	g.llMax = int64(g.chMax) * r.Params.P2PLLThreshold.Or(16384)
	if r.Func == coll.AllToAll {
		g.peersPerRank = int64(c.NRanks)
		if per := int64(len(c.NodeRanks[0])); g.NumConns() > math.MaxInt32 && equalNodes(c) && per*g.peersPerRank*int64(g.chMax) <= math.MaxInt32 {
			g.turned = int32(per)
		}
	}
	return g, nil
}

// equalNodes reports whether all nodes have equally many ranks, one node's after
// the other's.
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

// transfer is one send or receive of a rank, before it is divided into parts.
type transfer struct {
	peer  int32
	off   int64 // in Input (send) or Output (receive)
	bytes int64 // -1: none
	proto coll.Protocol
	parts int
	chunk int64
}

// transfers returns what rank sends and receives in a round.
func (g *p2p) transfers(rank int32, round int) (send, recv transfer) {
	to, from := g.Peers(rank, round)
	n := int32(g.comm.NRanks)
	bytes := g.req.Count * int64(g.req.Type.Size())
	root := g.req.Root
	send, recv = transfer{peer: to, bytes: -1}, transfer{peer: from, bytes: -1}
	switch g.req.Func {
	case coll.SendRecv:
		if to == (rank+1)%n {
			send.bytes = bytes
		}
		if from == (rank-1+n)%n {
			recv.bytes = bytes
		}
	case coll.AllToAll:
		send.bytes, send.off = bytes, int64(to)*bytes
		recv.bytes, recv.off = bytes, int64(from)*bytes
	case coll.Gather:
		if to == root {
			send.bytes = bytes
		}
		if rank == root {
			recv.bytes, recv.off = bytes, int64(from)*bytes
		}
	case coll.Scatter:
		if rank == root {
			send.bytes, send.off = bytes, int64(to)*bytes
		}
		if from == root {
			recv.bytes = bytes
		}
	}
	if to == rank && g.req.InPlace {
		send.bytes, recv.bytes = -1, -1
	}
	g.sizeTransfer(&send, rank, to, round)
	g.sizeTransfer(&recv, from, rank, round)
	return send, recv
}

// sizeTransfer sets protocol, chunk and number of parts (enqueue.cc:826-903).
// Both ends compute the same.
func (g *p2p) sizeTransfer(t *transfer, src, dst int32, round int) {
	if t.bytes < 0 {
		return
	}
	if f := g.fixed; f != nil {
		t.proto, t.chunk, t.parts = f.proto, f.chunk, f.parts
		return
	}
	c := g.comm
	net := false
	if src != dst && c.RouteOf != nil {
		for part := range g.chMax {
			ch := g.Channel(round, part)
			net = net || c.RouteOf(src, dst, int(ch), connect.P2PRoute).Transport == connect.NET
		}
	}
	// Network connections of send/recv share one buffer pool, which has no LL
	// buffers unless asked for (transport/net.cc:294, 893; init.cc:1063).
	most := g.llMax
	if c.Rules.Plan.LLByParts {
		most = int64(rounds.Parts(t.bytes, int64(c.P2PChunkSize), g.chMin, g.chMax, c.NNodes)) * g.req.Params.P2PLLThreshold.Or(16384)
	}
	ll := src != dst && t.bytes <= most
	if params := &g.req.Params; net && params.NetSharedBuffers.Or(1) != 0 && params.AllocP2PNetLL.Or(0) != 1 {
		ll = false
	}
	step := int64(c.P2PChunkSize)
	t.proto = coll.Simple
	if ll {
		t.proto = coll.LL
		step = int64(c.BuffSizes[coll.LL]) / plan.FIFOSteps
	}
	chunk := step
	switch fixed := g.req.Params.ChunkSize.Or(0); {
	case fixed > 0:
		chunk = fixed
	case net && !ll && t.bytes < step:
		chunk /= 4
	case net && t.bytes < 8*step:
		chunk /= 2
	}
	if ll {
		chunk /= 2
	}
	t.chunk = max(rounds.Mantissa(chunk), 1)
	if c.Rules.Plan.LLByParts {
		step = int64(c.P2PChunkSize)
	}
	t.parts = rounds.Parts(t.bytes, step, g.chMin, g.chMax, c.NNodes)
}

// bounds returns the share of a part.
func (t *transfer) bounds(part int) (begin, end int64) {
	size := alignUp(divUp(t.bytes, int64(t.parts)), partGrain)
	return min(int64(part)*size, t.bytes), min(int64(part+1)*size, t.bytes)
}

// work is a pair of transfers of one round as one channel sees it.
type work struct {
	channel, phase int32
	index          int32 // within the batch
	part           int
	send, recv     transfer
}

// eachRound calls do for every round in which the rank has something to do.
func (g *p2p) eachRound(rank int32, do func(round int)) {
	c, n := g.comm, int32(g.comm.NRanks)
	var some [2]int
	switch {
	case g.req.Func == coll.SendRecv:
		some = [2]int{g.Of(rank, (rank+1)%n), g.Of((rank-1+n)%n, rank)}
	case g.req.Func == coll.Gather && rank != g.req.Root:
		some = [2]int{g.Of(rank, g.req.Root), g.Of(rank, g.req.Root)}
	case g.req.Func == coll.Scatter && rank != g.req.Root:
		some = [2]int{g.Of(g.req.Root, rank), g.Of(g.req.Root, rank)}
	default:
		for k := range c.NRanks {
			do(k)
		}
		return
	}
	do(min(some[0], some[1]))
	if some[0] != some[1] {
		do(max(some[0], some[1]))
	}
}

// works lists what a rank does, by channel, batch and place in it, following
// addWorkBatchToPlan (enqueue.cc:110): a channel's batch takes up to eight
// transfers of the same eight rounds. All batches are one kernel here; NCCL
// starts another where about 250 have come together (testBudget), from about a
// thousand ranks on.
func (g *p2p) works(rank int32) []work {
	var list []work
	if c := g.comm; g.req.Func == coll.AllToAll || rank == g.req.Root {
		list = make([]work, 0, c.NRanks)
	}
	type batch struct{ phase, n, epoch int32 }
	open := make([]batch, g.comm.P2PChannels)
	g.eachRound(rank, func(round int) {
		send, recv := g.transfers(rank, round)
		if send.bytes < 0 && recv.bytes < 0 {
			return
		}
		for part := range max(send.parts, recv.parts) {
			ch := g.Channel(round, part)
			b := &open[ch]
			epoch := int32(0)
			if g.comm.Rules.Plan.BatchByRound {
				epoch = int32(round / rounds.WorksPerBatch)
			}
			if b.n == rounds.WorksPerBatch || (b.n > 0 && b.epoch != epoch) {
				b.phase++
				b.n = 0
			}
			b.epoch = epoch
			list = append(list, work{channel: ch, phase: b.phase, index: b.n, part: part, send: send, recv: recv})
			b.n++
		}
	})
	return byChannel(list, g.comm.P2PChannels)
}

// byChannel sorts works by channel. Those of a channel are in the order of their
// batches already.
func byChannel(list []work, channels int) []work {
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
	list := g.works(rank)
	group := int32(0)
	for i := range list {
		w := &list[i]
		if i > 0 && list[i-1].channel != w.channel {
			group = 0
		}
		n := 1
		for j := i + 1; j < len(list) && list[j].channel == w.channel && list[j].phase == w.phase; j++ {
			n++
		}
		n += int(w.index)
		before := len(dst)
		dst = g.workPrograms(dst, rank, w, n)
		for k := before; k < len(dst); k++ {
			dst[k].Group = group
			group++
		}
	}
	return dst
}

// workPrograms appends the groups of one work among n of a batch.
func (g *p2p) workPrograms(dst []plan.Program, rank int32, w *work, n int) []plan.Program {
	warps := p2pWarps / n
	recvWarps := warps / 2
	sendWarps := recvWarps
	if warps > 4 {
		recvWarps = (warps - 1) / 2
		sendWarps = recvWarps + 1
	}
	pr := plan.Program{Rank: rank, Channel: w.channel, Phase: w.phase, Proto: coll.Simple, Slices: 1, SliceSteps: 1}
	if w.send.bytes >= 0 && w.send.peer == rank {
		begin, end := w.send.bounds(w.part)
		pr.Role, pr.Threads = plan.RoleCopy, int32(sendWarps+recvWarps)*plan.WarpSize
		pr.Transfer = plan.Transfer{Off: units.Bytes(w.send.off + begin), Dst: units.Bytes(w.recv.off + begin),
			Bytes: units.Bytes(end - begin), Chunk: units.Bytes(end - begin)}
		return append(dst, withWorkers(pr, false))
	}
	hasSend, hasRecv := w.part < w.send.parts, w.part < w.recv.parts
	if !hasSend {
		recvWarps += sendWarps
	}
	if !hasRecv {
		sendWarps += recvWarps
	}
	if hasSend {
		pr.Role, pr.Threads = plan.RoleSend, int32(sendWarps)*plan.WarpSize
		dst = append(dst, g.moves(pr, &w.send, w.part, g.connID(rank, w.send.peer, w.part)))
	}
	if hasRecv {
		pr.Role, pr.Threads = plan.RoleRecv, int32(recvWarps)*plan.WarpSize
		dst = append(dst, g.moves(pr, &w.recv, w.part, g.connID(w.recv.peer, rank, w.part)))
	}
	return dst
}

// moves completes a program that moves a part of a transfer over a connection.
func (g *p2p) moves(pr plan.Program, t *transfer, part int, conn int32) plan.Program {
	begin, end := t.bounds(part)
	pr.Proto = t.proto
	pr.Transfer = plan.Transfer{Conn: conn, Off: units.Bytes(t.off + begin), Bytes: units.Bytes(end - begin), Chunk: units.Bytes(t.chunk)}
	return withWorkers(pr, pr.Role == plan.RoleSend)
}

// connID numbers connections by the end that is not the same for all, the other
// end (all-to-all only), and the part.
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
	return int32(id*int64(g.chMax) + int64(part))
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
		return int64(g.turned) * g.peersPerRank * int64(g.chMax)
	}
	return int64(g.comm.NRanks) * g.peersPerRank * int64(g.chMax)
}

// Conn implements plan.Generator.
func (g *p2p) Conn(c *plan.Conn) {
	part := int(c.ID) % g.chMax
	id := c.ID / int32(g.chMax)
	n := int32(g.comm.NRanks)
	src, dst := id, g.req.Root
	switch g.req.Func {
	case coll.SendRecv:
		dst = (id + 1) % n
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
	c.Channel = g.Channel(g.Of(src, dst), part)
}

// NumOps implements plan.Generator.
func (g *p2p) NumOps(pr *plan.Program) int64 {
	t := &pr.Transfer
	return max(1, divUp(int64(t.Bytes), max(int64(t.Chunk), 1)))
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

// p2pStream moves a part of a transfer, chunk by chunk.
type p2pStream struct {
	stream
	role plan.Role
	part plan.Transfer
	done units.Bytes
	iter int32
}

// Next makes the next op. Even an empty transfer takes one step
// (sendrecv.h:25-33).
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
