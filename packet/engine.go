package packet

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/internal/parallel"
	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
	"github.com/simccl/simccl/units"
)

// worker is the scratch memory and the counters of one goroutine. The nodes are divided among workers, so no
// worker writes memory that another reads in the same phase.
type worker struct {
	spec.Counts
	arrivals.Parts
	ended []ending
	tiebreak.Calendar
	order *tiebreak.Calendar // nil unless events of one instant are ordered
	ties  port.Ties
	// when the present event was scheduled (ps), from which leadTime follows; for the arrival of a frame
	// leadTime uses link and size instead
	since    int64
	link     int32  // the arriving frame's link
	size     uint16 // the arriving frame's bytes; 0: the event is no arrival
	again    bool   // a frame could have been marked: mustOrder examines the run
	hosts    [2]int // range of engine.hosts
	switches [2]int // range of engine.switches
	busy     int    // frames that arrived in this window
	peak     int64  // deepest queue seen, with onlyDeepestPeak
	// deepest queue as a share of KMin, in a run that may be restarted in order
	deepest float64
	sent    int64   // data frames that hosts sent
	arrived []frame // a switch's arrivals; the memory is reused for each switch
	from    []uint16
	ports   port.Egress
	starts  port.Starts
	solo    *port.HostSender   // hosts that only send; nil: the settings need the general path
	sink    *port.HostReceiver // hosts that only receive
	pauses  []spec.PauseSample // with Config.Every
}

type ending = qp.Ending[tiebreak.Number]

// engine is one run: the network laid out as links, hosts and switches with integer indices, and the state of
// every queue pair. hops holds all routes, one after the other; a frame's Route is the index of the link it
// travels on, so each hop is Route+1:
//
//	hops:  ACK links of flow 0 | data links of flow 0 | ACK links of flow 1 | …
//	       <----- slot ------->  <-- slot per path -->
type engine struct {
	cfg      *Config
	net      *Network
	links    []link
	hosts    []host
	switches []switchNode
	classes  int // egress classes: control and one for each priority in use
	classOf  [8]uint8
	routes   *route.Routes
	hostOf   []int32  // index into hosts by node; negative: ^index into switches
	hops     []int32  // routes, see above
	outs     []uint16 // by index of hops: the egress port at which that link begins
	slot     int      // entries of hops per route: links of the longest one
	paths    int      // routes per flow (multipath spraying)
	flows    []Flow
	snd      []sender
	rules    qp.Rules
	rcv      []receiver
	controls cc.Flows
	tables   *route.Tables // next hops by destination, for frames whose egress port is chosen at each switch
	// the egress port is not known from hops alone: switches choose paths, or a watchdog may drop the frame
	egressPerFrame bool
	base           int   // first entry of hops for flows that start later
	broken         error // first error: a fault cut a flow off, or sequence numbers ran out
	locks          port.Deadlocks
	deadlocks      []Deadlock
	result         []FlowResult
	waits          *qp.FlowDeps
	endings        []ending      // scratch of settle
	starts         qp.StartOrder // with EventOrder and dependent flows
	lookahead      int64         // length of a window in ps: no effect reaches another node sooner
	// by how much the windows of switches with hosts trail those of other nodes (takeTurns); 0: all windows
	// are equal
	lag        int64
	hostRate   int64
	unfinished int           // flows without an end
	changes    []spec.Change // beginnings and ends of faults that are still to come
	workers    []worker
	live       *Live // the Live run whose messages are carried; nil: all flows are known
	crowd      int   // frames per window from which on all workers run
	streams    *rng.Firsts
	losses     []port.LossDraws
	ranker     tiebreak.Ranker
	exits      []uint16 // by link: the egress port where it begins
	due        []int64  // by link: when its first frame arrives; never: it is empty
	acts       []int64  // by host: no event of its own before this time (ps)
	doors      []int32  // by host: the link that ends at it; -1: none
	// simultaneous events keep ns-3's order: EventOrder is set and can affect the result
	ordered         bool
	onlyDeepestPeak bool   // only the deepest queue is reported, not each port's
	full, ack       uint16 // bytes of a full data frame and of an acknowledgement
	noFastPath      bool   // no shortcut is taken: the reference that tests compare with
	// ends of flows within a window are found before hosts run, because dependent flows start in that window
	endsBeforeHosts bool
	singleQPHosts   bool // hosts with one queue pair may use runSingleQP
	// frames stay on their links until their host runs, not copied by pullHosts: no event in between can lose
	// or overtake them
	arrivalsStable bool
	began          int64 // start of the present window (ps)
	simulated      int64 // all events before this time (ps) are simulated
	// bytes of the largest frame; all: drainUnmarked is not used, as every queue's length is telemetry
	maxFrame int64
	frames   int64          // data frames of all flows
	team     *parallel.Team // of the workers
	each     []int32        // 0, 1, …: the workers' numbers
	phase    phase          // what all workers do now
	samples  *spec.Sampler  // with Config.Every
}

// Run simulates flows until all have ended, nothing moves any more (Result.Stall), or Config.Stop.
//
// A run begins with the cheapest rules and restarts with stricter ones where these turn out to matter:
// without the order of simultaneous events until a frame is marked or a port paused (errOrder), and with
// windows of two delays until frames are lost (errAgain). Samples are taken in one more run, whose windows
// end where samples are due; it keeps the rules of the run before, since the number of windows decides when a
// run restarts. Errors: *InputError, *UnsupportedError.
func Run(n *Network, flows []Flow, cfg *Config) (*Result, error) {
	if err := Check(n, flows, cfg); err != nil {
		return nil, err
	}
	for ordered, inTurn := cfg.EventOrder && spec.Ordered(n, flows, cfg), true; ; {
		e, err := build(n, flows, cfg, ordered, inTurn)
		if err != nil {
			return nil, err
		}
		windows, err := e.run()
		if err == errOrder || err == errAgain {
			ordered, inTurn = ordered || err == errOrder, inTurn && err != errAgain
			continue
		}
		if err != nil {
			return nil, err
		}
		r := e.collect(windows)
		if cfg.Every > 0 {
			r.Series, err = sampled(n, flows, cfg, ordered)
		}
		return r, err
	}
}

