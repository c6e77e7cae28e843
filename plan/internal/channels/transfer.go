package channels

import (
	"cmp"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// directChunk is the largest piece that goes into a registered buffer (NCCL_MAX_NET_SIZE), in bytes.
const directChunk = 1 << 30

// partGrain is the alignment in bytes of the parts of a transfer (ncclP2pPartBounds).
const partGrain = 4 << 10

// Sizer divides the transfers of a communicator, whose ranks exchange them in Rounds.
type Sizer struct {
	Rounds
	ChMin, ChMax int // channels of a transfer
	// Batch is the largest number of transfers of a batch.
	Batch int
	// Direct: buffers are registered, and data goes into the receiver's buffer in one piece.
	Direct bool

	comm   *connect.Layout
	params plan.Params
	llMax  int64 // bytes up to which LL is used
}

// NewSizer checks the properties of a communicator that sends and receives need, and computes their channels
// (enqueue.cc:1052-1056). what names the operation in errors, a *plan.RequestError or *plan.UnsupportedError.
func NewSizer(c *connect.Layout, params plan.Params, what string) (*Sizer, error) {
	bad := func(format string, args ...any) error {
		return &plan.RequestError{Field: "Comm", Problem: fmt.Sprintf(format, args...)}
	}
	if c.P2PChannelsPerPeer > c.P2PChannels && c.Rules.Connect.AMDPeers {
		return nil, &plan.UnsupportedError{What: what, Why: fmt.Sprintf("a peer has %d channels of "+
			"send/recv, and there are %d, by which %s puts parts of a message on the same channel; "+
			"NCCL_MIN_P2P_NCHANNELS=%d has enough", c.P2PChannelsPerPeer, c.P2PChannels, c.Rules.Name(),
			c.P2PChannelsPerPeer)}
	}
	if c.P2PChannels < 1 || c.P2PChannels&(c.P2PChannels-1) != 0 || c.P2PChannelsPerPeer < 1 ||
		c.P2PChannelsPerPeer > c.P2PChannels {
		return nil, bad("%d send/recv channels, %d per peer: need a power of two, and no more per peer",
			c.P2PChannels, c.P2PChannelsPerPeer)
	}
	if c.P2PChunkSize < 1 || c.BuffSizes[coll.LL] < plan.FIFOSteps*16 || len(c.NodeRanks) != c.NNodes {
		return nil, bad("send/recv needs P2PChunkSize, LL buffers and the ranks of each node")
	}
	rules := &c.Rules.Plan
	s := &Sizer{Rounds: NewRounds(c, params), ChMax: c.P2PChannelsPerPeer, ChMin: c.P2PChannelsPerPeer,
		Batch: rules.Batch(c.Arch(), c.NNodes), comm: c, params: params}
	for s.ChMin*c.NRanks > c.P2PChannels && s.ChMin > 1 {
		s.ChMin /= 2
	}
	if fixed := params.ChunkSize.Or(0); fixed > min(int64(c.P2PChunkSize),
		int64(c.BuffSizes[coll.LL])/plan.FIFOSteps) {
		return nil, &plan.UnsupportedError{What: fmt.Sprintf("%s in chunks of %d bytes (NCCL_CHUNK_SIZE)",
			what, fixed),
			Why: fmt.Sprintf("NCCL would write past the steps of its buffers, which have %d bytes, of LL %d",
				c.P2PChunkSize, c.BuffSizes[coll.LL]/plan.FIFOSteps)}
	}
	s.params.P2PLLThreshold = units.Some(params.P2PLLThreshold.Or(cmp.Or(rules.P2PLLMost, 16384)))
	s.llMax = int64(s.ChMax) * s.params.P2PLLThreshold.Value
	return s, nil
}

// Threads returns the number of threads of a send/recv kernel: NCCL_MAX_NTHREADS (enqueue.cc:1045) unless the
// rules set another.
func Threads(c *connect.Layout) int { return cmp.Or(c.Rules.Plan.P2PThreads, 640) }

// Most returns the largest number of transfers in a batch that has a send and a receive of these bytes (-1:
// none). RCCL combines only equal ones, and from 16 nodes on only small ones (enqueue.cc:1120 of RCCL
// 2.30.4).
func (s *Sizer) Most(send, recv int64) int {
	if s.comm.Rules.Plan.P2PBatch > 0 && (send != recv || s.comm.NNodes >= 16 && send > 64<<10) {
		return 1
	}
	return s.Batch
}

// Hub gives a message of an operation in which ranks only send or only receive all channels of a peer, on one
// node and if the rules say so. If some ranks do both, the two ends would disagree on the channels.
func (s *Sizer) Hub(one bool, what string) error {
	switch {
	case !s.comm.Rules.Plan.HubChannels || s.comm.NNodes > 1 || s.ChMin == s.ChMax:
	case one:
		s.ChMin = s.ChMax
	default:
		return &plan.UnsupportedError{What: what, Why: fmt.Sprintf("%s spreads it by what each rank "+
			"sends and receives in all, over %d or %d channels, which is not modelled where these differ",
			s.comm.Rules.Name(), s.ChMin, s.ChMax)}
	}
	return nil
}

// Transfer is one send or receive of a rank, before it is divided into parts.
type Transfer struct {
	Peer  int32
	Off   int64 // in the Input (send) or Output (receive)
	At    int64 // of a send: offset in the receiver's Output
	Bytes int64 // -1: none
	Proto coll.Protocol
	Parts int
	Chunk int64
	// Piece is the size of all parts but the last, which has LastProto and LastChunk; 0 if all parts are
	// equal and use one protocol.
	Piece     int64
	LastProto coll.Protocol
	LastChunk int64
}

// Cut returns the protocol and the chunk of a part.
func (t *Transfer) Cut(part int) (coll.Protocol, int64) {
	if t.Piece > 0 && part == t.Parts-1 {
		return t.LastProto, t.LastChunk
	}
	return t.Proto, t.Chunk
}

// Bounds returns the range of a part in bytes.
func (t *Transfer) Bounds(part int) (begin, end int64) {
	if t.Piece > 0 {
		return min(int64(part)*t.Piece, t.Bytes), min(int64(part+1)*t.Piece, t.Bytes)
	}
	size := (t.Bytes/int64(t.Parts) + min(t.Bytes%int64(t.Parts), 1) + partGrain - 1) / partGrain * partGrain
	return min(int64(part)*size, t.Bytes), min(int64(part+1)*size, t.Bytes)
}

// Message returns a message as the transfer of its sender, or receiver with recv, in the round of its ranks;
// as is a fixed division whatever the bytes; nil: by the bytes.
func (s *Sizer) Message(m *plan.Message, as *Transfer, round int, recv bool) Transfer {
	t := Transfer{Peer: m.Dst, Off: int64(m.SrcOff), At: int64(m.DstOff), Bytes: int64(m.Bytes)}
	if recv {
		t.Peer, t.Off = m.Src, int64(m.DstOff)
	}
	s.SizeAs(&t, as, m.Src, m.Dst, round)
	return t
}

// Size sets protocol, chunk and number of parts (enqueue.cc:826-903). Both ends of a transfer compute the
// same.
func (s *Sizer) Size(t *Transfer, src, dst int32, round int) {
	if t.Bytes < 0 {
		return
	}
	c := s.comm
	net := false
	if src != dst && c.RouteOf != nil {
		for part := range s.ChMax {
			ch := s.Channel(src, dst, round, part)
			net = net || c.RouteOf(src, dst, int(ch), connect.P2PRoute).Transport == connect.NET
		}
	}
	if c.Rules.Plan.P2PPieces {
		s.pieces(t, src == dst, net)
		return
	}
	most := s.llMax
	if c.Rules.Plan.LLByParts {
		most = int64(Parts(t.Bytes, int64(c.P2PChunkSize), s.ChMin, s.ChMax, c.NNodes)) *
			s.params.P2PLLThreshold.Value
	}
	ll := src != dst && t.Bytes <= most && s.hasLL(net)
	step := s.step(ll)
	t.Proto = coll.Simple
	if ll {
		t.Proto = coll.LL
	}
	chunk := s.chunk(t.Bytes, ll, net)
	t.Chunk = max(mantissa(chunk), 1)
	if s.Direct && !ll && !net && src != dst && c.IsAllNVLink { // sendrecv.h:23
		t.Chunk = directChunk
	}
	if c.Rules.Plan.LLByParts {
		step = int64(c.P2PChunkSize)
	}
	t.Parts = Parts(t.Bytes, step, s.ChMin, s.ChMax, c.NNodes)
}

// hasLL reports whether a connection has LL buffers: connections over the network share one pool, which has
// none unless requested (transport/net.cc:294, 893; init.cc:1063).
func (s *Sizer) hasLL(net bool) bool {
	p := &s.params
	return !net || p.NetSharedBuffers.Or(1) == 0 || p.AllocP2PNetLL.Or(0) == 1
}

// step returns the bytes of a FIFO step, of LL or Simple.
func (s *Sizer) step(ll bool) int64 {
	if ll {
		return int64(s.comm.BuffSizes[coll.LL]) / plan.FIFOSteps
	}
	return int64(s.comm.P2PChunkSize)
}

// chunk returns the bytes of data that move at a time.
func (s *Sizer) chunk(bytes int64, ll, net bool) int64 {
	step := s.step(ll)
	chunk := step
	switch fixed := s.params.ChunkSize.Or(0); {
	case fixed > 0:
		chunk = fixed
	case net && !ll && bytes < step:
		chunk /= 4
	case net && bytes < 8*step:
		chunk /= 2
	}
	if ll {
		chunk /= 2
	}
	return chunk
}
