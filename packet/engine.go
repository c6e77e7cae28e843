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

// worker holds the scratch memory of a goroutine.
type worker struct {
	spec.Counts
	arrivals.Parts
	ended []ending
	tiebreak.Calendar
	order    *tiebreak.Calendar // that, if the order of events counts; else nil
	ties     port.Ties
	since    int64 // when the present event was planned; with a size when a frame came
	link     int32 // over which it did
	size     uint16
	again    bool   // a mark: the order of events counts
	hosts    [2]int // of the engine's, from and to
	switches [2]int
	busy     int     // frames that arrived
	peak     int64   // of queues that it saw, with onlyDeepestPeak
	deepest  float64 // as a share of what begins to be marked, in a run that may begin anew
	sent     int64   // data frames that hosts sent
	arrived  []frame // memory for those of a switch
	from     []uint16
	ports    port.Egress
	starts   port.Starts
	solo     *port.HostSender // nil: settings exclude it
	sink     *port.HostReceiver
}

type ending = qp.Ending[tiebreak.Number]

// engine is one run.
type engine struct {
	cfg            *Config
	net            *Network
	links          []link
	hosts          []host
	switches       []switchNode
	classes        int // egress classes: control and one for each priority in use
	classOf        [8]uint8
	routes         *route.Routes
	hostOf         []int32  // of nodes: which host; ^: which switch
	hops           []int32  // routes of flows: a slot for acknowledgements, then those for data
	outs           []uint16 // the port where each of hops begins
	slot           int      // most links of a route
	paths          int      // routes of a flow
	flows          []Flow
	snd            []sender
	rules          qp.Rules
	rcv            []receiver
	controls       cc.Flows
	tables         *route.Tables // where frames choose on their way
	egressPerFrame bool          // switches choose paths or drop by a watchdog
	base           int           // of the routes of flows to come, in hops
	broken         error         // a fault leaves a flow without a path, or frames cannot be numbered
	locks          port.Deadlocks
	deadlocks      []Deadlock
	result         []FlowResult
	waits          *qp.FlowDeps
	endings        []ending      // scratch
	starts         qp.StartOrder // with EventOrder, where flows wait for others
	look           int64         // the window
	// by how much those of late switches are later than other nodes'; 0: no switch is late
	lag             int64
	hostRate        int64
	live            int
	changes         []spec.Change // of faults, to come
	workers         []worker
	given           *Live // whose messages it carries; nil for flows that are known
	crowd           int   // frames in a window from which on all workers simulate
	streams         *rng.Firsts
	losses          []port.LossDraws
	ranker          tiebreak.Ranker
	exits           []uint16 // by link: the port where it begins
	due             []int64  // by link: when its first frame arrives
	acts            []int64  // by host: it does nothing before
	doors           []int32  // by host: the link to it; -1: none
	ordered         bool     // with EventOrder, where it counts
	onlyDeepestPeak bool     // only the peak of the deepest queue is reported, not that of each port
	full, ack       uint16   // bytes of frames
	noFastPath      bool     // no shortcut is taken: the oracle of tests
	// flows that end in a window are found before hosts run, as other flows depend on them
	endsBeforeHosts bool
	singleQPHosts   bool           // hosts with one queue pair may use runSingleQP
	arrivalsStable  bool           // frames that arrive at hosts stay on their links until the hosts run
	began           int64          // the window
	over            int64          // all before was simulated
	most            int64          // bytes that a frame has at most; all where each port's queue is looked at
	frames          int64          // data frames in all
	team            *parallel.Team // of the workers
	each            []int32        // their numbers
	phase           phase          // what all do now
}

// Run simulates the flows on the network.
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
		return e.collect(windows), nil
	}
}

// run goes through the windows and returns their number.
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
		e.given == nil {
		e.findSenders()
	}
	e.findDirect()
	for e.live > 0 && now != never && (stop == 0 || now < stop) {
		if windows&1023 == 0 && e.cfg.Poll != nil {
			if err := e.cfg.Poll(); err != nil {
				return windows, err
			}
		}
		windows, e.began = windows+1, now
		end := e.cut(now, now+e.look)
		if e.broken = cmp.Or(e.broken, e.controls.Full()); e.broken != nil {
			return windows, e.broken
		}
		if e.ordered {
			e.ranker.Begin(now)
		}
		if e.losses != nil {
			e.drawLosses(end)
		}
		busy, e.over = e.window(end, busy), end
		port.Refund(e.links, &e.cfg.Buffer)
		if e.ordered {
			e.ranker.Close(end)
		} else if e.mustOrder(windows) {
			return windows, errOrder
		}
		for i := 0; i < len(e.workers) && e.lag > 0; i++ {
			if w := &e.workers[i]; w.Drops+w.Retransmitted+w.Timeouts > 0 || stop > 0 && end+e.lag > stop {
				return windows, errAgain
			}
		}
		if windows&63 == 0 {
			e.lookout(end)
			busy *= e.moves()
		}
		if busy > 0 {
			now = end
		} else {
			if now = e.next(end); now < never {
				now = max(end, now-e.lag)
			}
			if e.cfg.Watchdog.After > 0 && now > end+8*e.look { // nothing moves until then
				e.lookout(end)
				e.lookout(end)
			}
		}
	}
	return windows, nil
}

// settle starts the flows that depended on the flows that ended.
func (e *engine) settle() {
	all := e.endings[:0]
	for i := range e.workers {
		w := &e.workers[i]
		e.live -= len(w.ended)
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
	all   = int64(1 << 32) // bytes: more than wait anywhere
)

// moves is 0 where all that goes on for long repeats pauses, else 1.
func (e *engine) moves() int {
	if e.cfg.Buffer.Quanta > 0 && e.next(0) > port.Renewed(e.links, e.due) {
		return 0
	}
	return 1
}

// next returns when something happens at or after now.
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

func (e *engine) collect(windows int64) *Result {
	for i := range e.switches {
		e.shut(&e.workers[0], &e.switches[i], e.over+e.lag)
	}
	r := &Result{Flows: e.result, Windows: windows, Blocked: port.Blocked(e.links), Deadlocks: e.deadlocks}
	for i := range e.workers {
		r.Add(&e.workers[i].Counts)
	}
	port.Count(e.links, r)
	if e.live > 0 {
		r.Stall = e.stall()
	}
	return r
}
