package build

// All-gather is reduce-scatter in reverse. An aggregate passes through these phases: phase 2 spreads its
// blocks over ever smaller distances (scale), phase 1 passes the blocks of an aggregate on by the lowest bit
// of their distance, phase 0 receives the blocks at odd distances, only for the rank's own output.

func (w *patWalk) resetGather() {
	w.nelem = min(w.chunk, w.end-w.offset)
	w.scale = w.agg / 2
	w.phase = 1
	if w.scale > 0 {
		w.phase = 2
	}
	w.v, w.asDim = 0, lowestBit(w.delta)
	for i := range w.asDim {
		w.bitCount[i] = w.asDim - i
		w.bitStep[i] = 1
	}
	w.as = w.nextAggregate()
	w.resetBlocks()
}

// nextAggregate steps through the aggregates depth first, by a counter for each
// bit. An aggregate comes from the one without its lowest bit. With a delta of 8
// the order is 4, 6, 7, 5, 2, 3, 1: 6 and 5 come from 4, 7 from 6, 3 from 2.
func (w *patWalk) nextAggregate() int {
	for d := range w.asDim {
		p := 1 << d
		if w.bitCount[d]--; w.bitCount[d] != 0 {
			continue
		}
		w.v ^= p
		w.bitCount[d] = p
		if w.v&p == 0 {
			w.bitCount[d] += lowestBit(w.bitStep[d]) - 1
			if w.bitCount[d] == 0 {
				w.v ^= p
				w.bitCount[d] = p
			}
			w.bitStep[d]++
		}
	}
	return w.v
}

// gatherPiece computes the piece at (phase, as, a).
func (w *patWalk) gatherPiece(t *patPiece) {
	t.In = w.offset
	switch w.phase {
	case 0: // the last hop: only to the rank's own output
		d := w.a*w.delta + w.as
		t.skip = d >= w.n
		t.Out, t.RecvDim = w.block(d), 0
		t.RecvOff = w.inStep(w.a)
		t.PostRecv = w.fills(w.a) || (w.a+1)*w.delta+w.as >= w.n
	case 1:
		w.gatherInner(t)
	case 2:
		w.gatherFar(t)
	}
}

// gatherInner passes on the blocks that came from further away, for aggregate as.
func (w *patWalk) gatherInner(t *patPiece) {
	d := w.a*w.delta + w.as
	t.skip = d >= w.n
	t.SendDim = lowestBit(d)
	d -= 1 << t.SendDim
	t.Out = w.block(d)
	t.RecvDim = lowestBit(d)
	t.SendOff, t.RecvOff = w.inStep(w.a), w.inStep(w.a)
	t.PostSend = w.fills(w.a) || (w.a+1)*w.delta+w.as >= w.n
	near := t.SendDim == 0
	t.PostRecv = near && (w.fills(w.a) || (w.a+1)*w.delta+w.as-1 >= w.n)
	if !near {
		t.Ahead = int64(w.a / w.post)
	}
	if t.RecvDim < 0 {
		t.PostRecv = false
	} else if w.as-(1<<t.SendDim) == 0 {
		at := (w.a * w.delta) >> (t.RecvDim + 1)
		t.RecvOff = w.inStep(at)
		t.PostRecv = near && (w.fills(at) || (((at+1)*2)+1)<<t.RecvDim >= w.n)
		t.Ahead = 0
		if !near {
			t.Ahead = int64(at / w.post)
		}
	}
	if d < w.n && near && t.skip {
		// Nothing is passed on, but the block is received a last time.
		t.SendDim, t.PostSend, t.skip = -1, false, false
	}
}

// gatherFar spreads the first blocks of the aggregates over the distance of the
// scale.
func (w *patWalk) gatherFar(t *patPiece) {
	d := (2*w.a + 1) * w.scale * w.delta
	t.PostSend = w.fills(w.a) || (2*(w.a+1)+1)*w.scale*w.delta >= w.n
	t.skip = d >= w.n
	t.SendDim = lowestBit(d)
	d -= 1 << t.SendDim
	t.SendOff = w.inStep(w.a)
	t.Ahead = int64(w.a / w.post)
	t.Out = w.block(d)
	t.RecvDim = lowestBit(d)
	if t.RecvDim >= 0 {
		at := (w.a * 2 * w.scale * w.delta) >> (t.RecvDim + 1)
		t.RecvOff = w.inStep(at)
		t.Ahead = int64(at / w.post)
	}
}

// advanceGather moves on to the next piece, phase or chunk.
func (w *patWalk) advanceGather() {
	w.a++
	if w.a < w.lastA || w.a < w.groups {
		return
	}
	was, odd := w.phase, w.as%2 == 1
	switch was {
	case 2:
		w.scale /= 2
		w.phase = 1
		if w.scale > 0 {
			w.phase = 2
		}
	case 1:
		w.phase = 1
		if odd {
			w.phase = 0
		}
	default:
		w.phase = 1
	}
	if was == 0 || (was == 1 && !odd) {
		w.as = w.nextAggregate()
	}
	if was == 0 && w.as == w.delta/2 {
		w.offset += w.chunk
		if w.offset >= w.end {
			w.done = true
			return
		}
		w.resetGather()
		return
	}
	w.resetBlocks()
}
