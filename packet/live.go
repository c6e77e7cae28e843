package packet

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// Live is a run that accepts messages while it proceeds; package sim drives it in step with its own clock. A
// window stays open until its end has passed: a message given meanwhile leaves its host within the window,
// and reaches no other node before the window ends. Messages that arrive in the open window had left their
// last switch before it began, so Next knows them.
//
//	Send, Send … Next -> t … Advance(t) -> tokens of messages that arrived
type Live struct {
	e      *engine
	at     int64 // all before this time is simulated
	end    int64 // end of the open window
	start  int64 // with no window open: when the next one opens; never: idle
	opened bool
	busy   int   // frames of the open window
	ended  int64 // windows that ended
	queues []qp.Messages
	landed qp.Delivered // messages that arrive in the open window
	seen   *spec.Seen   // states reported last; nil without Watch
}

// Watch registers a function that receives changed states of ports and queue pairs, at most each microsecond
// and when everything comes to rest. Results do not depend on it.
func (l *Live) Watch(report func(State)) {
	l.seen = spec.NewSeen(report, len(l.e.links), len(l.queues), func(q int) int64 { return l.e.snd[q].Line })
}

// observe reports the states that changed.
func (l *Live) observe() {
	if !l.seen.Due(units.Time(l.at), units.Time(l.start)) {
		return
	}
	for i := range l.e.links {
		l.seen.Port(l.e.links[i].State(l.at))
	}
	for q := range l.queues {
		l.seen.Rate(State{Queue: int32(q), At: units.Time(l.at), Rate: l.e.snd[q].Rate.Rate})
	}
}

// NewLive prepares a run over fixed queue pairs whose messages are given later (Send). Errors: *InputError,
// *UnsupportedError.
func NewLive(n *Network, queues []Queue, cfg *Config) (*Live, error) {
	flows := make([]Flow, len(queues))
	for i := range queues {
		flows[i] = Flow{Src: queues[i].Src, Dst: queues[i].Dst, Bytes: 1, Priority: queues[i].Priority}
	}
	if err := Check(n, flows, cfg); err != nil {
		return nil, err
	}
	l := &Live{start: never, queues: make([]qp.Messages, len(queues))}
	e := &engine{cfg: cfg, net: n, flows: flows, lookahead: arrivals.Longest, crowd: crowd, paths: 1, live: l,
		maxFrame: int64(max(cfg.Frames.Most(), cfg.Frames.Ack))}
	e.layOut()
	e.divide(1)
	if err := e.buildSwitches(); err != nil {
		return nil, err
	}
	l.e = e
	e.room()
	for i := range queues {
		if err := l.lay(int32(i), &queues[i]); err != nil {
			return nil, err
		}
	}
	if cfg.Routing.Balance != Hashed {
		for i := range flows {
			e.routes.Both(flows[i].Src, flows[i].Dst)
		}
		e.buildTables()
	}
	e.egressPerFrame = e.tables != nil || cfg.Watchdog.After > 0
	e.changes, e.arrivalsStable, e.singleQPHosts = spec.Changes(e.cfg.Faults, n), spec.Steady(n, cfg),
		!e.noFastPath && cfg.Repair.BackTo == 0
	return l, e.broken
}

// room allocates the state of a Live run's queue pairs.
func (e *engine) room() {
	n := len(e.flows)
	e.snd, e.rcv, e.result = make([]sender, n), make([]receiver, n), make([]FlowResult, n)
	e.ccBuild()
}

// lay sets a queue pair up on its path: hops takes the links back (acknowledgements), then the links there
// (data). Error: *InputError for a path that does not lead from source to destination.
func (l *Live) lay(id int32, q *Queue) error {
	e := l.e
	back := len(e.hops)
	k := len(q.Path)
	there, err := spec.Along(e.net, q.Src, q.Dst, q.Path)
	if err != nil {
		return wrong("queue pair %d: %v", id, err)
	}
	e.hops, e.outs = append(e.hops, make([]int32, 2*k)...), append(e.outs, make([]uint16, 2*k)...)
	for i, x := range there {
		e.hops[back+k+i], e.hops[back+k-1-i] = x, x^1
		e.outs[back+k+i], e.outs[back+k-1-i] = e.exits[x], e.exits[x^1]
	}
	h := &e.hosts[e.hostOf[q.Src]]
	line := e.links[h.out].Rate
	if q.Limit > 0 {
		line = max(1e6, min(line, q.Limit))
	}
	e.rcv[id].Back = uint32(back)
	s := &e.snd[id]
	*s = sender{Rate: cc.Rate{Rate: line, Line: line}, Window: e.cfg.CC.Window, Route: uint32(back + k),
		Class: e.classOf[q.Priority]}
	e.result[id].SrcPort = uint16(firstPort + id)
	e.ccOpen(id, s, k)
	return nil
}

// Send gives queue pair q a message of so many bytes at time at, which may not precede the previous call's
// time or Advance's last argument. Advance returns token when the message's last byte has arrived.
func (l *Live) Send(q int32, at units.Time, bytes int64, token int32) {
	l.queues[q].Add(max(1, bytes), int64(l.e.cfg.Frames.Payload), token, l.e.snd[q].Una)
	t := max(int64(at), l.at)
	l.e.begin(q, t)
	if !l.opened {
		l.start = min(l.start, t)
	}
}

