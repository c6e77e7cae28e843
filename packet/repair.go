package packet

// timeouts retransmits the overdue frames of a host's queue pairs; a queue pair without retries left fails.
func (e *engine) timeouts(w *worker, h *host, now int64) {
	c := &e.cfg.Repair
	for _, id := range h.Pairs {
		s := &e.snd[id]
		if s.Due(int64(c.Timeout)) > now {
			continue
		}
		w.Timeouts++
		if s.GivesUp(now, c.Retries) {
			h.Over++
			e.result[id].Failed = true
			continue
		}
		e.lossSeen(id, s, now, s.Retries)
		w.Retransmitted += e.controls.Again(id, s.Again(c.Selective))
	}
	h.Tabled, h.Timer = false, h.Overdue(e.snd, int64(c.Timeout))
}

// Trimming, as Ultra Ethernet has it: a switch without room for a data frame cuts it to its headers, which
// overtake all data. The receiver at once asks for the trimmed frame (NACK), and the sender sends it again as
// soon as its window has room.

// noteTrimmed records at the sender that a frame arrived trimmed to its header, as a gap to be sent again.
func (e *engine) noteTrimmed(f *frame, s *sender) {
	if f.Aux < s.Una || f.Aux >= s.Nxt {
		return
	}
	s.Gapped = true
	if s.Gaps.Refuse(f.Aux, s.Una) {
		e.lossSeen(f.Flow, s, f.At, 0)
	}
}
