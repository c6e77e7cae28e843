package plan

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
)

const (
	worksPerBatch = 8        // NCCL_MAX_DEV_WORK_P2P_PER_BATCH, device.h:435
	p2pWarps      = 640 / 32 // a send/recv kernel has NCCL_MAX_NTHREADS (enqueue.cc:1045)
	partGrain     = 4 << 10  // parts of a transfer start at such offsets (ncclP2pPartBounds)
)

// p2pSchedule is the order in which ranks talk to each other: in round k a
// rank sends to one peer while another sends to it (init.cc:768-838).
type p2pSchedule struct {
	group   int     // ranks per group of the schedule
	groups  int     // groups in all
	groupOf []int32 // first group of each node
	rankAt  []int32 // group·size + place → rank
	round   []int32 // distance of groups → its position in the order
	delta   []int32 // position → distance of groups

	chMin, chMax int
	llMax        int64
	peers        int64 // destinations per source with own connection ids
}

// buildP2P computes the schedule of rounds and the channel counts
// (enqueue.cc:1052-1056).
func (p *Plan) buildP2P() error {
	c, r := p.Comm, &p.Req
	if r.Count == 0 && r.Func != coll.SendRecv {
		return nil
	}
	if c.P2PChannels < 1 || c.P2PChannels&(c.P2PChannels-1) != 0 || c.P2PChannelsPerPeer < 1 || c.P2PChannelsPerPeer > c.P2PChannels {
		return &RequestError{"Comm", fmt.Sprintf("%d send/recv channels, %d per peer: need a power of two, and no more per peer", c.P2PChannels, c.P2PChannelsPerPeer)}
	}
	if c.P2PChunkSize < 1 || c.BuffSizes[coll.LL] < FIFOSteps*16 || len(c.NodeRanks) != c.NNodes {
		return &RequestError{"Comm", "send/recv needs P2PChunkSize, LL buffers and the ranks of each node"}
	}
	s := &p2pSchedule{chMax: c.P2PChannelsPerPeer, chMin: c.P2PChannelsPerPeer, peers: 1}
	for s.chMin*c.NRanks > c.P2PChannels && s.chMin > 1 {
		s.chMin /= 2
	}
	if fixed := r.Params.ChunkSize.Or(0); fixed > min(int64(c.P2PChunkSize), int64(c.BuffSizes[coll.LL])/FIFOSteps) {
		return &UnsupportedError{fmt.Sprintf("%v in chunks of %d bytes (NCCL_CHUNK_SIZE)", r.Func, fixed),
			fmt.Sprintf("NCCL would write past the steps of its buffers, which have %d bytes, of LL %d", c.P2PChunkSize, c.BuffSizes[coll.LL]/FIFOSteps)}
	}
	s.llMax = int64(s.chMax) * r.Params.P2PLLThreshold.Or(16384)
	if r.Func == coll.AllToAll {
		s.peers = int64(c.NRanks)
	}
	s.order(c, r.Params)
	p.kind, p.p2p = p2pKind, s
	return p.checkConnCount()
}

