package arrivals

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	some      = 8  // fewer are sorted by insertion
	few       = 64 // as many by 64 parts of the span; with more the parts are as many as they are
	each      = 0x0101010101010101
	last      = 1 << 63 // the bit of negative numbers
	placeBits = 24
	// Place is which bits of a key say the number of what arrived.
	Place = 1<<placeBits - 1
	// Longest is the longest window, in ps.
	Longest = 1 << (63 - placeBits)
)

// many is how much may arrive at a node in a window: the places of keys are enough for four times as much,
// as windows that take turns last twice as long.
const many = 1 << (placeBits - 2)

// Window is how long a window may be, in ps, if one of a length may not be too long for other reasons, so
// that what arrives can be numbered: the ends of links with rates in bit/s are nodes, and no frame has fewer
// bytes.
func Window(length int64, nodes, links, bytes int, end func(link int) (node int32, rate int64)) int64 {
	busy := make([]float64, nodes) // bit/s
	for i := range links {
		node, rate := end(i)
		busy[node] += float64(rate)
	}
	return max(1,
		int64(min(float64(min(length, Longest)), many*8e12*float64(bytes)/max(1, slices.Max(busy)))))
}

// Key is when something arrives, in ps of the window, and its number.
func Key(after int64, n int) uint64 { return uint64(after)<<placeBits | uint64(n) }

// Together reports whether two keys are of one instant.
func Together(a, b uint64) bool { return a^b <= Place }

// Before says which of at most 64 times are before end, in bits: without a branch, as it could not
// be foreseen. No time is negative.
func Before(at []int64, end int64) (some uint64) {
	for _, t := range at {
		some = some>>1 | uint64(t-end)&last
	}
	return some >> (64 - len(at))
}

// BeforeOf is Before for some of the times, by their places; a negative one has none.
func BeforeOf(at []int64, which []int32, end int64) (some uint64) {
	for _, k := range which {
		if some >>= 1; k >= 0 {
			some |= uint64(at[k]-end) & last
		}
	}
	return some >> (64 - len(which))
}

// Parts is what arrives in a window, by port.
type Parts struct {
	Used []uint64 // bits of ports by which something leaves, once all was added

	ports [][]uint64 // keys by port, in the order of their numbers
	all   []uint64
	spare []uint64
	room  []uint32
}

// Begin begins a window of a node with so many ports.
func (p *Parts) Begin(ports int) {
	for i, some := range p.Used {
		for ; some != 0; some &= some - 1 {
			k := 64*i + bits.TrailingZeros64(some)
			p.ports[k] = p.ports[k][:0]
		}
	}
	if cap(p.Used) < (ports+63)/64 {
		p.Used = make([]uint64, (ports+63)/64)
	}
	if cap(p.ports) < ports {
		p.ports = append(p.ports, make([][]uint64, ports-len(p.ports))...)
	}
	p.Used, p.ports = p.Used[:(ports+63)/64], p.ports[:ports]
}

// Add adds what leaves by a port.
func (p *Parts) Add(port uint16, key uint64) {
	p.ports[port] = append(p.ports[port], key)
}

// Added is the keys of a port as they were added.
func (p *Parts) Added(port int) []uint64 { return p.ports[port] }

// Instead has other keys in place of those of a port.
func (p *Parts) Instead(port int, keys []uint64) { p.ports[port] = append(p.ports[port][:0], keys...) }

// End ends a window: all has been added.
func (p *Parts) End() {
	for i := range p.Used {
		some := uint64(0)
		ports := p.ports[64*i : min(64*i+64, len(p.ports))]
		for k := range ports {
			some = some>>1 | uint64(-int64(len(ports[k])))&last
		}
		p.Used[i] = some >> (64 - len(ports))
	}
}

// Leaving is the keys of a port, in order; all are before span.
func (p *Parts) Leaving(port int, span int64) []uint64 { return p.order(p.ports[port], span) }

// LeavingMixed is Leaving where few keys are in no order: what came is of many senders, each a bit.
func (p *Parts) LeavingMixed(port int, span int64) []uint64 {
	a := p.ports[port]
	if len(a) > 8 {
		return p.order(a, span)
	}
	return Sort(a)
}

// Sort puts few keys in order.
func Sort(a []uint64) []uint64 {
	switch len(a) {
	case 0, 1:
		return a
	case 2:
		a[0], a[1] = min(a[0], a[1]), max(a[0], a[1])
		return a
	case 3, 4:
		network(a)
		return a
	case 5, 6, 7, 8:
		eight(a)
		return a
	default:
		return insert(a)
	}
}

