package packet

// lane is a queue of frames in pieces: of a deep one only what waits is in memory, and what was
// left last is used first.
type lane struct {
	first, last *piece
	at, end     int32  // places in them of the first frame, and behind the last
	head, tail  uint32 // frames that have left, and all that came
}

// perPiece is so many that a piece is a kilobyte.
const perPiece = 31

type piece struct {
	frames [perPiece]frame
	next   *piece
}

func (q *lane) empty() bool   { return q.head == q.tail }
func (q *lane) front() *frame { return &q.first.frames[q.at] }
func (q *lane) back() *frame  { return &q.last.frames[q.end-1] }

// pass appends a frame with another time and tag; spare is pieces not in use.
func (q *lane) pass(f *frame, at int64, tag uint32, spare **piece) {
	if q.end == perPiece || q.last == nil {
		q.extend(spare)
	}
	q.last.frames[q.end].set(f, at, tag)
	q.end++
	q.tail++
}

// extend takes a piece into use.
func (q *lane) extend(spare **piece) {
	if *spare == nil {
		some := make([]piece, 8)
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

// pop takes the first frame away. It stays readable until as many have come as a piece holds.
func (q *lane) pop(spare **piece) {
	q.head++
	if q.at++; q.head == q.tail {
		q.at, q.end = 0, 0
	} else if q.at == perPiece {
		p := q.first
		q.first, q.at = p.next, 0
		p.next, *spare = *spare, p
	}
}
