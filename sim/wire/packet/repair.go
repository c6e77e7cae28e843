package packet

// overdue returns when the timeout of a host's flows may next end; never if
// none runs.
func (e *engine) overdue(h *host) int64 {
	t := never
	for _, id := range h.qps {
		if s := &e.snd[id]; s.Una < s.Nxt {
			t = min(t, s.Moved+int64(e.cfg.Repair.Timeout))
		}
	}
	return t
}

// timeouts sends again what is overdue at a host.
func (e *engine) timeouts(w *worker, h *host, now int64) {
	c := &e.cfg.Repair
	for _, id := range h.qps {
		s := &e.snd[id]
		if s.Una >= s.Nxt || s.Moved+int64(c.Timeout) > now {
			continue
		}
		w.Timeouts++
		s.Moved = now
		s.NextAvail = min(s.NextAvail, now)
		if s.Retries++; c.Retries > 0 && s.Retries > c.Retries {
			s.Una, s.Nxt, s.Ended, s.Ending = s.Frames, s.Frames, true, true // it sends no more
			h.over++
			e.result[id].Failed = true
			continue
		}
		e.lossSeen(id, s, now, s.Retries)
		if c.Selective {
			s.Gapped = true
			s.Gaps.Lost(s.Una, s.Nxt)
			continue
		}
		w.Retransmitted += int64(s.Nxt - s.Una)
		s.Resent += s.Nxt - s.Una
		s.Nxt = s.Una
	}
	h.timer = e.overdue(h)
}

// backTo is the frame to which a gap before psn leads back, in a flow of so many bytes.
func (e *engine) backTo(psn uint32, bytes int64) uint32 {
	return e.cfg.Repair.Back(psn, bytes, int64(e.cfg.Frames.Payload))
}
