package arrivals

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

const (
	some = 8 // lists shorter than this are sorted by insertion
	// up to this number of keys spread uses 64 buckets; beyond, bucket uses as many as keys
	few       = 64
	each      = 0x0101010101010101 // byte-wise 1: multiplying by it sums bytes
	last      = 1 << 63            // the sign bit
	placeBits = 24
	// bits of a key that hold the frame's number; the bits above hold its time
	Place   = 1<<placeBits - 1
	Longest = 1 << (63 - placeBits) // longest window in ps, such that times fit a key
)

// many is the number of frames that may arrive at a node in a window. Keys have room for four times as many,
// as windows of two delays hold twice as many.
const many = 1 << (placeBits - 2)

// Window shortens a window of length ps until the frames that can arrive in it can be numbered. end returns a
// link's destination and rate in bit/s; bytes is the size of the shortest frame.
func Window(length int64, nodes, links, bytes int, end func(link int) (node int32, rate int64)) int64 {
	busy := make([]float64, nodes) // bit/s
	for i := range links {
		node, rate := end(i)
		busy[node] += float64(rate)
	}
	return max(1,
		int64(min(float64(min(length, Longest)), many*8e12*float64(bytes)/max(1, slices.Max(busy)))))
}

// Key packs an arrival (after: ps since the start of the window) and the frame's number n: keys sort by time,
// then number.
func Key(after int64, n int) uint64 { return uint64(after)<<placeBits | uint64(n) }

// Together reports whether two keys have equal times.
func Together(a, b uint64) bool { return a^b <= Place }

// Before returns a bit for each of at most 64 times that is less than end. Times are not negative, so the
// sign bit of t−end is the answer: there is no branch to mispredict.
func Before(at []int64, end int64) (some uint64) {
	for _, t := range at {
		some = some>>1 | uint64(t-end)&last
	}
	return some >> (64 - len(at))
}

// BeforeOf is Before for the times with the given indices; a negative index is never before end.
func BeforeOf(at []int64, which []int32, end int64) (some uint64) {
	for _, k := range which {
		if some >>= 1; k >= 0 {
			some |= uint64(at[k]-end) & last
		}
	}
	return some >> (64 - len(which))
}

// Parts sorts the frames that arrive at a switch in a window by egress port (buckets of keys), then each
// bucket by time.
type Parts struct {
	Used []uint64 // bits of ports with keys, after End

	ports [][]uint64 // keys by port, in the order of Add
	all   []uint64
	spare []uint64
	room  []uint32
}

// Begin starts a window of a node with the given number of ports.
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

func (p *Parts) Add(port uint16, key uint64) {
	p.ports[port] = append(p.ports[port], key)
}

// Added returns a port's keys in the order of Add.
func (p *Parts) Added(port int) []uint64 { return p.ports[port] }

// Instead replaces a port's keys.
func (p *Parts) Instead(port int, keys []uint64) { p.ports[port] = append(p.ports[port][:0], keys...) }

// End computes Used; no keys may be added after it.
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

// Leaving returns a port's keys in order; times are below span (ps).
func (p *Parts) Leaving(port int, span int64) []uint64 { return p.order(p.ports[port], span) }

// LeavingMixed is Leaving for ports where arrivals of many senders are interleaved: a few keys are sorted at
// once, without a test whether they are already in order.
func (p *Parts) LeavingMixed(port int, span int64) []uint64 {
	a := p.ports[port]
	if len(a) > 8 {
		return p.order(a, span)
	}
	return Sort(a)
}

// Sort sorts keys in place; up to eight use the cheapest sorting network for their number.
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

// Merge appends two sorted lists to a third.
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

// Room returns memory for n keys, to be passed to All.
func (p *Parts) Room(n int) []uint64 {
	if cap(p.all) < n {
		p.all = make([]uint64, 2*n)
	}
	return p.all[:n]
}

// All sorts keys; times are below span (ps).
func (p *Parts) All(keys []uint64, span int64) []uint64 { return p.order(keys, span) }

// order sorts keys by the method that fits their disorder: most lists are sorted or nearly so.
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

// descents counts the keys that are followed by a lesser one.
func descents(a []uint64) (n int) {
	last := uint64(0)
	for _, x := range a {
		n += int((x - last) >> 63) // no key has the top bit set
		last = x
	}
	return n
}

// insert is insertion sort, for few or nearly sorted keys.
func insert(a []uint64) []uint64 {
	for i := 1; i < len(a); i++ {
		x, k := a[i], i
		for k > 0 && k < len(a) { // k < len(a) lets the compiler omit the bounds checks
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

// network sorts three or four keys by five exchanges, each a min and a max: branches would be mispredicted
// half of the time.
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

// spread sorts up to 64 keys in any order by counting: 64 buckets of time, whose counters are bytes, so that
// one multiplication computes eight prefix sums.
func (p *Parts) spread(a []uint64, span int64) []uint64 {
	width := max(0, bits.Len64(uint64(span-1))-6) + placeBits
	var counts [64]uint8
	for _, x := range a {
		counts[x>>(width&63)&63]++
	}
	before := uint64(0)
	for i := 0; i < 64; i += 8 {
		n := binary.LittleEndian.Uint64(counts[i:])
		n *= each // adds the counts of the words before
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

// bucket is spread for many keys, with about as many buckets as keys.
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

// Untie sorts keys of equal times by later, which reports whether frame i comes after frame j.
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
