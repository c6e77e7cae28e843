package port

import (
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// Lay creates two links for each cable: 2i from A to B, 2i+1 from B to A. delay is the longest exact window
// in ps: at most the least cable delay and half a pause, and short enough that its arrivals can be numbered.
func Lay(n *spec.Network, s *spec.Config, classes int, ordered bool) (links []Link, delay int64) {
	links, delay = make([]Link, 2*len(n.Cables)), never
	for i, c := range n.Cables {
		delay = min(delay, int64(c.Delay))
		for k := range 2 {
			l := &links[2*i+k]
			*l = Link{ID: int32(2*i + k), Peer: int32(2*i + 1 - k), From: c.A, To: c.B, Rate: c.Rate,
				Coded: s.CC.Coded(c.Rate), Delay: int64(c.Delay), Loss: c.Loss, Lossy: c.Loss > 0,
				Begun: tiebreak.None, Feeder: -1, Drawn: ordered && s.LossStream > 0 && c.Loss > 0}
			if k == 1 {
				l.From, l.To = c.B, c.A
			}
			l.Ack, l.Whole = s.Lasts(s.Frames.Ack, c.Rate), s.Lasts(s.Frames.Payload+s.Frames.Header, c.Rate)
			if l.Nominal = c.Rate; s.CutThrough > 0 && n.Switch[l.To] {
				l.Head = s.Lasts(s.CutThrough, c.Rate)
			}
			if n.Switch[l.From] {
				for _, m := range s.Marking {
					if m.Rate == l.Rate {
						l.Marks, l.KMin, l.KMax, l.PMax, l.Alert = true, m.KMin, m.KMax, m.PMax, m.KMin
						if s.EventOrder && !ordered {
							l.Alert = m.KMin / 8
						}
					}
				}
				l.Queues, l.Odd = make([]Queue, classes), s.Buffer.Trim > 0 || s.MarkAtEnqueue
				if s.MarkAtEnqueue {
					l.Alert = never // at dequeue no frame is marked
				}
				if s.Watchdog.After > 0 {
					l.Watch = NewPFCWatchdog()
				}
			}
			if s.Buffer.Quanta > 0 {
				delay = min(delay, l.expire(&s.Buffer))
			}
			if c := s.Buffer.Credits; c > 0 {
				l.Credit, l.Lost, l.Odd = make([]int64, classes), &frames.Ring{}, true
				for k := range l.Credit {
					l.Credit[k] = c
				}
			}
		}
	}
	return links, arrivals.Window(delay, n.Nodes, len(links), s.LeastFrame(), func(link int) (int32, int64) {
		return links[link].To, links[link].Nominal
	})
}

// Number numbers each node's ports in the order of links. It returns the links out of each node, the ends of
// each link, and by link the number of its egress port.
func Number(links []Link, nodes int) (out [][]int32, ends []route.Link, exits []uint16) {
	out, ends, exits = make([][]int32, nodes), make([]route.Link, len(links)), make([]uint16, len(links))
	for i := range links {
		l := &links[i]
		l.FromPort, ends[i] = uint16(len(out[l.From])), route.Link{From: l.From, To: l.To}
		exits[i], out[l.From] = l.FromPort, append(out[l.From], l.ID)
	}
	return out, ends, exits
}

// Next returns the time of the next event of any port (arrival, start, credit, end of a pause, watchdog);
// never if only renewals of pauses remain. dog holds the watchdog's times.
func Next(links []Link, due []int64, dog *spec.Watchdog) int64 {
	t := never
	for i := range links {
		l := &links[i]
		if l.Timer == nil || !l.onlyRenewals(&links[l.Peer]) {
			if t = min(t, due[i]); l.Head > 0 && due[i] < never { // part of that frame may have arrived
				t = min(t, due[i]-l.Whole)
			}
		}
		if l.Timer != nil && l.ends(&links[l.Peer]) {
			t = min(t, l.Timer.Next())
		}
		if l.Waiting&^l.Paused != 0 {
			t = min(t, l.Free)
		}
		if !l.Returns.Empty() {
			t = min(t, l.Returns.Front().At)
		}
		if l.Watch != nil {
			t = min(t, l.Watch.Next(int64(dog.After), int64(dog.Restore)))
		}
	}
	return t
}

// Stuck reports whether any paused frames are queued, and how many frames their queues have sent: Deadlocks
// compares that number.
func Stuck(links []Link) (held bool, sent uint64) {
	for i := range links {
		if l := &links[i]; l.Waiting&l.Paused != 0 && l.Credit == nil {
			held = true
			for c := range l.Queues {
				if l.Paused>>c&1 != 0 {
					sent += uint64(l.Queues[c].Head)
				}
			}
		}
	}
	return held, sent
}

// Cycle returns a cycle of nodes, each with queued frames paused by the next; nil: none.
func Cycle(links []Link, nodes int) []int32 {
	next := make([][]int32, nodes)
	for i := range links {
		if l := &links[i]; l.Waiting&l.Paused != 0 {
			next[l.From] = append(next[l.From], l.To)
		}
	}
	return cycleAmong(next)
}

// FindDeadlock returns a deadlock that is confirmed now and was not reported before; without nodes: none.
func FindDeadlock(links []Link, nodes int, known *Deadlocks, now int64) (d spec.Deadlock) {
	held, sent := Stuck(links)
	if !held {
		known.Reset()
	} else if c, at, is := known.Observe(Cycle(links, nodes), sent, now); is {
		d = spec.Deadlock{At: units.Time(at), Nodes: c}
	}
	return d
}

// Blocked lists head-of-line blocking, longest first.
func Blocked(links []Link) (all []spec.Blocked) {
	for i := range links {
		l := &links[i]
		if l.HOL == nil {
			continue
		}
		for _, v := range l.HOL.Blocked.All() {
			c := &links[v.Cause]
			all = append(all, spec.Blocked{Flow: v.Who, Link: [2]int32{l.From, l.To},
				Behind: [2]int32{c.From, c.To}, Time: units.Time(v.Time)})
		}
	}
	slices.SortStableFunc(all, func(a, b spec.Blocked) int { return int(min(max(b.Time-a.Time, -1), 1)) })
	return all
}

// Deepest returns the link among some with the longest queue of a class.
func Deepest(links []Link, some []int32, class uint8) int32 {
	best := some[0]
	for _, id := range some {
		if links[id].Queues[class].Bytes > links[best].Queues[class].Bytes {
			best = id
		}
	}
	return best
}

// Count adds the links' frame count, deepest queue and busiest direction to a result. full is the bytes of a
// full data frame.
func Count(links []Link, full int64, r *spec.Result) {
	for i := range links {
		l := &links[i]
		if lasts := units.Time(float64(l.Data) / float64(full) * float64(l.Whole)); lasts > r.Busiest.Lasts {
			r.Busiest = spec.Busy{Link: [2]int32{l.From, l.To}, Data: l.Data, Rate: l.Nominal, Lasts: lasts}
		}
		r.FrameHops += int64(l.Sent)
		if l.Peak > r.PeakQueue {
			r.PeakQueue, r.PeakLink = l.Peak, [2]int32{l.From, l.To}
		}
	}
}

// LostResume returns a link into a switch that is paused although the switch (stopped) does not pause it and
// no RESUME is on its way; nil: none.
func LostResume(links []Link, in []int32, stopped func(port, class int) bool) *Link {
	for p, id := range in {
		l := &links[id]
		for c := 1; c < 8; c++ {
			if l.Credit == nil && l.Asked>>c&1 != 0 && !stopped(p, c) && !links[l.Peer].resumes(uint32(c)) {
				return l
			}
		}
	}
	return nil
}

// resumes reports whether a RESUME for a priority class (its number) is on the cable towards the far end,
// or may still be in the control queue before it.
func (l *Link) resumes(class uint32) bool {
	for i := l.Wire.Head; i != l.Wire.Tail; i++ {
		if f := l.Wire.At(i); f.Flow < 0 && f.Flags&frames.Resume != 0 && f.Psn == class {
			return true
		}
	}
	return len(l.Queues) > 0 && !l.Queues[0].Empty()
}

// RoundTrip returns the unloaded round trip in ps of a full data frame over links there and its
// acknowledgement over links back, less the time that cut-through switches save.
func RoundTrip(c *spec.Config, links []Link, there, back []int32) (ps units.Time) {
	for i := range there {
		a, b := &links[there[i]], &links[back[i]]
		if ps += units.Time(a.Delay + a.Whole + b.Delay + b.Ack); i+1 < len(there) {
			ps -= units.Time(a.Lead(c, uint16(c.Frames.Payload+c.Frames.Header), links[there[i+1]].Nominal) +
				b.Lead(c, uint16(c.Frames.Ack), links[back[i+1]].Nominal))
		}
	}
	return ps
}

// Report returns the port's counters up to now (ps). The caller adds its host's retransmissions.
func (l *Link) Report(now int64) spec.Port {
	x := &l.Stats
	p := spec.Port{Peak: l.Peak, Bytes: l.TxBytes, Data: l.Data, Pauses: x.Pauses, Marks: x.Marks,
		Drops: x.Drops, Trims: x.Trims, Watchdogs: x.Triggers, Paused: units.Time(x.Paused),
		Busy: units.Time(float64(l.TxBytes) * 8e12 / float64(l.Rate))}
	if l.Stopped() && x.Since >= 0 {
		p.Paused += units.Time(now - x.Since)
	}
	if p.Behind = -1; l.HOL != nil {
		p.First, p.Behind = units.Time(l.HOL.First), l.HOL.Behind.Worst(l.HOL.Culprit)
	}
	return p
}

// State returns the port's state at now (ps), for an observer.
func (l *Link) State(now int64) spec.State {
	return spec.State{Cable: l.ID / 2, Back: l.ID%2 == 1, Queue: -1, At: units.Time(now), Queued: l.Held(),
		Marks: l.Stats.Marks, Paused: l.Stopped()}
}

// DataHeld returns the queued bytes of data.
func (l *Link) DataHeld() int64 { return l.Held() - l.Queues[0].Bytes }

// TakeDown removes a link permanently: queued frames are dropped and only their credits returned. It returns
// the number of dropped frames.
func (l *Link) TakeDown(links []Link, at int64) (drops int64) {
	l.Down, l.Asked, l.Waiting = true, 0, 0
	l.Hold()
	in := map[uint32]*Link{} // by port
	for i := range links {
		if x := &links[i]; x.To == l.From {
			in[uint32(links[x.Peer].FromPort)] = x
		}
	}
	var spare *frames.Piece
	for c := range l.Queues {
		for q := &l.Queues[c]; !q.Empty(); q.Pop(&spare) {
			in[q.Front().Tag].Repay(q.Front(), at)
			drops++
		}
		l.Queues[c] = Queue{}
	}
	return drops
}

// SetCondition applies the present condition of a link's cable as fault f begins or ends; back is 1 for the
// link from B to A.
func (l *Link) SetCondition(f *spec.Fault, now *spec.Condition, c *cc.Params, back int, at int64) {
	l.Rate, l.Loss, l.Down = now.Rate, now.Loss, now.Down
	l.Lossy, l.Sizes, l.Coded = l.Loss > 0, [2]uint16{}, c.Coded(l.Rate)
	if !f.Storm || f.Back != (back == 1) {
		return
	}
	was := l.Stopped()
	l.Storm = now.Storm[back]
	l.stop(was, at)
	l.Hold()
	l.Free = max(l.Free, at) // a waiting frame starts now
}

// Horizon returns the time (ps) after which the order of two transmissions no longer matters: the longest
// travel time of a frame, at most 4096 windows.
func Horizon(links []Link, s *spec.Config, window int64) int64 {
	most := int64(0)
	for i := range links {
		l := &links[i]
		most = max(most, l.Delay+max(l.Whole, l.Ack, s.Lasts(s.Frames.Pause, l.Rate)))
	}
	for _, f := range s.Faults {
		if f.Slow > 0 {
			most = max(most, int64(float64(most)/f.Slow))
		}
	}
	return min(most, 4096*window)
}
