package plan

// Reduce-scatter by PAT: far blocks first; on the way every rank adds its own
// part.

func (s *patState) resetScatter() {
	s.nelem = min(s.chunk, s.end-s.offset)
	s.phase, s.scale, s.as = 0, 1, s.delta-1
	s.resetScatterA()
}

func (s *patState) resetScatterA() {
	s.a, s.skipped, s.ahead = 0, 0, 0
	s.lastA = s.agg
	if s.phase >= 2 {
		s.lastA /= 2 * s.scale
	}
	if s.phase == 4 {
		s.lastA = 1
	}
}

// nextPATScatter finds the next piece that is not skipped.
func (c *Cursor) nextPATScatter(op *Op) bool {
	s := c.pat
	for !s.done {
		var t patStep
		s.scatterStep(&t)
		if !t.skip {
			c.emitScatter(op, &t)
		}
		s.advanceScatter()
		if !t.skip {
			return true
		}
	}
	return false
}

func (c *Cursor) emitScatter(op *Op, t *patStep) {
	s := c.pat
	do := Do(0)
	if t.recvDim >= 0 {
		do |= Reduce
	}
	src, dst := input(t.inp*c.es), Ref{}
	step := int64(0)
	if t.sendDim >= 0 {
		port := &s.send[t.sendDim]
		step = port.steps
		reach := t.sendOff + s.nelem + (port.steps+t.ahead)*s.slot
		if port.mark >= reach {
			do |= Accum
			src = Ref{}
		}
		port.mark = max(port.mark, reach)
	} else {
		do |= Copy
		dst = output(t.out * c.es)
		if s.local >= t.out+s.nelem {
			do |= Accum
			src = Ref{}
		}
		s.local = max(s.local, t.out+s.nelem)
		if t.recvDim >= 0 {
			step = s.recv[t.recvDim].steps
		}
	}
	c.emitPAT(op, t, do, step)
	op.Src, op.Dst = src, dst
	op.SendAhead = int32(t.ahead)
	if t.sendDim < 0 {
		op.SendAhead, op.SendOff = 0, 0
	}
	if t.recvDim < 0 {
		op.RecvOff = 0
	}
}

// scatterStep computes the piece at (phase, as, a).
func (s *patState) scatterStep(t *patStep) {
	*t = patStep{recvDim: -1, sendDim: -1, out: s.offset, ahead: s.ahead}
	if s.a >= s.lastA {
		t.skip = true
		return
	}
	switch s.phase {
	case 0:
		d := reversed(s.a, s.lastA, true)*s.delta + s.as
		t.skip = d >= s.n
		t.inp, t.sendDim = s.block(d), 0
		t.sendOff = int64(s.a%s.post) * s.nelem
		t.postSend = s.full(s.a) || s.a == s.lastA-1
	case 1:
		s.scatterInner(t)
	case 2:
		s.scatterNear(t)
	case 3:
		s.scatterFar(t)
	case 4:
		t.recvDim, t.postRecv = 0, true
		t.inp = s.block(0)
		t.recvOff = int64((s.agg-1)%s.post) * s.nelem
	}
}

// scatterInner: pass on what came from below, for position as.
func (s *patState) scatterInner(t *patStep) {
	d := reversed(s.a, s.lastA, true)*s.delta + s.as
	t.skip = d >= s.n
	t.recvDim = lowestBit(d)
	place := int64(s.a%s.post) * s.nelem
	t.sendOff, t.recvOff = place, place
	t.postRecv = s.full(s.a) || s.a == s.lastA-1
	t.postSend = t.recvDim == 0 && t.postRecv
	d -= 1 << t.recvDim
	t.inp = s.block(d)
	t.sendDim = lowestBit(d)
	if d != 0 && s.as-(1<<t.recvDim) == 0 {
		if newPeer(s.a, s.agg) {
			s.skipped, s.ahead, t.ahead = s.a, 0, 0
		}
		t.sendOff = int64((s.a-s.skipped)%s.post) * s.nelem
	}
	far := t.recvDim > 0
	if d < s.n && t.skip {
		t.recvDim, t.postRecv, t.skip = -1, false, false
	}
	if far && (s.a-s.skipped)%s.post+1 >= s.post && !t.skip {
		s.ahead++
	}
}

// scatterNear: within an aggregate, receive at distance one.
func (s *patState) scatterNear(t *patStep) {
	d := (2*reversed(s.a, s.lastA, true)+1)*s.scale*s.delta + 1
	t.skip = d >= s.n
	t.recvDim = 0
	d--
	if d < s.n && t.skip {
		t.recvDim, t.skip = -1, false
	} else if !t.skip {
		at := s.a + s.agg - s.agg/s.scale
		t.postRecv = (at+1)%s.post == 0
		t.recvOff = int64(at%s.post) * s.nelem
	}
	t.inp = s.block(d)
	t.sendDim = lowestBit(d)
	t.postSend = s.a == s.lastA-1 || (s.a+1)%s.post == 0
	t.sendOff = int64(s.a%s.post) * s.nelem
}

// scatterFar: within an aggregate, receive at the distance of the scale.
func (s *patState) scatterFar(t *patStep) {
	d := (2*reversed(s.a, s.lastA, true) + 1) * s.scale * s.delta
	t.skip = d >= s.n
	t.recvDim = lowestBit(d)
	d -= 1 << t.recvDim
	t.postRecv = s.a == s.lastA-1 || (s.a+1)%s.post == 0
	t.recvOff = int64(s.a%s.post) * s.nelem
	t.inp = s.block(d)
	t.sendDim = lowestBit(d)
	if d < s.n && t.skip {
		t.recvDim, t.postRecv, t.skip = -1, false, false
	}
	if newPeer(s.a, s.agg/(2*s.scale)) {
		s.skipped, s.ahead, t.ahead = s.a, 0, 0
	}
	at := (s.a - s.skipped) % s.post
	if at+1 >= s.post && !t.skip {
		s.ahead++
	}
	if t.sendDim >= 0 {
		t.sendOff = int64(at) * s.nelem
	}
}

// advanceScatter moves on to the next piece, phase or chunk.
func (s *patState) advanceScatter() {
	if s.phase == 4 && s.a < s.lastA {
		s.offset += s.chunk
	}
	s.a++
	if s.a < s.lastA || s.a < s.groups {
		return
	}
	was := s.phase
	switch was {
	case 0:
		s.phase = 1
		if s.as == 1 {
			s.phase = 4
			if s.agg > 1 {
				s.phase = 2
			}
		}
	case 1:
		s.as--
		s.phase = 1 - s.as%2
	case 2:
		s.phase = 3
	case 3:
		s.scale *= 2
		s.phase = 4
		if s.scale < s.agg {
			s.phase = 2
		}
	case 4:
		if s.offset >= s.end {
			s.done = true
			return
		}
		s.resetScatter()
		return
	}
	s.resetScatterA()
}
