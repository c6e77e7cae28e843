package packet

import "github.com/simccl/simccl/sim/wire/packet/internal/instant"

// Links with credits, as InfiniBand has them: a frame starts only if the buffer
// at the other end has room for all of it, and the room that a frame leaves is
// reported one delay of the link after the frame has left. There are no pauses,
// thresholds or drops. Control frames (class 0) need no credit, as on VL15.

// report is the flow of a frame that brings credits back; its size is theirs.
const report = -2

// repay sends the room that a frame left back over the link by which it came.
func (l *link) repay(f *frame, at int64) {
	if f.Class != 0 {
		l.returns.Push(&frame{At: at + l.delay, Flow: report, Size: f.Size, Class: f.Class})
	}
}

// spend takes the credit that a frame needs.
func (l *link) spend(f *frame) {
	if f.Class != 0 {
		l.credit[f.Class] -= int64(f.Size)
	}
}

// gate holds the classes back whose next frame has no credit; a host's next
// frame may be as large as any. The time that something waits for credit counts as a
// pause of the port.
func (e *engine) gate(l *link, at int64) {
	before := l.asked
	for c := 1; c < e.classes; c++ {
		need := int64(e.cfg.Frames.Most())
		if l.q != nil {
			need = 0
			if q := &l.q[c]; !q.Empty() {
				need = int64(q.Front().Size)
			}
		}
		l.asked &^= 1 << c
		if l.credit[c] < need {
			l.asked |= 1 << c
		}
	}
	switch p := &l.port; {
	case before == 0 && l.asked != 0:
		p.since = at
		if l.q == nil && !e.hosts[e.hostOf[l.from]].Wants(e.snd) {
			p.since = -1
		}
	case before != 0 && l.asked == 0 && p.since >= 0:
		p.paused += at - p.since
	}
	l.hold()
}

// credited handles credits that came back to a switch.
func (e *engine) credited(w *worker, s *swtch, f *frame, n instant.Number) {
	e.arrived(w, n)
	l := &e.links[s.out[f.Tag]]
	l.credit[f.Class] += int64(f.Size)
	e.gate(l, f.At)
	s.soon = 0
	if l.waiting&^l.paused != 0 && l.free < f.At {
		e.dequeue(w, s, l, f.At)
	}
}
