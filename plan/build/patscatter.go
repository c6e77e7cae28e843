package build

// Reduce-scatter sends blocks for far ranks first, and every rank on the path adds its own part. It begins
// with phase 0, which sends the rank's own part of the blocks at odd distances to the next rank, and phase 1,
// which adds to the received blocks and passes them on by the lowest bit of the distance, aggregate after
// aggregate. After aggregate 1, phases 2 and 3 do the same within aggregate 0, over ever larger distances
// (scale), and phase 4 receives the rank's own block.

func (w *patWalk) resetScatter() {
	w.nelem = min(w.chunk, w.end-w.offset)
	w.phase, w.scale, w.as = 0, 1, w.delta-1
	w.resetScatterBlocks()
}

func (w *patWalk) resetScatterBlocks() {
	w.firstMet, w.ahead = 0, 0
	w.resetBlocks()
	if w.phase == 4 {
		w.lastA = 1
	}
}

// scatterPiece computes the piece at (phase, as, a).
func (w *patWalk) scatterPiece(t *patPiece) {
	t.Out, t.Ahead = w.offset, w.ahead
	switch w.phase {
	case 0:
		d := mirrored(w.a, w.lastA)*w.delta + w.as
		t.skip = d >= w.n
		t.In, t.SendDim = w.block(d), 0
		t.SendOff = w.inStep(w.a)
		t.PostSend = w.fills(w.a) || w.a == w.lastA-1
	case 1:
		w.scatterInner(t)
	case 2:
		w.scatterNear(t)
	case 3:
		w.scatterFar(t)
	case 4:
		t.RecvDim, t.PostRecv = 0, true
		t.In = w.block(0)
		t.RecvOff = w.inStep(w.agg - 1)
	}
}

// scatterInner passes on the blocks that came from the rank below, for aggregate as.
func (w *patWalk) scatterInner(t *patPiece) {
	d := mirrored(w.a, w.lastA)*w.delta + w.as
	t.skip = d >= w.n
	t.RecvDim = lowestBit(d)
	t.SendOff, t.RecvOff = w.inStep(w.a), w.inStep(w.a)
	t.PostRecv = w.fills(w.a) || w.a == w.lastA-1
	t.PostSend = t.RecvDim == 0 && t.PostRecv
	d -= 1 << t.RecvDim
	t.In = w.block(d)
	t.SendDim = lowestBit(d)
	if d != 0 && w.as-(1<<t.RecvDim) == 0 {
		if newPeer(w.a, w.agg) {
			w.firstMet, w.ahead, t.Ahead = w.a, 0, 0
		}
		t.SendOff = w.inStep(w.a - w.firstMet)
	}
	far := t.RecvDim > 0
	if d < w.n && t.skip {
		t.RecvDim, t.PostRecv, t.skip = -1, false, false
	}
	if far && (w.a-w.firstMet)%w.post+1 >= w.post && !t.skip {
		w.ahead++
	}
}

// scatterNear is phase 2, within an aggregate: it receives at distance one.
func (w *patWalk) scatterNear(t *patPiece) {
	d := (2*mirrored(w.a, w.lastA)+1)*w.scale*w.delta + 1
	t.skip = d >= w.n
	t.RecvDim = 0
	d--
	if d < w.n && t.skip {
		t.RecvDim, t.skip = -1, false
	} else if !t.skip {
		at := w.a + w.agg - w.agg/w.scale
		t.PostRecv = (at+1)%w.post == 0
		t.RecvOff = w.inStep(at)
	}
	t.In = w.block(d)
	t.SendDim = lowestBit(d)
	t.PostSend = w.a == w.lastA-1 || (w.a+1)%w.post == 0
	t.SendOff = w.inStep(w.a)
}

// scatterFar is phase 3, within an aggregate: it receives at the distance of the scale.
func (w *patWalk) scatterFar(t *patPiece) {
	d := (2*mirrored(w.a, w.lastA) + 1) * w.scale * w.delta
	t.skip = d >= w.n
	t.RecvDim = lowestBit(d)
	d -= 1 << t.RecvDim
	t.PostRecv = w.a == w.lastA-1 || (w.a+1)%w.post == 0
	t.RecvOff = w.inStep(w.a)
	t.In = w.block(d)
	t.SendDim = lowestBit(d)
	if d < w.n && t.skip {
		t.RecvDim, t.PostRecv, t.skip = -1, false, false
	}
	if newPeer(w.a, w.agg/(2*w.scale)) {
		w.firstMet, w.ahead, t.Ahead = w.a, 0, 0
	}
	at := (w.a - w.firstMet) % w.post
	if at+1 >= w.post && !t.skip {
		w.ahead++
	}
	if t.SendDim >= 0 {
		t.SendOff = int64(at) * w.nelem
	}
}

// advanceScatter moves on to the next piece, phase or chunk.
func (w *patWalk) advanceScatter() {
	if w.phase == 4 && w.a < w.lastA {
		w.offset += w.chunk
	}
	w.a++
	if w.a < w.lastA || w.a < w.groups {
		return
	}
	switch w.phase {
	case 0:
		w.phase = 1
		if w.as == 1 {
			w.phase = 4
			if w.agg > 1 {
				w.phase = 2
			}
		}
	case 1:
		w.as--
		w.phase = 1 - w.as%2
	case 2:
		w.phase = 3
	case 3:
		w.scale *= 2
		w.phase = 4
		if w.scale < w.agg {
			w.phase = 2
		}
	case 4:
		if w.offset >= w.end {
			w.done = true
			return
		}
		w.resetScatter()
		return
	}
	w.resetScatterBlocks()
}
