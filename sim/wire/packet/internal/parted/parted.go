// Package parted puts what arrives at a node in a window in the order of time, apart for
// each port by which it leaves, without moving it.
//
// In: when each arrives, and its port; what arrives is numbered in the order that decides
// where times are equal. Out: keys in order, which lead back to these numbers. It must not
// know what arrives.
package parted

import "math/bits"

const (
	few       = 64 // as many are sorted by insertion
	placeBits = 24
	// Place is which bits of a key say the number of what arrived.
	Place = 1<<placeBits - 1
	// Longest is the longest window, in ps.
	Longest = 1 << (63 - placeBits)
)

// Key is when something arrives, in ps of the window, and its number.
func Key(after int64, n int) uint64 { return uint64(after)<<placeBits | uint64(n) }

// After is when what has a key arrives, in ps of the window.
func After(key uint64) int64 { return int64(key >> placeBits) }

// Together says that two keys are of one instant.
func Together(a, b uint64) bool { return a>>placeBits == b>>placeBits }

// Parts is what arrives in a window, by port.
type Parts struct {
	Port []uint16 // of each
	Keys []uint64 // in the order of their numbers
	Used []uint64 // bits of ports by which something leaves

	sorted []uint64 // port by port
	first  []int32  // of a port, in sorted
	spare  []uint64
	room   []uint32
}

// Room makes room for n arrivals.
func (p *Parts) Room(n int) {
	if cap(p.Keys) < n {
		p.Port, p.Keys, p.sorted, p.spare = make([]uint16, 2*n), make([]uint64, 2*n), make([]uint64, 2*n), make([]uint64, 2*n)
	}
	p.Port, p.Keys = p.Port[:n], p.Keys[:n]
}

// Divide parts all that has a port and a key.
func (p *Parts) Divide(ports int) {
	if cap(p.first) < ports+2 {
		p.first, p.Used = make([]int32, 2*ports+2), make([]uint64, ports/32+1)
	}
	p.first, p.Used = p.first[:ports+2], p.Used[:(ports+63)/64]
	clear(p.first)
	clear(p.Used)
	for _, to := range p.Port {
		p.first[to+2]++
	}
	for i := 2; i < len(p.first); i++ {
		if p.first[i] > 0 {
			p.Used[(i-2)/64] |= 1 << ((i - 2) % 64)
		}
		p.first[i] += p.first[i-1]
	}
	sorted := p.sorted[:len(p.Keys)]
	for i, to := range p.Port {
		at := &p.first[to+1]
		sorted[*at] = p.Keys[i]
		*at++
	}
}

// Leaving is the keys of a port, in order; all are before span.
func (p *Parts) Leaving(port int, span int64) []uint64 {
	return p.order(p.sorted[p.first[port]:p.first[port+1]], span)
}

// All is the keys of all ports, in order.
func (p *Parts) All(span int64) []uint64 { return p.order(p.Keys, span) }

// order sorts keys that are nearly sorted, or few.
func (p *Parts) order(a []uint64, span int64) []uint64 {
	for i := 1; i < len(a); i++ {
		x := a[i]
		if a[i-1] < x {
			continue
		}
		if len(a) > few {
			return p.bucket(a, span)
		}
		k := i - 1
		for ; k >= 0 && a[k] > x; k-- {
			a[k+1] = a[k]
		}
		a[k+1] = x
	}
	return a
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
		room[x>>width+1]++
	}
	for i := 1; i < len(room); i++ {
		room[i] += room[i-1]
	}
	out := p.spare[:len(a)]
	for _, x := range a {
		b := &room[x>>width]
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
