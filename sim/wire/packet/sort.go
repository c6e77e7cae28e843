package packet

import "math/bits"

const (
	few       = 64 // as many are sorted by insertion
	placeBits = 24
	place     = 1<<placeBits - 1
	longest   = 1 << (63 - placeBits) // of a window, in ps
)

// insertion sorts what is nearly in order, stably.
func insertion(a []frame) {
	for i := 1; i < len(a); i++ {
		if a[i-1].at <= a[i].at {
			continue
		}
		f := a[i]
		k := i - 1
		for ; k >= 0 && a[k].at > f.at; k-- {
			a[k+1] = a[k]
		}
		a[k+1] = f
	}
}

// parts divides the frames of a window by the port by which they leave, without
// moving them. A frame's key is when it came, in ps of the window, and its place among
// those that arrived.
type parts struct {
	port  []uint16
	keys  []uint64 // port by port
	first []int32  // of a port, in keys
	spare []uint64
	room  []uint32
}

// of makes room for n frames.
func (p *parts) of(n int) {
	if cap(p.keys) < n {
		p.port, p.keys, p.spare = make([]uint16, 2*n), make([]uint64, 2*n), make([]uint64, 2*n)
	}
	p.port, p.keys = p.port[:n], p.keys[:n]
}

// divide finds the ports of all frames that arrived at a switch in a window from a time on.
func (p *parts) divide(e *engine, s *swtch, from int64) {
	ports := len(s.out)
	p.of(len(s.arrived))
	if cap(p.first) < ports+2 {
		p.first = make([]int32, 2*ports+2)
	}
	p.first = p.first[:ports+2]
	clear(p.first)
	clear(s.used)
	for i := range s.arrived {
		f := &s.arrived[i]
		to := uint16(s.entry(e, i)) // of PFC frames: they act there
		if f.flow >= 0 {
			f.route++
			to = e.exits[e.hops[f.route]]
		}
		p.port[i] = to
		s.used[to/64] |= 1 << (to % 64)
		p.first[to+2]++
	}
	for i := 2; i < len(p.first); i++ {
		p.first[i] += p.first[i-1]
	}
	for i, to := range p.port {
		at := &p.first[to+1]
		p.keys[*at] = uint64(s.arrived[i].at-from)<<placeBits | uint64(i)
		*at++
	}
}

// whole returns the keys of all frames in the order of time, all ports together.
func (p *parts) whole(e *engine, s *swtch, from int64) []uint64 {
	p.of(len(s.arrived))
	for i := range s.arrived {
		p.keys[i] = uint64(s.arrived[i].at-from)<<placeBits | uint64(i)
	}
	return p.ordered(e, s, p.keys)
}

// leaving returns the keys of the frames that leave by a port, in the order of time.
func (p *parts) leaving(e *engine, s *swtch, port int) []uint64 {
	return p.ordered(e, s, p.keys[p.first[port]:p.first[port+1]])
}

// ordered puts keys of frames in the order of time, those of equal times in that of
// ports or, with EventOrder, of events.
func (p *parts) ordered(e *engine, s *swtch, a []uint64) []uint64 {
	for i := 1; i < len(a); i++ {
		x := a[i]
		if a[i-1] < x {
			continue
		}
		if len(a) > few {
			a = p.bucket(a, e.look)
			break
		}
		k := i - 1
		for ; k >= 0 && a[k] > x; k-- {
			a[k+1] = a[k]
		}
		a[k+1] = x
	}
	if e.ordered {
		e.untie(s, a)
	}
	return a
}

// bucket orders many frames that came by several ports within a span.
func (p *parts) bucket(a []uint64, span int64) []uint64 {
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
