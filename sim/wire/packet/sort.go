package packet

// sorter puts the frames of a window in the order of their times; frames of
// equal times keep their order, which is that of ports.
type sorter struct {
	out   []frame
	count [buckets + 1]uint32
}

const (
	bucketBits = 9
	buckets    = 1 << bucketBits
	few        = 24 // as many are sorted by insertion
)

// sorted returns frames, all within [from, from+span), in order: in their own
// memory, or in that of the sorter until its next call.
func (s *sorter) sorted(in []frame, from, span int64) []frame {
	n := len(in)
	if n <= few {
		insertion(in)
		return in
	}
	clear(s.count[:])
	scale := (1 << 40) / uint64(span) << bucketBits
	for i := range in {
		s.count[uint64(in[i].at-from)*scale>>40+1]++
	}
	for i := 1; i < len(s.count); i++ {
		s.count[i] += s.count[i-1]
	}
	if cap(s.out) < n {
		s.out = make([]frame, 2*n)
	}
	out := s.out[:n]
	for i := range in {
		b := &s.count[uint64(in[i].at-from)*scale>>40]
		out[*b] = in[i]
		*b++
	}
	insertion(out)
	return out
}

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
// moving them.
type parts struct {
	port  []uint16
	order []uint32 // indices, port by port
	first []int32  // of a port, in order
	spare []uint32
	room  [buckets + 1]uint32
}

// divide finds the ports of all frames that arrived at a switch.
func (p *parts) divide(e *engine, s *swtch) {
	n, ports := len(s.arrived), len(s.out)
	if cap(p.port) < n {
		p.port, p.order = make([]uint16, 2*n), make([]uint32, 2*n)
	}
	if cap(p.first) < ports+2 {
		p.first = make([]int32, 2*ports+2)
	}
	p.port, p.order, p.first = p.port[:n], p.order[:n], p.first[:ports+2]
	clear(p.first)
	for i := range s.arrived {
		f := &s.arrived[i]
		to := f.port // of PFC frames: they act there
		if f.flow >= 0 {
			f.route++
			to = e.links[e.hops[f.route]].fromPort
		}
		p.port[i] = to
		p.first[to+2]++
	}
	for i := 2; i < len(p.first); i++ {
		p.first[i] += p.first[i-1]
	}
	for i, to := range p.port {
		at := &p.first[to+1]
		p.order[*at] = uint32(i)
		*at++
	}
}

// ordered returns the frames of a port in the order of time, those of equal times
// in that in which they came.
func (p *parts) ordered(in []frame, port int, from, span int64) []uint32 {
	a := p.order[p.first[port]:p.first[port+1]]
	swaps := 0
	for i := 1; i < len(a); i++ {
		x, k := a[i], i-1
		for ; k >= 0 && in[a[k]].at > in[x].at; k-- {
			a[k+1] = a[k]
			swaps++
		}
		a[k+1] = x
		if swaps > few*len(a) {
			return p.bucket(in, a, from, span)
		}
	}
	return a
}

// bucket orders many frames that came by many ports; a is in order but for what
// follows some index, and equal times are in their order.
func (p *parts) bucket(in []frame, a []uint32, from, span int64) []uint32 {
	clear(p.room[:])
	scale := (1 << 40) / uint64(span) << bucketBits
	for _, i := range a {
		p.room[uint64(in[i].at-from)*scale>>40+1]++
	}
	for i := 1; i < len(p.room); i++ {
		p.room[i] += p.room[i-1]
	}
	if cap(p.spare) < len(a) {
		p.spare = make([]uint32, 2*len(a))
	}
	out := p.spare[:len(a)]
	for _, i := range a {
		b := &p.room[uint64(in[i].at-from)*scale>>40]
		out[*b] = i
		*b++
	}
	for i := 1; i < len(out); i++ {
		x, k := out[i], i-1
		for ; k >= 0 && in[out[k]].at > in[x].at; k-- {
			out[k+1] = out[k]
		}
		out[k+1] = x
	}
	return out
}