// run simulates window after window and returns their number. Errors: errOrder, errAgain, those of
// Config.Poll, and *UnsupportedError where sequence numbers overflow.
func (e *engine) run() (int64, error) {
	now, windows := e.next(0), int64(0)
	stop, busy := int64(e.cfg.Stop), 0
	if len(e.workers) > 1 {
		e.openTeam()
		defer e.team.Dismiss()
	}
	e.arrivalsStable = len(e.workers) == 1 && spec.Steady(e.net, e.cfg)
	e.endsBeforeHosts = !e.arrivalsStable || slices.ContainsFunc(e.flows, func(f Flow) bool {
		return len(f.Deps) > 0
	})
	if e.singleQPHosts = !e.noFastPath && e.cfg.Repair.BackTo == 0; e.singleQPHosts && e.arrivalsStable &&
		e.live == nil {
		e.findSenders()
	}
	e.findDirect()
	for e.unfinished > 0 && now != never && (stop == 0 || now < stop) {
		if windows&1023 == 0 && e.cfg.Poll != nil {
			if err := e.cfg.Poll(); err != nil {
				return windows, err
			}
		}
		windows, e.began = windows+1, now
		end := e.windowEnd(now, now+e.lookahead)
		if e.broken = cmp.Or(e.broken, e.controls.Full()); e.broken != nil {
			return windows, e.broken
		}
		if e.ordered {
			e.ranker.Begin(now)
		}
		if e.losses != nil {
			e.drawLosses(end)
		}
		busy, e.simulated = e.runWindow(end, busy), end
		port.Refund(e.links, &e.cfg.Buffer)
		if e.ordered {
			e.ranker.Close(end)
		} else if e.samples == nil && e.mustOrder(windows) {
			return windows, errOrder
		}
		for i := 0; i < len(e.workers) && e.lag > 0; i++ {
			if w := &e.workers[i]; w.Drops+w.Retransmitted+w.Timeouts > 0 || stop > 0 && end+e.lag > stop {
				return windows, errAgain
			}
		}
		if windows&63 == 0 {
			e.findDeadlock(end)
			busy *= e.progress()
		}
		if busy > 0 {
			now = end
		} else {
			if now = e.next(end); now < never {
				now = max(end, now-e.lag)
			}
			if e.cfg.Watchdog.After > 0 && now > end+8*e.lookahead { // no event until then
				e.findDeadlock(end)
				e.findDeadlock(end)
			}
		}
		if e.samples != nil {
			if err := e.sample(end, now); err != nil {
				return windows, err
			}
		}
	}
	return windows, nil
}

// settle starts the flows whose last dependency ended in this window: 1 ns after its end, as ns-3's
// application does.
func (e *engine) settle() {
	all := e.endings[:0]
	for i := range e.workers {
		w := &e.workers[i]
		e.unfinished -= len(w.ended)
		all = append(all, w.ended...)
		w.ended = w.ended[:0]
	}
	if e.endings = all; !e.waits.Any() {
		return
	}
	qp.SortEndings(all, e.ordered, &e.workers[0].Calendar)
	for _, x := range all {
		e.waits.Ended(x.Flow, x.At+int64(units.Nanosecond), func(d int32, ready int64) {
			e.starts.Plan(d)
			e.begin(d, max(ready, int64(e.flows[d].Start)))
		})
	}
}

const (
	never = int64(1<<63 - 1)
	all   = int64(1 << 32) // bytes: more than any queue holds
)

// progress returns 0 where nothing moves but PFC pauses that renew each other, so that run may skip to the
// next event; else 1. Callers multiply a window's number of frames by it.
func (e *engine) progress() int {
	if e.cfg.Buffer.Quanta > 0 && e.next(0) > port.Renewed(e.links, e.due) {
		return 0
	}
	return 1
}

// next returns the time of the first event at or after now (ps): an arrival, a host's own event, a timeout or
// a fault; never if there is none.
func (e *engine) next(now int64) int64 {
	t := port.Next(e.links, e.due, &e.cfg.Watchdog)
	for i := range e.hosts {
		h := &e.hosts[i]
		if t = min(t, h.Own(e.links, h.out)); h.Timer < t && h.Overdue(e.snd, int64(e.cfg.Repair.Timeout)) <
			never {
			t = h.Timer
		}
	}
	if t < never && len(e.changes) > 0 || slices.ContainsFunc(e.changes, func(c spec.Change) bool {
		return !c.Begin
	}) {
		t = min(t, e.changes[0].At)
	}
	if e.cfg.Buffer.Quanta > 0 {
		t = port.Until(e.links, e.due, t)
	}
	if t == never {
		return t
	}
	return max(t, now)
}

// collect adds up the workers' counters and returns the run's result.
func (e *engine) collect(windows int64) *Result {
	for i := range e.switches {
		e.stopBypass(&e.workers[0], &e.switches[i], e.simulated+e.lag)
	}
	r := &Result{Flows: e.result, Windows: windows, Blocked: port.Blocked(e.links), Deadlocks: e.deadlocks}
	for i := range e.workers {
		r.Add(&e.workers[i].Counts)
	}
	port.Count(e.links, int64(e.cfg.Frames.Payload+e.cfg.Frames.Header), r)
	if e.unfinished > 0 {
		r.Stall = e.stall()
	}
	return r
}
