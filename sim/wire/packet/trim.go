package packet

// Trimming, as Ultra Ethernet has it: a data frame for which a switch has no room is cut to its
// headers, which go on before all data. The receiver asks for what was cut at once, and the
// sender sends it again as soon as its window has room.

// trim cuts a frame for which an egress queue has no room.
func (e *engine) trim(w *worker, l *link, f *frame) {
	most := e.cfg.Buffer.Trim
	if most == 0 || f.flow < 0 || f.flags&flagAck != 0 || l.q[f.class].bytes+int64(f.size) <= most {
		return
	}
	f.size, f.class = uint16(e.cfg.Frames.Header), 0
	f.flags |= flagTrim
	w.trims++
	l.port.trims++
}

// refuse asks for a frame that came without its data.
func (e *engine) refuse(r *receiver, f, ack *frame) bool {
	if f.psn < r.expected {
		return false // it came before
	}
	*ack = frame{flow: f.flow, psn: r.expected, route: r.back, aux: f.psn, size: uint16(e.cfg.Frames.Ack), flags: flagAck | flagTrim}
	return true
}

// refused notes at the sender that a frame came without its data.
func (e *engine) refused(f *frame, s *sender) {
	if f.aux < s.una || f.aux >= s.nxt {
		return
	}
	s.gapped = true
	if s.gaps.Refuse(f.aux, s.una) {
		e.lossSeen(f.flow, s, f.at, 0)
	}
}

// flight is how many frames are on their way. Without trimming those count, too, that came out
// of order.
func (e *engine) flight(s *sender) uint32 {
	n := s.nxt - s.una
	if e.cfg.Buffer.Trim > 0 && s.gapped {
		n -= min(n, s.gaps.Away())
	}
	return n
}

// elsewhere is the payload above una that is not on its way, with trimming, in bytes.
func (e *engine) elsewhere(s *sender) int64 {
	return int64(s.nxt-s.una-e.flight(s)) * int64(e.cfg.Frames.Payload)
}
