package packet

import "github.com/simccl/simccl/internal/parallel"

// A window has two phases, each over all nodes: nodes take arrivals off their incoming links, then put frames
// on their outgoing links. Within a phase no two nodes touch the same memory, so nodes can be divided among
// workers in any way with equal results; between the phases one worker starts the flows that waited for
// others. Where windows take turns, the nodes of a side share no link, and each switch runs both phases at
// once.

// phase is the part of a window that workers run on their nodes, and the window's end in ps.
type phase struct {
	part uint8
	end  int64
}

// Parts of a window, in phase.part.
const (
	partTake  uint8 = iota // nodes take arrivals off their links
	partAct                // nodes react and send
	partLater              // both, for nodes whose windows trail
)

// openTeam starts all workers but the first, which is the caller of run.
func (e *engine) openTeam() {
	each := make([]int32, len(e.workers))
	for i := range each {
		each[i] = int32(i)
	}
	e.each, e.team = each, parallel.New(len(each), each, func(i int) { e.runPhase(&e.workers[i], e.phase) })
}

// runAll runs a part of a window on every worker and waits for all.
func (e *engine) runAll(part uint8, end int64) {
	e.phase = phase{part, end}
	e.team.Do(e.each)
}

// crowd is the number of frames in a window from which on several workers are faster than one: below, waking
// them costs more than it saves.
const crowd = 4096

// runWindow simulates a window up to end (ps) and returns the number of arrivals. before is the number of the
// previous window, which decides whether all workers run.
func (e *engine) runWindow(end int64, before int) int {
	if len(e.workers) == 1 || before < e.crowd {
		return e.runOne(end)
	}
	e.runAll(partTake, end)
	e.settle()
	if e.runAll(partAct, end); e.lag > 0 {
		e.runAll(partLater, end+e.lag)
	}
	busy := 0
	for i := range e.workers {
		busy += e.workers[i].busy
	}
	return busy
}

// runOne simulates a window with one worker. It can do hosts and switches one after the other without copying
// arrivals.
func (e *engine) runOne(end int64) int {
	w, busy := &e.workers[0], 0
	if e.endsBeforeHosts {
		busy = e.pullHosts(w, 0, len(e.hosts), end)
		e.settle()
	}
	busy += e.runHosts(w, 0, len(e.hosts), end)
	e.settle()
	if busy += e.runSwitches(w, e.switches, false, end); e.lag > 0 {
		if e.began += e.lag; e.ordered {
			e.ranker.Later(e.began)
		}
		busy += e.runSwitches(w, e.switches, true, end+e.lag)
	}
	return busy
}

// runSwitches simulates the switches of one side up to end, one after the other with the same scratch memory,
// which stays in the cache.
func (e *engine) runSwitches(w *worker, some []switchNode, late bool, end int64) (busy int) {
	for i := range some {
		s := &some[i]
		if s.late != late {
			continue
		}
		switch calm := s.bypassable != nil && s.CalmAhead(); {
		case s.bypassing != nil && !calm:
			e.stopBypass(w, s, e.began)
		case s.bypassing == nil && calm:
			e.resumeBypass(w, s, e.began)
		}
		if n := e.relay(w, s, end); n >= 0 {
			busy += n
			continue
		}
		arrived, from := s.arrived, s.from
		s.arrived, s.from = w.arrived, w.from
		busy += e.pull(w, s, end, true)
		e.runSwitch(w, s, end)
		w.arrived, w.from = s.arrived, s.from
		s.arrived, s.from = arrived, from
	}
	return busy
}

// runPhase runs phase p on a worker's nodes.
func (e *engine) runPhase(w *worker, p phase) {
	switches := e.switches[w.switches[0]:w.switches[1]]
	switch p.part {
	case partTake:
		w.busy = e.pullHosts(w, w.hosts[0], w.hosts[1], p.end)
	case partAct:
		e.runHosts(w, w.hosts[0], w.hosts[1], p.end)
	}
	if e.lag > 0 && p.part != partTake {
		w.busy += e.runSwitches(w, switches, p.part == partLater, p.end)
	}
	for i := 0; i < len(switches) && e.lag == 0; i++ {
		if p.part == partTake {
			w.busy += e.pull(w, &switches[i], p.end, false)
		} else {
			e.runSwitch(w, &switches[i], p.end)
		}
	}
}

// divide gives workers equal numbers of hosts and about equal numbers of switch ports.
func (e *engine) divide(workers int) {
	e.workers = make([]worker, max(1, min(workers, len(e.hosts), max(1, len(e.switches)))))
	hosts, switches := divided(len(e.workers), len(e.hosts), len(e.switches), func(i int) int {
		return len(e.switches[i].out)
	})
	for i := range e.workers {
		e.workers[i].hosts, e.workers[i].switches = hosts[i], switches[i]
	}
}

// divided splits some items evenly among n workers, and other items by size; it returns the range [from, to)
// of both for each worker.
func divided(n, some, others int, size func(i int) int) (a, b [][2]int) {
	all, at, seen := 0, 0, 0
	for i := range others {
		all += size(i)
	}
	for i := range n {
		from := at
		for ; at < others && (i == n-1 || seen < all*(i+1)/n); at++ {
			seen += size(at)
		}
		a, b = append(a, [2]int{some * i / n, some * (i + 1) / n}), append(b, [2]int{from, at})
	}
	return a, b
}
