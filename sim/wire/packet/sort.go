package packet

const (
	bucketBits = 9
	buckets    = 1 << bucketBits
	few        = 64 // as many are sorted by insertion
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

// whole returns all frames in the order of time, all ports together.
func (p *parts) whole(e *engine, s *swtch, from, span int64) []uint32 {
	in := s.arrived
	if cap(p.order) < len(in) {
		p.port, p.order = make([]uint16, 2*len(in)), make([]uint32, 2*len(in))
	}
	p.order = p.order[:len(in)]
	for i := range p.order {
		p.order[i] = uint32(i)
	}
	return p.ordered(e, s, p.order, from, span)
}

// of returns the frames of a port in the order of time.
func (p *parts) of(e *engine, s *swtch, port int, from, span int64) []uint32 {
	return p.ordered(e, s, p.order[p.first[port]:p.first[port+1]], from, span)
}

// ordered puts indices of frames, all within [from, from+span), in the order of
// time, those of equal times in that of ports or, with EventOrder, of events.
func (p *parts) ordered(e *engine, s *swtch, a []uint32, from, span int64) []uint32 {
	in := s.arrived
	for i := 1; i < len(a); i++ {
		x, k := a[i], i-1
		if f, g := &in[a[k]], &in[x]; f.at < g.at || f.at == g.at && !e.later(s, f, g) {
			continue
		}
		if len(a) > few {
			return p.bucket(e, s, a, from, span)
		}
		for ; k >= 0; k-- {
			if f, g := &in[a[k]], &in[x]; f.at < g.at || f.at == g.at && !e.later(s, f, g) {
				break
			}
			a[k+1] = a[k]
		}
		a[k+1] = x
	}
	return a
}

// bucket orders many frames that came by several ports.
func (p *parts) bucket(e *engine, s *swtch, a []uint32, from, span int64) []uint32 {
	in := s.arrived
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
		for ; k >= 0; k-- {
			if f, g := &in[out[k]], &in[x]; f.at < g.at || f.at == g.at && !e.later(s, f, g) {
				break
			}
			out[k+1] = out[k]
		}
		out[k+1] = x
	}
	return out
}
