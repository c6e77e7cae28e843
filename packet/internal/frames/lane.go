package frames

// Lane is a queue of frames in pieces: of a deep one only what waits is in memory, and what was
// left last is used first.
type Lane struct {
	first, last *Piece
	at, end     int32  // places in them of the first frame, and behind the last
	Head, Tail  uint32 // frames that have left, and all that came
}

// Piece is a part of a Lane.
type Piece struct {
	frames [perPiece]Frame
	next   *Piece
}

// perPiece is so many that a piece is a kilobyte.
const perPiece = 31

// Empty reports whether nothing waits.
func (q *Lane) Empty() bool { return q.Head == q.Tail }

// Front is the first frame.
func (q *Lane) Front() *Frame { return &q.first.frames[q.at] }

// Back is the last frame.
func (q *Lane) Back() *Frame { return &q.last.frames[q.end-1] }

// Pass appends a frame with another time and tag; spare is pieces not in use.
func (q *Lane) Pass(f *Frame, at int64, tag uint32, spare **Piece) {
	if q.end == perPiece || q.last == nil {
		q.extend(spare)
	}
	q.last.frames[q.end].Set(f, at, tag)
	q.end++
	q.Tail++
}

// extend takes a piece into use.
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

// Pop takes the first frame away. It stays readable until as many have come as a piece holds.
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

// Piece is the first of what waits, as far as it lies in one piece.
func (q *Lane) Piece() []Frame {
	return q.first.frames[q.at:min(perPiece, q.at+int32(q.Tail-q.Head))]
}

// Drop is Pop for so many frames of one piece.
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

// Room is places behind what waits, at least one, to be written and then counted by Came.
func (q *Lane) Room(spare **Piece) []Frame {
	if q.end == perPiece || q.last == nil {
		q.extend(spare)
	}
	return q.last.frames[q.end:]
}

// Came reports whether so many were written.
func (q *Lane) Came(n int) {
	q.end += int32(n)
	q.Tail += uint32(n)
}