// order divides nodes into equal groups and lists the distances between groups
// by the triangular numbers modulo a power of two, which visit each once.
func (s *p2pSchedule) order(c *connect.Comm, params Params) {
	s.group = 0
	for _, ranks := range c.NodeRanks {
		s.group = max(s.group, len(ranks))
	}
	if c.NNodes > 1 {
		s.group = int(max(params.P2PGroupSize.Or(worksPerBatch), 1))
	}
	for _, ranks := range c.NodeRanks {
		if len(ranks)%s.group != 0 || len(ranks) < s.group {
			s.group = gcd(s.group, len(ranks))
		}
	}
	for _, ranks := range c.NodeRanks {
		s.groupOf = append(s.groupOf, int32(len(s.rankAt)/s.group))
		s.rankAt = append(s.rankAt, ranks...)
	}
	s.groups = len(s.rankAt) / s.group
	s.round = make([]int32, s.groups)
	pow2 := 1 << bits.Len(uint(s.groups-1))
	for i, d := 0, 0; i < pow2; {
		if d < s.groups {
			s.round[d] = int32(len(s.delta))
			s.delta = append(s.delta, int32(d))
		}
		i++
		d = (d + i) & (pow2 - 1)
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// slot returns the rank's group and its place in it.
func (s *p2pSchedule) slot(c *connect.Comm, rank int32) (group, place int) {
	local := int(c.LocalRank[rank])
	return int(s.groupOf[c.NodeOf[rank]]) + local/s.group, local % s.group
}

// roundOf returns the round in which src sends to dst.
func (s *p2pSchedule) roundOf(c *connect.Comm, src, dst int32) int {
	sg, sp := s.slot(c, src)
	dg, dp := s.slot(c, dst)
	d := (dg - sg + s.groups) % s.groups
	return int(s.round[d])*s.group + (dp-sp+s.group)%s.group
}

// partners returns whom rank sends to and receives from in a round.
func (s *p2pSchedule) partners(c *connect.Comm, rank int32, round int) (to, from int32) {
	g, pl := s.slot(c, rank)
	d := int(s.delta[round/s.group])
	k := round % s.group
	at := func(group, place int) int32 { return s.rankAt[group*s.group+place] }
	return at((g+d)%s.groups, (pl+k)%s.group), at((g-d+s.groups)%s.groups, (pl-k+s.group)%s.group)
}

// channelBase returns the channel of the first part of a round's transfers
// (channel.h:19): rounds are strewn over the channels by reversing bits.
func (s *p2pSchedule) channelBase(c *connect.Comm, round int) int {
	base := round
	if c.NNodes > 1 {
		base = round/s.group*divUp(s.group, worksPerBatch) + round%s.group/worksPerBatch
	}
	n := bits.Len(uint(c.P2PChannels - 1))
	if n == 0 {
		return 0
	}
	return int(uint8(bits.Reverse64(uint64(base)) >> (64 - n)))
}

// channel returns the channel of a part (device.h:273).
func (s *p2pSchedule) channel(c *connect.Comm, round, part int) int32 {
	return int32((s.channelBase(c, round) + part) & (c.P2PChannels - 1))
}

// transfer is one send or receive of a rank, before its division into parts.
type transfer struct {
	peer  int32
	off   int64 // in Input (send) or Output (receive)
	bytes int64 // -1: none
	proto coll.Protocol
	parts int
	chunk int64
}

// p2pWork is what a send/recv program moves: bytes from off on in chunks.
type p2pWork struct {
	peer  int32
	conn  int32
	off   int64
	dst   int64 // RoleCopy: where to
	bytes int64
	chunk int64
}

// transfers returns what rank sends and receives in a round.
func (p *Plan) transfers(rank int32, round int) (send, recv transfer) {
	to, from := p.p2p.partners(p.Comm, rank, round)
	n := int32(p.Comm.NRanks)
	bytes := p.Req.Count * int64(p.Req.Type.Size())
	root := p.Req.Root
	send, recv = transfer{peer: to, bytes: -1}, transfer{peer: from, bytes: -1}
	switch p.Req.Func {
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
	if to == rank && p.selfInPlace() {
		send.bytes, recv.bytes = -1, -1
	}
	p.sizeTransfer(&send, rank, to, round)
	p.sizeTransfer(&recv, from, rank, round)
	return send, recv
}

// selfInPlace tells that what a rank sends to itself is where it belongs
// (enqueue.cc:1083).
func (p *Plan) selfInPlace() bool { return p.Req.InPlace }

// sizeTransfer sets protocol, chunk and number of parts (enqueue.cc:826-903).
// Both ends compute the same.
func (p *Plan) sizeTransfer(t *transfer, src, dst int32, round int) {
	if t.bytes < 0 {
		return
	}
	c, s := p.Comm, p.p2p
	net := false
	if src != dst && c.RouteOf != nil {
		for part := range s.chMax {
			ch := s.channel(c, round, part)
			net = net || c.RouteOf(src, dst, int(ch), connect.P2PRoute).Transport == connect.NET
		}
	}
	// Network connections of send/recv share one buffer pool, which has no LL
	// buffers unless asked for (transport/net.cc:294, 893; init.cc:1063).
	ll := src != dst && t.bytes <= s.llMax
	if params := &p.Req.Params; net && params.NetSharedBuffers.Or(1) != 0 && params.AllocP2PNetLL.Or(0) != 1 {
		ll = false
	}
	step := int64(c.P2PChunkSize)
	t.proto = coll.Simple
	if ll {
		t.proto = coll.LL
		step = int64(c.BuffSizes[coll.LL]) / FIFOSteps
	}
	chunk := step
	switch fixed := p.Req.Params.ChunkSize.Or(0); {
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
	t.chunk = max(roundMantissa(chunk), 1)
	t.parts = p.p2pParts(t.bytes, step)
}

// p2pParts returns over how many channels a transfer is spread.
func (p *Plan) p2pParts(bytes, step int64) int {
	if bytes == 0 {
		return 1
	}
	least, most := step/8, step*32
	if p.Comm.NNodes > 1 {
		least, most = step/2, step
	}
	least = max(least, 1)
	n := int64(min(int64(p.p2p.chMin), divUp(bytes, least)))
	size := max(least, divUp(bytes, n))
	for size > most && n <= int64(p.p2p.chMax/2) {
		n *= 2
		size = divUp(bytes, n)
	}
	return int(n)
}

// roundMantissa keeps the leading bit and the next three, as NCCL's 8-bit
// encoding of chunk sizes does (bitops.h:407).
func roundMantissa(x int64) int64 {
	if n := bits.Len64(uint64(x)); n > 4 {
		return x >> (n - 4) << (n - 4)
	}
	return x
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

// rounds calls do for every round in which the rank has something to do.
func (s *p2pSchedule) rounds(p *Plan, rank int32, do func(round int)) {
	c, n := p.Comm, int32(p.Comm.NRanks)
	var some [2]int
	switch {
	case p.Req.Func == coll.SendRecv:
		some = [2]int{s.roundOf(c, rank, (rank+1)%n), s.roundOf(c, (rank-1+n)%n, rank)}
	case p.Req.Func == coll.Gather && rank != p.Req.Root:
		some = [2]int{s.roundOf(c, rank, p.Req.Root), s.roundOf(c, rank, p.Req.Root)}
	case p.Req.Func == coll.Scatter && rank != p.Req.Root:
		some = [2]int{s.roundOf(c, p.Req.Root, rank), s.roundOf(c, p.Req.Root, rank)}
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
func (s *p2pSchedule) works(p *Plan, rank int32) []work {
	var list []work
	type batch struct{ phase, n, epoch int32 }
	open := make([]batch, p.Comm.P2PChannels)
	s.rounds(p, rank, func(round int) {
		send, recv := p.transfers(rank, round)
		if send.bytes < 0 && recv.bytes < 0 {
			return
		}
		for part := range max(send.parts, recv.parts) {
			ch := s.channel(p.Comm, round, part)
			b := &open[ch]
			epoch := int32(round / worksPerBatch)
			if b.n == worksPerBatch || (b.n > 0 && b.epoch != epoch) {
				b.phase++
				b.n = 0
			}
			b.epoch = epoch
			list = append(list, work{channel: ch, phase: b.phase, index: b.n, part: part, send: send, recv: recv})
			b.n++
		}
	})
	slices.SortFunc(list, func(a, b work) int {
		return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.phase, b.phase), cmp.Compare(a.index, b.index))
	})
	return list
}

// programs lists a rank's send, receive and copy groups with the warps that
// the kernel gives them (sendrecv.h:94-165).
func (s *p2pSchedule) programs(p *Plan, dst []Program, rank int32) []Program {
	list := s.works(p, rank)
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
		dst = s.workPrograms(p, dst, rank, w, n)
		for k := before; k < len(dst); k++ {
			dst[k].Group = group
			group++
		}
	}
	return dst
}

// workPrograms appends the groups of one work among n of a batch.
func (s *p2pSchedule) workPrograms(p *Plan, dst []Program, rank int32, w *work, n int) []Program {
	warps := p2pWarps / n
	recvWarps := warps / 2
	sendWarps := recvWarps
	if warps > 4 {
		recvWarps = (warps - 1) / 2
		sendWarps = recvWarps + 1
	}
	base := Program{Rank: rank, Channel: w.channel, Phase: w.phase, Proto: coll.Simple, Slices: 1, SliceSteps: 1}
	hasSend, hasRecv := w.part < w.send.parts, w.part < w.recv.parts
	if w.send.bytes >= 0 && w.send.peer == rank {
		begin, end := w.send.bounds(w.part)
		base.Role, base.Threads = RoleCopy, int32(sendWarps+recvWarps)*WarpSize
		base.p2p = p2pWork{peer: rank, off: w.send.off + begin, dst: w.recv.off + begin, bytes: end - begin, chunk: end - begin}
		return append(dst, base.withWorkers(false))
	}
	if !hasSend {
		recvWarps += sendWarps
	}
	if !hasRecv {
		sendWarps += recvWarps
	}
	one := func(t *transfer, role Role, warps int) Program {
		pr := base
		pr.Role, pr.Proto, pr.Threads = role, t.proto, int32(warps)*WarpSize
		begin, end := t.bounds(w.part)
		pr.p2p = p2pWork{peer: t.peer, off: t.off + begin, bytes: end - begin, chunk: t.chunk}
		src, dst := rank, t.peer
		if role == RoleRecv {
			src, dst = dst, src
		}
		pr.p2p.conn = s.connID(p, src, dst, w.part)
		return pr.withWorkers(role == RoleSend)
	}
	if hasSend {
		dst = append(dst, one(&w.send, RoleSend, sendWarps))
	}
	if hasRecv {
		dst = append(dst, one(&w.recv, RoleRecv, recvWarps))
	}
	return dst
}

// Connections of send/recv are numbered by the end that is not the same for
// all, the other end (all-to-all only), and the part.
func (s *p2pSchedule) connID(p *Plan, src, dst int32, part int) int32 {
	id := int64(src)
	switch p.Req.Func {
	case coll.AllToAll:
		id = id*s.peers + int64(dst)
	case coll.Scatter:
		id = int64(dst)
	}
	return int32(id*int64(s.chMax) + int64(part))
}

func (s *p2pSchedule) numConns(p *Plan) int64 {
	return int64(p.Comm.NRanks) * s.peers * int64(s.chMax)
}

func (s *p2pSchedule) conn(p *Plan, c *Conn) {
	part := int(c.ID) % s.chMax
	id := c.ID / int32(s.chMax)
	n := int32(p.Comm.NRanks)
	src, dst := id, p.Req.Root
	switch p.Req.Func {
	case coll.SendRecv:
		dst = (id + 1) % n
	case coll.AllToAll:
		src, dst = id/n, id%n
	case coll.Scatter:
		src, dst = p.Req.Root, id
	}
	c.Kind = connect.P2PRoute
	if src == dst {
		return
	}
	c.Src, c.Dst = src, dst
	c.Channel = s.channel(p.Comm, s.roundOf(p.Comm, src, dst), part)
}

func (c *Cursor) openP2P() {
	w := &c.pr.p2p
	c.fromBuf[0], c.toBuf[0] = w.conn, w.conn
	c.from, c.to = c.fromBuf[:1], c.toBuf[:1]
	c.grid, c.total, c.chunk = w.off, w.bytes, max(w.chunk, 1)
	c.next = (*Cursor).nextP2P
}

// nextP2P: even an empty transfer takes one step (sendrecv.h:25-33).
func (c *Cursor) nextP2P(op *Op) bool {
	if c.off >= c.total && c.seq > 0 {
		return false
	}
	bytes := min(c.chunk, c.total-c.off)
	op.Chunk = c.turn
	switch c.pr.Role {
	case RoleSend:
		c.emit(op, Send, bytes)
		op.Src = input(c.grid + c.off)
	case RoleRecv:
		c.emit(op, Recv|Copy, bytes)
		op.Dst = output(c.grid + c.off)
	default:
		c.emit(op, Copy, bytes)
		op.Src, op.Dst = input(c.grid+c.off), output(c.pr.p2p.dst+c.off)
	}
	c.off += max(bytes, 1)
	c.turn++
	return true
}