// Merge appends two lists of keys in order to a third.
func Merge(all, a, b []uint64) []uint64 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] < b[0] {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// Room is room for n keys, to be put in order by All.
func (p *Parts) Room(n int) []uint64 {
	if cap(p.all) < n {
		p.all = make([]uint64, 2*n)
	}
	return p.all[:n]
}

// All puts keys in order; all are before span.
func (p *Parts) All(keys []uint64, span int64) []uint64 { return p.order(keys, span) }

// order sorts keys, which may be in order.
func (p *Parts) order(a []uint64, span int64) []uint64 {
	for i := 1; i < len(a); i++ {
		x := a[i]
		if a[i-1] < x {
			continue
		}
		switch {
		case len(a) > few:
			return p.bucket(a, span)
		case len(a) >= some && (x < a[i/2] && i >= 2 || 4*descents(a) > len(a)):
			return p.spread(a, span)
		}
		return insert(a)
	}
	return a
}

// descents is how often a key is followed by a lesser one.
func descents(a []uint64) (n int) {
	last := uint64(0)
	for _, x := range a {
		n += int((x - last) >> 63) // no key has that bit
		last = x
	}
	return n
}

// insert sorts keys that are nearly sorted, or few.
func insert(a []uint64) []uint64 {
	for i := 1; i < len(a); i++ {
		x, k := a[i], i
		for k > 0 && k < len(a) { // the second for the compiler, which needs to check nothing then
			y := a[k-1]
			if y <= x {
				break
			}
			a[k] = y
			k--
		}
		a[k] = x
	}
	return a
}

// network sorts three or four keys by five exchanges without a branch: which is less is not known
// beforehand, and a wrong guess costs as much as all of them.
func network(a []uint64) {
	w, x, y, z := a[0], a[1], a[2], uint64(1<<64-1)
	if len(a) == 4 {
		z = a[3]
	}
	w, x = min(w, x), max(w, x)
	y, z = min(y, z), max(y, z)
	w, y = min(w, y), max(w, y)
	x, z = min(x, z), max(x, z)
	x, y = min(x, y), max(x, y)
	a[0], a[1], a[2] = w, x, y
	if len(a) == 4 {
		a[3] = z
	}
}

// spread sorts some keys that lie all over the span by 64 parts of it, whose counters are bytes: what
// comes before a part is found for eight of them by one multiplication. Where a key goes is no branch.
func (p *Parts) spread(a []uint64, span int64) []uint64 {
	width := max(0, bits.Len64(uint64(span-1))-6) + placeBits
	var counts [64]uint8
	for _, x := range a {
		counts[x>>(width&63)&63]++
	}
	before := uint64(0)
	for i := 0; i < 64; i += 8 {
		n := binary.LittleEndian.Uint64(counts[i:])
		n *= each // with those of the parts before it
		binary.LittleEndian.PutUint64(counts[i:], n<<8+before*each)
		before += n >> 56
	}
	if cap(p.spare) < 256 {
		p.spare = make([]uint64, 256)
	}
	room := (*[256]uint64)(p.spare[:256])
	for _, x := range a {
		c := &counts[x>>(width&63)&63]
		room[*c] = x
		*c++
	}
	return insert(room[:len(a)])
}

// bucket sorts many keys that lie all over the span.
func (p *Parts) bucket(a []uint64, span int64) []uint64 {
	width := max(0, bits.Len64(uint64(span-1))-bits.Len(uint(len(a)))) + placeBits
	n := int(uint64(span)<<placeBits>>width) + 2
	if cap(p.room) < n {
		p.room = make([]uint32, 2*n)
	}
	room := p.room[:n]
	clear(room)
	for _, x := range a {
		room[x>>(width&63)+1]++
	}
	for i := 1; i < len(room); i++ {
		room[i] += room[i-1]
	}
	if cap(p.spare) < len(a) {
		p.spare = make([]uint64, 2*len(a))
	}
	out := p.spare[:len(a)]
	for _, x := range a {
		b := &room[x>>(width&63)]
		out[*b] = x
		*b++
	}
	for i := 1; i < len(out); i++ {
		x, k := out[i], i-1
		for ; k >= 0 && out[k] > x; k-- {
			out[k+1] = out[k]
		}
		out[k+1] = x
	}
	return out
}

// Untie puts keys of equal times in order, where later says that of two places the first is later.
func Untie(keys []uint64, later func(i, j uint64) bool) {
	for i := 1; i < len(keys); i++ {
		x := keys[i]
		if !Together(keys[i-1], x) {
			continue
		}
		k := i - 1
		for ; k >= 0 && Together(keys[k], x) && later(keys[k]&Place, x&Place); k-- {
			keys[k+1] = keys[k]
		}
		keys[k+1] = x
	}
}
