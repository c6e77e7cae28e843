package build

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/internal/channels"
	"github.com/simccl/simccl/units"
)

// base holds the data of every generator, with those methods of plan.Generator that most share.
//
// Connections are numbered by channel, then by rank, then by index among the rank's connections on the
// channel: with perRank 2 and 4 ranks, ids 0 and 1 are rank 0's on the first channel, 6 and 7 rank 3's, 8 and
// 9 rank 0's on the second.
type base struct {
	comm    *connect.Layout
	req     plan.Request
	split   plan.Split
	perRank int32 // connection ids of a rank on a channel
}

// NumConns implements plan.Generator.
func (b *base) NumConns() int64 {
	return int64(b.split.NChannels) * int64(b.comm.NRanks) * int64(b.perRank)
}

// ConnsPerRank implements plan.Generator.
func (b *base) ConnsPerRank() int32 { return b.perRank }

// Fanout implements plan.Generator.
func (b *base) Fanout(*plan.Program) int32 { return 1 }

// NetGroups implements plan.Generator.
func (b *base) NetGroups() []plan.NetGroup { return nil }

// index returns the index of a channel in the split.
func (b *base) index(channel int32) int32 { return channel - int32(b.split.ChannelLo) }

// firstID returns the first connection id of a rank on a channel.
func (b *base) firstID(channel, rank int32) int32 {
	return (b.index(channel)*int32(b.comm.NRanks) + rank) * b.perRank
}

// locate sets c.Channel by c.ID and returns the rank that the id belongs to, and its index among the rank's
// ids on the channel.
func (b *base) locate(c *plan.Conn) (rank, place int32) {
	k, n := c.ID/b.perRank, int32(b.comm.NRanks)
	c.Channel = int32(b.split.ChannelLo) + k/n
	return k % n, c.ID % b.perRank
}

// node lists the ranks of a rank's node.
func (b *base) node(rank int32) []int32 { return b.comm.NodeRanks[b.comm.NodeOf[rank]] }

// program returns a program with the fields that all programs of a rank's channel share.
func (b *base) program(rank, channel int32) plan.Program {
	return plan.Program{Rank: rank, Channel: channel, Proto: b.req.Proto, Slices: 1, SliceSteps: 1,
		Threads: int32(b.req.Warps) * b.lanes()}
}

// lanes returns the number of threads of a warp.
func (b *base) lanes() int32 { return int32(b.comm.Rules.Plan.WarpLanes()) }

// eachChannel calls add for every channel of the split.
func (b *base) eachChannel(dst []plan.Program, rank int32, add func(dst []plan.Program,
	pr plan.Program) []plan.Program) []plan.Program {
	for ch := int32(b.split.ChannelLo); ch <= int32(b.split.ChannelHi); ch++ {
		dst = add(dst, b.program(rank, ch))
	}
	return dst
}

// hasChannels returns an error if the communicator lacks channels of the split.
func (b *base) hasChannels() error {
	if len(b.comm.Channels) <= b.split.ChannelHi {
		return badRequest("Comm", "has %d channels, the split needs %d", len(b.comm.Channels),
			b.split.ChannelHi+1)
	}
	return nil
}

// withWorkers sets Workers from Threads: a group that sends with Simple reserves one warp, if it has at least
// three.
func withWorkers(pr plan.Program, sends bool) plan.Program {
	pr.Workers = pr.Threads
	if sends && pr.Proto == coll.Simple && pr.Threads >= 3*plan.WarpSize {
		pr.Workers -= plan.WarpSize
	}
	return pr
}

// workers sets Workers by the rules of the communicator's release.
func (b *base) workers(pr plan.Program, sends bool) plan.Program {
	return withWorkers(pr, sends && !b.comm.Rules.Plan.AllWork)
}

// group is a thread group: its role, number of warps, and whether it sends.
type group struct {
	role  plan.Role
	warps int
	sends bool
}

// groups appends a program for each group that has at least one warp.
func groups(dst []plan.Program, pr plan.Program, list ...group) []plan.Program {
	for _, g := range list {
		if g.warps == 0 {
			continue
		}
		pr.Role, pr.Threads = g.role, int32(g.warps)*plan.WarpSize
		dst = append(dst, withWorkers(pr, g.sends))
		pr.Group++
	}
	return dst
}

// share is one channel's share of an operation, in bytes. It is processed in a loop: each iteration covers
// loop bytes, in chunks of chunk bytes.
type share struct {
	begin, total int64 // offset of the share, and its size
	done         int64 // bytes of the iterations that have ended
	loop, chunk  int64
	iter         int32 // iterations that have ended
	es           int64 // bytes of an element
	block        int64 // bytes of one rank's block in the larger buffer
}

