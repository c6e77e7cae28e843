package cc

// rows are the records that switches make of data frames in flight, by number: a word and a rate each. A row has room
// for as many as the longest route needs, and none is in two lines of a cache unless it is longer than one. A frame
// carries the number of its row and how many records that has: so a switch only writes, and waits for no memory. Rows lie
// in pieces that stay where they are; untouched ones take no memory.
type rows struct {
	pieces [][]uint64
	width  int // words of a row: a power of two
	next   uint32
	full   bool // more were asked for than there are numbers
}

const (
	rowBits = 14 // of a row's number say where in its piece it is
	// What a frame carries: the number in the lower bits, how many records the row has above; tooMany are more than
	// intHops.
	rowCount = 29
	rowMask  = 1<<rowCount - 1
	tooMany  = intHops + 1
)

// take sets n rows aside for routes with so many switches, and returns the number of the first. Where there
// are no more, rows are those of others.
func (r *rows) take(n uint32, switches int) (first uint32) {
	r.widen(switches)
	if n > rowMask-r.next {
		r.full = true
		return 0
	}
	first, r.next = r.next, r.next+n
	for uint64(len(r.pieces))<<rowBits < uint64(r.next) {
		r.pieces = append(r.pieces, make([]uint64, r.width<<rowBits))
	}
	return first
}

// widen makes room for so many records of each frame, of intHops at most.
func (r *rows) widen(records int) {
	old, width := r.width, max(r.width, 2)
	for width < 2*min(records, intHops) {
		width *= 2
	}
	if r.width = width; width == old {
		return
	}
	for k, rows := range r.pieces {
		piece := make([]uint64, width<<rowBits)
		for i := 0; i < len(rows); i += old {
			copy(piece[i/old*width:], rows[i:i+old])
		}
		r.pieces[k] = piece
	}
}

// at is a row.
func (r *rows) at(n uint32) []uint64 {
	i := int(n&(1<<rowBits-1)) * r.width
	return r.pieces[n>>rowBits][i : i+r.width]
}

// stamp adds a record of a word and a rate to the row of a frame, and returns what the frame carries then.
func (r *rows) stamp(aux uint32, word uint64, rate int64) uint32 {
	i := int(aux >> rowCount)
	if 2*i >= r.width || i >= intHops {
		if i >= intHops {
			return aux&rowMask | tooMany<<rowCount
		}
		r.widen(i + 1)
	}
	row := r.at(aux & rowMask)
	row[2*i], row[2*i+1] = word, uint64(rate)
	return aux + 1<<rowCount
}

// hops are the records of a frame; too many: none.
func (r *rows) hops(aux uint32) []uint64 {
	if aux>>rowCount > intHops {
		return nil
	}
	return r.at(aux & rowMask)[:2*(aux>>rowCount)]
}
