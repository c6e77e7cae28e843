package channels

import "github.com/simccl/simccl/coll"

// pieces divides a transfer into pieces that are multiples of the least part; each uses LL or Simple by its
// own size (enqueue.cc:511, 872, proxy.cc:601 of v2.21.5).
func (s *Sizer) pieces(t *Transfer, self, net bool) {
	least, most := int64(s.comm.P2PChunkSize)/8, int64(s.comm.P2PChunkSize)*32
	if s.comm.NNodes > 1 {
		least, most = int64(s.comm.P2PChunkSize)/2, int64(s.comm.P2PChunkSize)
	}
	least = max(least, 1)
	n := int64(s.ChMin)
	size := max(least, divUp(t.Bytes, n))
	for size > most && n <= int64(s.ChMax/2) {
		n *= 2
		size = divUp(t.Bytes, n)
	}
	t.Piece = divUp(size, least) * least
	t.Parts = max(1, int(divUp(t.Bytes, t.Piece)))
	t.Proto, t.Chunk = s.piece(min(t.Piece, t.Bytes), self, net)
	t.LastProto, t.LastChunk = s.piece(t.Bytes-int64(t.Parts-1)*t.Piece, self, net)
}

// piece returns the protocol and the chunk of a piece of the given bytes.
func (s *Sizer) piece(bytes int64, self, net bool) (coll.Protocol, int64) {
	ll := !self && s.hasLL(net) && bytes <= s.params.P2PLLThreshold.Or(16384)
	chunk := max(s.chunk(bytes, ll, net), 1)
	if ll {
		return coll.LL, chunk
	}
	return coll.Simple, chunk
}

// Places finds the batch of each send and receive of a rank in releases where these have places of their own:
// a batch has eight of each kind, and no peer twice (enqueue.cc:141 of v2.21.5).
type Places struct {
	open []places
	fuse bool
	// Batches is the number of batches on all channels.
	Batches int
}

type places struct {
	batch int32
	on    bool
	peers [2][]int32 // of receives [0] and sends [1]
}

// NewPlaces returns the empty batches of a kernel with the given number of channels.
func NewPlaces(channels int) Places { return Places{open: make([]places, channels)} }

// Begin starts a piece of a round: every eighth round begins a new batch (enqueue.cc:946 of v2.21.5).
func (p *Places) Begin(round int) { p.fuse = p.fuse && round%WorksPerBatch != 0 }

// Add adds a send or receive, and returns the number of its batch on its channel.
func (p *Places) Add(channel, peer int32, send bool) int32 {
	kind := 0
	if send {
		kind = 1
	}
	o := &p.open[channel]
	fresh := !o.on || !p.fuse || len(o.peers[kind]) == WorksPerBatch
	for _, other := range o.peers[kind] {
		fresh = fresh || other == peer
	}
	if fresh {
		if o.on {
			o.batch++
		}
		o.on, o.peers[0], o.peers[1] = true, o.peers[0][:0], o.peers[1][:0]
		p.Batches++
	}
	o.peers[kind] = append(o.peers[kind], peer)
	p.fuse = true
	return o.batch
}