// more reports whether another iteration begins.
func (s *share) more() bool { return s.done < s.total }

// next ends an iteration.
func (s *share) next() {
	s.done += s.loop
	s.iter++
}

// left returns the bytes of a chunk that begins off bytes into the iteration: fewer than chunk, or even
// negative, at the end of the share.
func (s *share) left(off int64) int64 { return min(s.chunk, s.total-s.done-off) }

// shorten divides an incomplete last iteration evenly over the given number of chunks, each a multiple of
// grain bytes.
func (s *share) shorten(chunks, grain int64) {
	if rest := s.total - s.done; rest > 0 && rest < s.loop {
		// NCCL divides elements; a grain is whole elements of every type.
		s.chunk = channels.AlignUp(channels.DivUp(rest/s.es, chunks), grain/s.es) * s.es
	}
}

// share returns a channel's share of an operation in which each channel has one contiguous part
// (ncclCollCbdPart, device.h:345).
func (b *base) share(channel int32) share {
	s := &b.split
	count, es := b.req.Elements()
	out := share{es: int64(es), block: count * int64(es)}
	if b.req.Apart > 0 {
		out.block = b.req.Apart
	}
	part := &s.Mid
	mids := int64(s.NChannels - 2)
	switch i := int64(b.index(channel)); i {
	case 0:
		part = &s.Lo
	case int64(s.NChannels - 1):
		part = &s.Hi
		out.begin = (s.Lo.Count + mids*s.Mid.Count) * out.es
	default:
		out.begin = (s.Lo.Count + (i-1)*s.Mid.Count) * out.es
	}
	out.total = part.Count * out.es
	// Chunks are whole grains, and a grain is a whole number of elements.
	out.chunk = int64(part.ChunkSize)
	out.loop = out.chunk
	return out
}

// stream holds the state that all streams of ops share: the program, its connections, and the number of FIFO
// steps it has used on them.
type stream struct {
	rank, channel, group int32
	opSteps              int32 // FIFO steps that an op takes of each connection
	// seq is not placed next to group: if they were neighbours, both would be read together, which waits for
	// the last store of seq (a tenth of emit's time).
	seq            int32
	sent, took     int32 // FIFO steps so far on the sending and the receiving side
	from, to       []int32
	fromBuf, toBuf [4]int32
}

// open sets the stream to the first op of a program, without connections.
func (s *stream) open(pr *plan.Program) {
	s.rank, s.channel, s.group, s.seq = pr.Rank, pr.Channel, pr.Group, 0
	s.opSteps, s.sent, s.took = pr.OpSteps(), 0, 0
	if s.from == nil {
		s.from, s.to = s.fromBuf[:0], s.toBuf[:0]
	}
	s.from, s.to = s.from[:0], s.to[:0]
}

// emit sets the fields of op that all primitives share, and counts the op.
func (s *stream) emit(op *plan.Op, do plan.Do, bytes int64) {
	op.Rank, op.Channel, op.Group, op.Seq = s.rank, s.channel, s.group, s.seq
	op.Do = do
	op.Bytes = units.Bytes(max(bytes, 0))
	op.From, op.To = nil, nil
	op.Step = s.took
	if do&plan.Recv != 0 {
		op.From = s.from
		s.took += s.opSteps
	}
	if do&plan.Send != 0 {
		op.To = s.to
		op.Step = s.sent
		s.sent += s.opSteps
	}
	op.Src, op.Dst = plan.Ref{}, plan.Ref{}
	op.RecvOff, op.SendOff, op.RecvAhead, op.SendAhead = 0, 0, 0, 0
	s.seq++
}

// reuse returns old if it is a stream of the kind T, else a new one.
func reuse[T any](old plan.Stream) *T {
	if s, ok := any(old).(*T); ok {
		return s
	}
	return new(T)
}

func input(off int64) plan.Ref  { return plan.Ref{Buf: plan.Input, Off: units.Bytes(off)} }
func output(off int64) plan.Ref { return plan.Ref{Buf: plan.Output, Off: units.Bytes(off)} }

// lastGrain returns the multiple in bytes to which chunks of a last, incomplete iteration of an AllReduce are
// rounded up: grain since 2.22.3 (enqueue.cc:460, device/all_reduce.h:34 of v2.21.5).
func (b *base) lastGrain(grain int64) int64 {
	if b.comm.Rules.Plan.EvenBytes {
		return max(channels.ThreadGrain(&b.req), int64(b.split.ElemSize))
	}
	return grain
}
