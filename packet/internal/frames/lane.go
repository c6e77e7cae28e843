package frames

// Lane is a FIFO in a linked list of pieces. Unlike a ring it shrinks: its memory is proportional to the
// frames queued, and pieces freed last, still in the cache, are used first.
type Lane struct {
	first, last *Piece
	at, end     int32  // at: index of the first frame in first; end: index after the last frame in last
	Head, Tail  uint32 // number of frames that have left; number that have come
}

// Piece holds 31 frames and a link: a kilobyte.
type Piece struct {
	frames [perPiece]Frame
	next   *Piece
}

const perPiece = 31

func (q *Lane) Empty() bool { return q.Head == q.Tail }

func (q *Lane) Front() *Frame { return &q.first.frames[q.at] }

func (q *Lane) Back() *Frame { return &q.last.frames[q.end-1] }

// Pass appends a copy of a frame with a new time and tag; spare is the free list of pieces.
func (q *Lane) Pass(f *Frame, at int64, tag uint32, spare **Piece) {
	if q.end == perPiece || q.last == nil {
		q.extend(spare)
	}
	q.last.frames[q.end].Set(f, at, tag)
	q.end++
	q.Tail++
}

// extend appends a piece, from the free list or newly allocated, eight at a time.
func (q *Lane) extend(spare **Piece) {
	if *spare == nil {
		some := make([]Piece, 8)
		for i := range some[1:] {
			some[i].next = &some[i+1]
		}
		*spare = &some[0]
	}
	n := *spare
	*spare, n.next = n.next, nil
	if q.last == nil {
		q.first = n
	} else {
		q.last.next = n
	}
	q.last, q.end = n, 0
}

// Pop removes the first frame. It stays readable until a piece's worth of further frames has been added.
func (q *Lane) Pop(spare **Piece) {
	q.Head++
	if q.at++; q.Head == q.Tail {
		q.at, q.end = 0, 0
	} else if q.at == perPiece {
		p := q.first
		q.first, q.at = p.next, 0
		p.next, *spare = *spare, p
	}
}

// Piece returns the leading frames that lie in one piece.
func (q *Lane) Piece() []Frame {
	return q.first.frames[q.at:min(perPiece, q.at+int32(q.Tail-q.Head))]
}

// Drop is Pop for n frames, which must be all those of Piece.
func (q *Lane) Drop(n int, spare **Piece) {
	q.Head += uint32(n)
	if q.at += int32(n); q.Head == q.Tail {
		q.at, q.end = 0, 0
	} else if q.at == perPiece {
		p := q.first
		q.first, q.at = p.next, 0
		p.next, *spare = *spare, p
	}
}

// Room returns the free memory after the last frame, for at least one frame; Came adds the frames written
// there.
func (q *Lane) Room(spare **Piece) []Frame {
	if q.end == perPiece || q.last == nil {
		q.extend(spare)
	}
	return q.last.frames[q.end:]
}

// Came adds the n frames that were written to Room's memory.
func (q *Lane) Came(n int) {
	q.end += int32(n)
	q.Tail += uint32(n)
}
