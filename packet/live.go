package packet

import (
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// Live is a run to which messages are given while it goes. Time advances window
// by window: what a host is given within a window leaves it before any other
// node is reached, so a window is simulated when it is over. Messages that arrive
// within a window left their last switch before, so they are known when it opens.
type Live struct {
	e      *engine
	at     int64 // all before was simulated
	end    int64 // of the open window
	start  int64 // with none open: when the next may open, never without anything to do
	opened bool
	busy   int
	ended  int64 // windows
	queues []qp.Messages
	landed qp.Delivered // in the open window
	seen   *spec.Seen   // what was reported; nil without Watch
}

// Watch requests a call where a state has changed, at most every microsecond and where all comes to rest;
// nothing depends on it.
func (l *Live) Watch(report func(State)) {
	l.seen = spec.NewSeen(report, len(l.e.links), len(l.queues), func(q int) int64 { return l.e.snd[q].Line })
}

// observe reports what has changed.
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

// NewLive lays out a run. Errors: *InputError, *UnsupportedError.
func NewLive(n *Network, queues []Queue, cfg *Config) (*Live, error) {
	flows := make([]Flow, len(queues))
	for i := range queues {
		flows[i] = Flow{Src: queues[i].Src, Dst: queues[i].Dst, Bytes: 1, Priority: queues[i].Priority}
	}
	if err := Check(n, flows, cfg); err != nil {
		return nil, err
	}
	l := &Live{start: never, queues: make([]qp.Messages, len(queues))}
	e := &engine{cfg: cfg, net: n, flows: flows, look: arrivals.Longest, crowd: crowd, paths: 1, given: l,
		most: int64(max(cfg.Frames.Most(), cfg.Frames.Ack))}
	e.lay()
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

// room makes room for the queue pairs of a Live run.
func (e *engine) room() {
	n := len(e.flows)
	e.snd, e.rcv, e.result = make([]sender, n), make([]receiver, n), make([]FlowResult, n)
	e.ccBuild()
}

// lay makes a queue pair with its links: those back, then those there.
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

// Send gives a queue pair a message at a time that no window before is after:
// times never go back, and lie after what Advance was last called with.
// token comes back from Advance when its last byte has arrived.
func (l *Live) Send(q int32, at units.Time, bytes int64, token int32) {
	l.queues[q].Add(max(1, bytes), int64(l.e.cfg.Frames.Payload), token, l.e.snd[q].Una)
	t := max(int64(at), l.at)
	l.e.begin(q, t)
	if !l.opened {
		l.start = min(l.start, t)
	}
}

// post begins a queue pair's next message.
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

// Next is when Advance is due: a message arrives, or a window is over. ok is false
// where nothing is in progress.
func (l *Live) Next() (at units.Time, ok bool) {
	if !l.opened {
		return units.Time(l.start), l.start != never
	}
	return units.Time(l.landed.Next(l.end)), true
}

// Advance simulates up to a time, no later than Next, and appends the tokens of
// the messages that arrived.
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

// open begins the window at the present time.
func (l *Live) open() {
	e := l.e
	w := &e.workers[0]
	l.opened, l.end = true, e.cut(l.at, l.at+e.look)
	l.landed.Clear()
	l.busy = e.pullHosts(w, 0, len(e.hosts), l.end)
	w.ended = w.ended[:0]
	l.landed.Sort()
}

// close simulates the open window, and opens the next one where frames follow each
// other.
func (l *Live) close() {
	e := l.e
	w := &e.workers[0]
	l.busy += e.runHosts(w, 0, len(e.hosts), l.end)
	l.busy += e.pass(w, e.switches, false, l.end)
	port.Refund(e.links, &e.cfg.Buffer)
	if l.at, l.opened, l.ended = l.end, false, l.ended+1; l.ended&63 == 0 {
		l.busy *= e.moves()
	}
	if l.start = l.at; l.busy == 0 {
		l.start = e.next(l.at)
	}
	if l.seen != nil {
		l.observe()
	}
	if idle := l.start > l.at+8*e.look; e.cfg.Watchdog.After > 0 && (idle || l.ended&63 == 0) {
		if e.lookout(l.at); idle { // nothing moves until then
			e.lookout(l.at)
		}
	}
}

// Port reports on a cable's direction, from A to B or back.
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

// Slowed reports whether congestion control keeps a queue pair below the rate that it
// began with.
func (l *Live) Slowed(q int32, now units.Time) bool {
	e := l.e
	s := &e.snd[q]
	if e.cfg.CC.Kind == DCQCN {
		s.Dcqcn.Tick(&e.cfg.CC, &s.Rate, min(int64(now), l.at), 0)
	}
	return e.cfg.CC.Kind != NoCC && float64(s.Rate.Rate) < 0.95*float64(s.Line)
}

// Result is what became of all frames so far; a flow is a queue pair.
func (l *Live) Result() *Result { return l.e.collect(0) }

// Stormed reports whether a pause storm blocks a cable's direction.
func (l *Live) Stormed(cable int32, back bool) bool { return l.way(cable, back).Storm }

func (l *Live) way(cable int32, back bool) *link {
	if back {
		return &l.e.links[2*cable+1]
	}
	return &l.e.links[2*cable]
}

// Blocked lists head-of-line blocking so far, the longest first.
func (l *Live) Blocked() []Blocked { return port.Blocked(l.e.links) }

// Deadlocks lists those so far, also those that a watchdog dissolved.
func (l *Live) Deadlocks() []Deadlock { return l.e.deadlocks }

// Why says why messages do not arrive though nothing is in progress; nil if all
// have.
func (l *Live) Why() *Stall {
	waits, first := qp.Waiting(l.queues)
	if waits == 0 {
		return nil
	}
	s := &Stall{Unfinished: waits, First: first, Paused: l.e.forgotten(), Deadlock: port.Cycle(l.e.links,
		l.e.net.Nodes)}
	for i := range l.e.result {
		if l.e.result[i].Failed {
			s.Failed++
		}
	}
	return s
}
