package cc

// rows is the memory of INT records of data frames in flight: one row per frame, one word per record. A frame
// carries the number of its row and its number of records, so a switch only writes and never waits for
// memory:
//
//	aux:  records (3 bits) | row (29 bits)
//	row:  word of switch 1 | word of switch 2 | …   (width words, never across a cache line)
//
// Rows are allocated in pieces that never move.
type rows struct {
	pieces [][]uint64 // of 2^rowBits rows
	width  int        // words of a row: a power of two
	next   uint32
	full   bool             // more rows were requested than there are row numbers
	rates  [otherRate]int64 // by code; 0: unused
	others map[uint32]int64 // rates without a code, by the aux of the frame before the record
}

const (
	rowBits = 14 // low bits of a row's number: its index in its piece
	// Aux holds the row's number in the lower bits and its number of records above; tooMany represents more
	// than intHops.
	rowCount = 29
	rowMask  = 1<<rowCount - 1
	tooMany  = intHops + 1
	// The upper bits of a word are the code of a rate; the last code represents all rates without a code.
	rateShift = 61
	otherRate = 7
)

// take reserves n rows for routes of the given number of switches and returns the number of the first. Once
// numbers run out it returns rows that are in use and sets full.
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

// widen makes room for the given number of records in each row, at most intHops.
func (r *rows) widen(records int) {
	old, width := r.width, max(r.width, 1)
	for width < min(records, intHops) {
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

func (r *rows) at(n uint32) []uint64 {
	i := int(n&(1<<rowBits-1)) * r.width
	return r.pieces[n>>rowBits][i : i+r.width]
}

// touch reads the first record of a frame's row (prefetch); aux may also be the number of a frame that
// arrived out of order.
func (r *rows) touch(aux uint32) uint32 {
	if n := aux & rowMask; uint64(n)>>rowBits < uint64(len(r.pieces)) {
		return uint32(r.at(n)[0])
	}
	return 0
}

// stamp adds a record to a frame's row and returns its new aux.
func (r *rows) stamp(aux uint32, word uint64, rate int64) uint32 {
	i, code := int(aux>>rowCount), uint64(0)
	if i >= r.width || i >= intHops {
		if i >= intHops {
			return aux&rowMask | tooMany<<rowCount
		}
		r.widen(i + 1)
	}
	if r.rates[0] != rate {
		code = r.code(rate, aux)
	}
	n := aux & rowMask
	r.pieces[n>>rowBits][int(n&(1<<rowBits-1))*r.width+i] = word | code<<rateShift
	return aux + 1<<rowCount
}

// code returns the code of a rate for the frame that carries aux.
func (r *rows) code(rate int64, aux uint32) uint64 {
	for k := range r.rates {
		if r.rates[k] == 0 {
			r.rates[k] = rate
		}
		if r.rates[k] == rate {
			return uint64(k)
		}
	}
	if r.others == nil {
		r.others = map[uint32]int64{}
	}
	r.others[aux] = rate
	return otherRate
}

func (r *rows) rate(aux uint32, word uint64, place int) int64 {
	if code := word >> rateShift; code < otherRate {
		return r.rates[code]
	}
	return r.others[aux&rowMask|uint32(place)<<rowCount]
}

// hops returns a frame's records; none if there were more than intHops.
func (r *rows) hops(aux uint32) []uint64 {
	if aux>>rowCount > intHops {
		return nil
	}
	return r.at(aux & rowMask)[:aux>>rowCount]
}
