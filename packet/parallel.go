package packet

import "github.com/simccl/simccl/internal/parallel"

// A window has two phases, each over all nodes: nodes take what arrives off the
// links that lead to them, then they put what they send on the links that leave
// them. Within a phase no node touches what another does, so nodes can be
// divided among workers in any way with equal results; between the phases one
// worker starts the flows that waited for others. Where windows take turns, nodes of
// a side share no link, and each switch does both at once.

// phase is a part of a window, and when that ends, in ps: what each worker does with its nodes.
type phase struct {
	part uint8
	end  int64
}

// Parts of a window.
const (
	partTake  uint8 = iota // what arrives
	partAct                // on it
	partLater              // nodes whose window is later take what arrives and act on it
)

// openTeam starts the workers but the first, which calls run.
func (e *engine) openTeam() {
	each := make([]int32, len(e.workers))
	for i := range each {
		each[i] = int32(i)
	}
	e.each, e.team = each, parallel.New(len(each), each, func(i int) { e.do(&e.workers[i], e.phase) })
}

// all lets every worker go through a part of a window, and waits for them.
func (e *engine) all(part uint8, end int64) {
	e.phase = phase{part, end}
	e.team.Do(e.each)
}

// crowd is from how many frames in a window on workers pay.
const crowd = 4096

// window simulates up to end; it returns how many frames arrived, and is given
// how many did in the window before.
func (e *engine) window(end int64, before int) int {
	if len(e.workers) == 1 || before < e.crowd {
		return e.alone(end)
	}
	e.all(partTake, end)
	e.settle()
	if e.all(partAct, end); e.lag > 0 {
		e.all(partLater, end+e.lag)
	}
	busy := 0
	for i := range e.workers {
		busy += e.workers[i].busy
	}
	return busy
}

// alone simulates a window with the first worker.
func (e *engine) alone(end int64) int {
	w, busy := &e.workers[0], 0
	if e.endsBeforeHosts {
		busy = e.pullHosts(w, 0, len(e.hosts), end)
		e.settle()
	}
	busy += e.runHosts(w, 0, len(e.hosts), end)
	e.settle()
	if busy += e.pass(w, e.switches, false, end); e.lag > 0 {
		if e.began += e.lag; e.ordered {
			e.ranker.Later(e.began)
		}
		busy += e.pass(w, e.switches, true, end+e.lag)
	}
	return busy
}

// pass simulates those of some switches that are of a side up to end one by one: what arrives at them lies
// at one place, in the cache.
func (e *engine) pass(w *worker, some []switchNode, late bool, end int64) (busy int) {
	for i := range some {
		s := &some[i]
		if s.late != late {
			continue
		}
		switch calm := s.bypassable != nil && s.CalmAhead(); {
		case s.bypassing != nil && !calm:
			e.shut(w, s, e.began)
		case s.bypassing == nil && calm:
			e.reopen(w, s, e.began)
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

// do goes through a phase of a worker's nodes.
func (e *engine) do(w *worker, p phase) {
	switches := e.switches[w.switches[0]:w.switches[1]]
	switch p.part {
	case partTake:
		w.busy = e.pullHosts(w, w.hosts[0], w.hosts[1], p.end)
	case partAct:
		e.runHosts(w, w.hosts[0], w.hosts[1], p.end)
	}
	if e.lag > 0 && p.part != partTake {
		w.busy += e.pass(w, switches, p.part == partLater, p.end)
	}
	for i := 0; i < len(switches) && e.lag == 0; i++ {
		if p.part == partTake {
			w.busy += e.pull(w, &switches[i], p.end, false)
		} else {
			e.runSwitch(w, &switches[i], p.end)
		}
	}
}

// divide gives each worker hosts and switches with about equally many ports.
func (e *engine) divide(workers int) {
	e.workers = make([]worker, max(1, min(workers, len(e.hosts), max(1, len(e.switches)))))
	hosts, switches := divided(len(e.workers), len(e.hosts), len(e.switches), func(i int) int {
		return len(e.switches[i].out)
	})
	for i := range e.workers {
		e.workers[i].hosts, e.workers[i].switches = hosts[i], switches[i]
	}
}

// divided gives n workers equally many of some, and of others about equally much, by their sizes: from which
// to which.
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