// post starts a queue pair's next message.
func (l *Live) post(h *host, id int32, now int64) {
	s := &l.e.snd[id]
	if s.Una >= s.Frames {
		s.Moved, s.Retries = now, 0
	}
	s.Frames, h.Tabled = l.queues[id].Begin(), false
	s.Bytes = int64(s.Frames) * int64(l.e.cfg.Frames.Payload)
	if !s.Listed {
		s.Listed = true
		h.Add(id, l.e.snd)
	} else if s.Ended {
		h.Over--
	}
	s.Ended, s.Ending = false, false
}

// Next returns when Advance is due: a message arrives, or the open window ends. ok is false if nothing is in
// progress.
func (l *Live) Next() (at units.Time, ok bool) {
	if !l.opened {
		return units.Time(l.start), l.start != never
	}
	return units.Time(l.landed.Next(l.end)), true
}

// Advance simulates up to now, which is not after Next, and appends the tokens of the messages that arrived
// to done.
func (l *Live) Advance(now units.Time, done []int32) []int32 {
	for {
		if !l.opened {
			if l.start > int64(now) {
				return done
			}
			l.at = l.start
			l.open()
		}
		done = l.landed.Until(int64(now), done)
		if l.end > int64(now) {
			return done
		}
		l.close()
	}
}

// open begins a window of one lookahead and finds the messages that complete in it.
func (l *Live) open() {
	e := l.e
	w := &e.workers[0]
	l.opened, l.end = true, e.windowEnd(l.at, l.at+e.lookahead)
	l.landed.Clear()
	l.busy = e.pullHosts(w, 0, len(e.hosts), l.end)
	w.ended = w.ended[:0]
	l.landed.Sort()
}

// close simulates the open window and sets when the next one opens: immediately while frames move, else at
// the next event.
func (l *Live) close() {
	e := l.e
	w := &e.workers[0]
	l.busy += e.runHosts(w, 0, len(e.hosts), l.end)
	l.busy += e.runSwitches(w, e.switches, false, l.end)
	port.Refund(e.links, &e.cfg.Buffer)
	if l.at, l.opened, l.ended = l.end, false, l.ended+1; l.ended&63 == 0 {
		l.busy *= e.progress()
	}
	if l.start = l.at; l.busy == 0 {
		l.start = e.next(l.at)
	}
	if l.seen != nil {
		l.observe()
	}
	if idle := l.start > l.at+8*e.lookahead; e.cfg.Watchdog.After > 0 && (idle || l.ended&63 == 0) {
		if e.findDeadlock(l.at); idle { // no event until then
			e.findDeadlock(l.at)
		}
	}
}

// Port returns the counters of a cable's direction: A to B, or back.
func (l *Live) Port(cable int32, back bool) Port {
	x := l.way(cable, back)
	p := x.Report(l.at)
	if h := l.e.hostOf[x.From]; h >= 0 {
		for q := range l.queues {
			if l.e.flows[q].Src == x.From {
				p.Resent += int64(l.e.snd[q].Resent)
			}
		}
	}
	return p
}

// Slowed reports whether congestion control keeps a queue pair below 95 % of its first rate.
func (l *Live) Slowed(q int32, now units.Time) bool {
	e := l.e
	s := &e.snd[q]
	if e.cfg.CC.Kind == DCQCN {
		s.Dcqcn.Tick(&e.cfg.CC, &s.Rate, min(int64(now), l.at), 0)
	}
	return e.cfg.CC.Kind != NoCC && float64(s.Rate.Rate) < 0.95*float64(s.Line)
}

// Result returns the counters so far; its flows are the queue pairs.
func (l *Live) Result() *Result { return l.e.collect(0) }

// Stormed reports whether a pause storm blocks a cable's direction.
func (l *Live) Stormed(cable int32, back bool) bool { return l.way(cable, back).Storm }

func (l *Live) way(cable int32, back bool) *link {
	if back {
		return &l.e.links[2*cable+1]
	}
	return &l.e.links[2*cable]
}

// Blocked lists head-of-line blocking so far, longest first.
func (l *Live) Blocked() []Blocked { return port.Blocked(l.e.links) }

// Deadlocks lists the pause deadlocks so far, including those that a watchdog broke.
func (l *Live) Deadlocks() []Deadlock { return l.e.deadlocks }

// Why explains messages that have not arrived though nothing is in progress (pauses, a deadlock, failed queue
// pairs); nil: all have arrived.
func (l *Live) Why() *Stall {
	waits, first := qp.Waiting(l.queues)
	if waits == 0 {
		return nil
	}
	s := &Stall{Unfinished: waits, First: first, Paused: l.e.lostResume(), Deadlock: port.Cycle(l.e.links,
		l.e.net.Nodes)}
	for i := range l.e.result {
		if l.e.result[i].Failed {
			s.Failed++
		}
	}
	return s
}
