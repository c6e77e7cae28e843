package packet

// overdue returns when the timeout of a host's flows may next end; never if
// none runs.
func (e *engine) overdue(h *host) int64 {
	t := never
	for _, id := range h.qps {
		t = min(t, e.snd[id].Due(int64(e.cfg.Repair.Timeout)))
	}
	return t
}

// timeouts sends again what is overdue at a host.
func (e *engine) timeouts(w *worker, h *host, now int64) {
	c := &e.cfg.Repair
	for _, id := range h.qps {
		s := &e.snd[id]
		if s.Due(int64(c.Timeout)) > now {
			continue
		}
		w.Timeouts++
		if s.GivesUp(now, c.Retries) {
			h.over++
			e.result[id].Failed = true
			continue
		}
		e.lossSeen(id, s, now, s.Retries)
		w.Retransmitted += e.controls.Again(id, s.Again(c.Selective))
	}
	h.timer = e.overdue(h)
}

// backTo is the frame to which a gap before psn leads back, in a flow of so many bytes.
func (e *engine) backTo(psn uint32, bytes int64) uint32 {
	return e.cfg.Repair.Back(psn, bytes, int64(e.cfg.Frames.Payload))
}
