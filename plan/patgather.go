package plan

// All-gather by PAT: the mirror of reduce-scatter, near blocks last.

func (s *patState) resetGather() {
	s.nelem = min(s.chunk, s.end-s.offset)
	s.scale = s.agg / 2
	s.phase = 1
	if s.scale > 0 {
		s.phase = 2
	}
	s.v = 0
	for i := range s.asDim {
		s.bitCount[i] = s.asDim - i
		s.bitStep[i] = 1
	}
	s.as = s.nextPosition()
	s.resetGatherA()
}

func (s *patState) resetGatherA() {
	s.a = 0
	s.lastA = s.agg
	if s.phase >= 2 {
		s.lastA /= 2 * s.scale
	}
}

// nextPosition steps through the positions below delta in the order in which
// the tree reaches them: each bit keeps its value for a while of its own.
func (s *patState) nextPosition() int {
	for d := range s.asDim {
		p := 1 << d
		if s.bitCount[d]--; s.bitCount[d] != 0 {
			continue
		}
		s.v ^= p
		s.bitCount[d] = p
		if s.v&p == 0 {
			s.bitCount[d] += lowestBit(s.bitStep[d]) - 1
			if s.bitCount[d] == 0 {
				s.v ^= p
				s.bitCount[d] = p
			}
			s.bitStep[d]++
		}
	}
	return s.v
}

func (c *Cursor) nextPATGather(op *Op) bool {
	s := c.pat
	for !s.done {
		var t patStep
		s.gatherStep(&t)
		if !t.skip {
			c.emitGather(op, &t)
		}
		s.advanceGather()
		if !t.skip {
			return true
		}
	}
	return false
}

func (c *Cursor) emitGather(op *Op, t *patStep) {
	s := c.pat
	do, src := Do(0), Ref{}
	step, fresh := int64(0), false
	if t.recvDim >= 0 {
		port := &s.recv[t.recvDim]
		step = port.steps
		reach := t.recvOff + s.nelem + (port.steps+t.ahead)*s.slot
		fresh = port.mark < reach
		port.mark = max(port.mark, reach)
	} else {
		src = input(t.inp * c.es)
		fresh = s.local < t.inp+s.nelem && !c.p.Req.InPlace
		s.local = max(s.local, t.inp+s.nelem)
	}
	if t.sendDim >= 0 {
		step = s.send[t.sendDim].steps
	}
	dst := Ref{}
	if fresh {
		do |= Copy
		dst = output(t.out * c.es)
	}
	c.emitPAT(op, t, do, step)
	op.Src, op.Dst = src, dst
	op.RecvAhead = int32(t.ahead)
	if t.recvDim < 0 {
		op.RecvAhead, op.RecvOff = 0, 0
	}
	if t.sendDim < 0 {
		op.SendOff = 0
	}
}

// gatherStep computes the piece at (phase, as, a).
func (s *patState) gatherStep(t *patStep) {
	*t = patStep{recvDim: -1, sendDim: -1, inp: s.offset}
	if s.a >= s.lastA {
		t.skip = true
		return
	}
	switch s.phase {
	case 0: // the last hop: only to our own output
		d := s.a*s.delta + s.as
		t.skip = d >= s.n
		t.out, t.recvDim = s.block(d), 0
		t.recvOff = int64(s.a%s.post) * s.nelem
		t.postRecv = s.full(s.a) || (s.a+1)*s.delta+s.as >= s.n
	case 1:
		s.gatherInner(t)
	case 2:
		s.gatherFar(t)
	}
}

func (s *patState) gatherInner(t *patStep) {
	d := s.a*s.delta + s.as
	t.skip = d >= s.n
	t.sendDim = lowestBit(d)
	d -= 1 << t.sendDim
	t.out = s.block(d)
	t.recvDim = lowestBit(d)
	place := int64(s.a%s.post) * s.nelem
	t.sendOff, t.recvOff = place, place
	t.postSend = s.full(s.a) || (s.a+1)*s.delta+s.as >= s.n
	near := t.sendDim == 0
	t.postRecv = near && (s.full(s.a) || (s.a+1)*s.delta+s.as-1 >= s.n)
	if !near {
		t.ahead = int64(s.a / s.post)
	}
	if t.recvDim < 0 {
		t.postRecv = false
	} else if s.as-(1<<t.sendDim) == 0 {
		at := (s.a * s.delta) >> (t.recvDim + 1)
		t.recvOff = int64(at%s.post) * s.nelem
		t.postRecv = near && (s.full(at) || (((at+1)*2)+1)<<t.recvDim >= s.n)
		t.ahead = 0
		if !near {
			t.ahead = int64(at / s.post)
		}
	}
	if d < s.n && near && t.skip {
		// Receive once more although nobody needs it from us.
		t.sendDim, t.postSend, t.skip = -1, false, false
	}
}

func (s *patState) gatherFar(t *patStep) {
	d := (2*s.a + 1) * s.scale * s.delta
	t.postSend = s.full(s.a) || (2*(s.a+1)+1)*s.scale*s.delta >= s.n
	t.skip = d >= s.n
	t.sendDim = lowestBit(d)
	d -= 1 << t.sendDim
	t.sendOff = int64(s.a%s.post) * s.nelem
	t.ahead = int64(s.a / s.post)
	t.out = s.block(d)
	t.recvDim = lowestBit(d)
	if t.recvDim >= 0 {
		at := (s.a * 2 * s.scale * s.delta) >> (t.recvDim + 1)
		t.recvOff = int64(at%s.post) * s.nelem
		t.ahead = int64(at / s.post)
	}
}

// advanceGather moves on to the next piece, phase or chunk.
func (s *patState) advanceGather() {
	s.a++
	if s.a < s.lastA || s.a < s.groups {
		return
	}
	was, odd := s.phase, s.as%2 == 1
	switch was {
	case 2:
		s.scale /= 2
		s.phase = 1
		if s.scale > 0 {
			s.phase = 2
		}
	case 1:
		s.phase = 1
		if odd {
			s.phase = 0
		}
	default:
		s.phase = 1
	}
	if was == 0 || (was == 1 && !odd) {
		s.as = s.nextPosition()
	}
	if was == 0 && s.as == s.delta/2 {
		s.offset += s.chunk
		if s.offset >= s.end {
			s.done = true
			return
		}
		s.resetGather()
		return
	}
	s.resetGatherA()
}
