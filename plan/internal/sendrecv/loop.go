package sendrecv

import "github.com/simccl/simccl/plan"

// Loop returns a transfer of so many bytes as it is cut where every one has whole
// steps, in the network and within nodes; false where some have not, and so are cut
// differently. as is how it is cut whatever its bytes, nil where by these.
func (s *Sizer) Loop(bytes int64, as *Transfer) (t Transfer, ok bool) {
	t.Bytes = bytes
	ll := s.params.P2PLLThreshold.Or(16384)
	if s.Direct || bytes < 8*int64(s.comm.P2PChunkSize) || bytes <= int64(s.ChMax)*ll {
		return t, false
	}
	s.SizeAs(&t, as, 0, 0, 0) // to itself: no network, no LL
	if t.Piece > 0 {          // each of several steps, and none by LL
		last := t.Bytes - int64(t.Parts-1)*t.Piece
		return t, last >= 8*int64(s.comm.P2PChunkSize) && last > ll
	}
	return t, t.Chunk%grain == 0
}

// Iterations is how many whole chunks each part has. The last part may be shorter than the
// others.
func (t *Transfer) Iterations() int64 {
	begin, end := t.Bounds(t.Parts - 1)
	return (end - begin) / t.Chunk
}

// Shortened returns the transfer with so many iterations; with rest, also with what its
// parts have beyond them.
func (t Transfer) Shortened(iterations int64, rest bool) Transfer {
	left := (t.Iterations() - iterations) * t.Chunk
	switch {
	case rest:
		t.Bytes -= int64(t.Parts) * left
	default:
		t.Bytes = int64(t.Parts) * iterations * t.Chunk
	}
	if t.Piece > 0 {
		t.Piece -= left
		if !rest {
			t.Piece = iterations * t.Chunk
		}
	}
	return t
}

// SizeAs is Size, or cuts a transfer as another one whatever its bytes, where that is not nil.
func (s *Sizer) SizeAs(t, as *Transfer, src, dst int32, round int) {
	if as == nil || t.Bytes < 0 {
		s.Size(t, src, dst, round)
		return
	}
	t.Proto, t.Chunk, t.Parts = as.Proto, as.Chunk, as.Parts
	t.Piece, t.LastProto, t.LastChunk = as.Piece, as.LastProto, as.LastChunk
}

// OneSize returns how many bytes each of a list of messages has; false where they differ,
// or there are none.
func OneSize(list []plan.Message) (bytes int64, ok bool) {
	for i := range list {
		if bytes = int64(list[i].Bytes); list[i].Bytes != list[0].Bytes {
			return 0, false
		}
	}
	return bytes, bytes > 0
}

// Sent is how many bytes a rank sends by its exchanges of a list of messages.
func Sent(list []plan.Message, own []plan.Exchange) int64 {
	n := int64(0)
	for i := range own {
		if s := own[i].Send; s >= 0 {
			n += int64(list[s].Bytes)
		}
	}
	return n
}
