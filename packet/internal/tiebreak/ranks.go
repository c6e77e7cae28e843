package tiebreak

// Frames that arrive simultaneously over many links were mostly started one after the other by transmissions
// that ended simultaneously, and so on backwards. Once a batch of events has been ordered, its members keep
// their ranks: events that they cause need no comparison.

// placed is an event's rank within a batch of simultaneous events, below the batch's number; 0: none.
type placed uint64

// placeBits is the number of bits of a rank.
const placeBits = 16

// Rank returns the rank of an event's cause within its batch of simultaneous events, and when the event was
// scheduled. Two events scheduled at the same time have the order of these ranks, if both are from one batch;
// 0: unknown.
func (c *Calendar) Rank(x Number) (rank uint64, at int64) {
	i, oldest := int((x-Number(c.oldest))&^None), Number(c.oldest)
	if c.of.ids != 0 || x >= None || i < len(c.ranks) || i >= c.size {
		return 0, 0
	}
	e := &c.log[i]
	if p := e.by &^ whatBits; p>>31 == numbered>>31 {
		if k := int((Number(p) - oldest) &^ None); k < len(c.places) {
			return uint64(c.places[k]), e.at
		}
	}
	return 0, e.at
}

// Together reports whether two ranks belong to the same batch.
func Together(a, b uint64) bool { return a>>placeBits == b>>placeBits }

// Placed begins a batch of n events, to which Put assigns ranks one by one; it returns 0 if there are too
// many.
func (c *Calendar) Placed(n int) (row uint64) {
	if c.of.ids != 0 || n >= 1<<placeBits {
		return 0
	}
	if len(c.places) < c.size {
		c.places = append(make([]placed, 0, len(c.log)), c.places...)[:len(c.log)]
	}
	c.rows++
	return c.rows << placeBits
}

// Put records an event's rank in a batch.
func (c *Calendar) Put(row uint64, x Number, place int) {
	if i := int((x - Number(c.oldest)) &^ None); row != 0 && x < None && i < c.size {
		c.places[i] = placed(row + uint64(place))
	}
}

// move discards the ranks of the cut oldest entries.
func (c *Calendar) move(cut, size int) {
	if len(c.places) > 0 {
		n := copy(c.places, c.places[min(cut, len(c.places)):min(size, len(c.places))])
		clear(c.places[n:])
	}
}
