package channels

import "github.com/simccl/simccl/plan"

// Loop returns the division of a transfer of the given bytes if every such transfer has whole steps, in the
// network and within nodes; false if some do not, and so are divided differently. as is a fixed division
// whatever the bytes; nil: by the bytes.
func (s *Sizer) Loop(bytes int64, as *Transfer) (t Transfer, ok bool) {
	t.Bytes = bytes
	ll := s.params.P2PLLThreshold.Or(16384)
	if s.Direct || bytes < 8*int64(s.comm.P2PChunkSize) || bytes <= int64(s.ChMax)*ll {
		return t, false
	}
	s.SizeAs(&t, as, 0, 0, 0) // to the rank itself: no network, no LL
	if t.Piece > 0 {          // each piece of several steps, and none by LL
		last := t.Bytes - int64(t.Parts-1)*t.Piece
		return t, last >= 8*int64(s.comm.P2PChunkSize) && last > ll
	}
	return t, t.Chunk%partGrain == 0
}

// Iterations returns the number of whole chunks of the last part, which may be shorter than the others.
func (t *Transfer) Iterations() int64 {
	begin, end := t.Bounds(t.Parts - 1)
	return (end - begin) / t.Chunk
}

// Shortened returns the transfer with the given number of iterations; with rest, its parts keep their
// incomplete last ones.
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

// SizeAs is Size if as is nil; otherwise it divides the transfer as *as is, whatever its bytes.
func (s *Sizer) SizeAs(t, as *Transfer, src, dst int32, round int) {
	if as == nil || t.Bytes < 0 {
		s.Size(t, src, dst, round)
		return
	}
	t.Proto, t.Chunk, t.Parts = as.Proto, as.Chunk, as.Parts
	t.Piece, t.LastProto, t.LastChunk = as.Piece, as.LastProto, as.LastChunk
}

// OneSize returns the size in bytes of every message of a list; false if sizes differ, or the list is empty.
func OneSize(list []plan.Message) (bytes int64, ok bool) {
	for i := range list {
		if bytes = int64(list[i].Bytes); list[i].Bytes != list[0].Bytes {
			return 0, false
		}
	}
	return bytes, bytes > 0
}

// Sent returns the bytes that a rank sends by its exchanges of a list of messages.
func Sent(list []plan.Message, own []plan.Exchange) int64 {
	n := int64(0)
	for i := range own {
		if s := own[i].Send; s >= 0 {
			n += int64(list[s].Bytes)
		}
	}
	return n
}
