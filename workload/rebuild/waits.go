package rebuild

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/workload/kineto"
)

// Bounds of inference, in nanoseconds.
const (
	tolerance = 2_000  // clocks of GPU time stamps
	tight     = 10_000 // an operation that begins so soon after another ended was waiting for it
	maxShift  = 256    // works between the beginnings of two sequences
)

// waits finds what streams wait for and adds it to the operations that follow.
func (r *rank) waits(n *WaitCounts) {
	r.targets()
	flags := slices.ContainsFunc(r.records, func(x record) bool { return x.call.Flags })
	works := r.watchdogs()
	used := map[int32]bool{} // sources that were waited for
	for i := range r.pending {
		w := &r.pending[i]
		if w.target < 0 {
			continue
		}
		src, h := r.source(w, flags, works, used)
		if src < 0 || r.ops[src].op.Stream == w.stream {
			if src < 0 && h == guessed {
				n.Unknown++
			}
			continue
		}
		if r.ops[src].end() > r.ops[w.target].start()+tolerance {
			n.Disproved++
			continue
		}
		used[src] = true
		n.count(h)
		if t := &r.ops[w.target]; !slices.Contains(t.deps, src) {
			t.deps = append(t.deps, src)
		}
	}
}

// how is the way in which a source was found.
type how uint8

const (
	recorded how = iota
	adjacent
	watchdog
	guessed
)

func (n *WaitCounts) count(h how) {
	*[]*int{&n.Recorded, &n.Adjacent, &n.Watchdog, &n.Guessed}[h]++
}

// targets finds the operation that each wait blocks: the next one on the stream. If the recording does not
// name the stream, it is the stream of the next launch for a wait that follows an event record, else the one
// that the thread computes on.
func (r *rank) targets() {
	for i := range r.pending {
		w := &r.pending[i]
		if w.stream < 0 {
			for k := w.at; k < int32(len(r.ops)) && k < w.at+64; k++ {
				if g := &r.ops[k]; g.call.Thread == w.call.Thread &&
					(w.record > 0 || g.op.Class != kineto.NCCL) {
					w.stream = g.op.Stream
					break
				}
			}
		}
		s := r.streams[w.stream]
		if s == nil {
			continue
		}
		at, _ := slices.BinarySearch(s.ops, w.at)
		if at < len(s.ops) {
			w.target = s.ops[at]
		}
	}
	for i := range r.pending {
		if w := &r.pending[i]; w.record > 0 {
			r.records[w.record-1].adjacent = true
		}
	}
}

// source returns the operation that a wait waits for; -1 when there is none.
func (r *rank) source(w *pendingWait, flags bool, works events, used map[int32]bool) (int32, how) {
	if w.sync != nil && w.sync.RecordCorr > 0 {
		return r.recordedSource(w.sync), recorded
	}
	if w.record > 0 {
		rec := &r.records[w.record-1]
		if next := r.nextOf(w); flags && !rec.call.Flags && next >= 0 && r.ops[next].op.Class == kineto.NCCL {
			return -1, adjacent // NCCL's own streams, between which nothing else waits
		}
		return rec.source, adjacent
	}
	if w.sync != nil {
		if src := workOf(works, w, r); src >= 0 {
			return src, watchdog
		}
	}
	return r.guess(w, used), guessed
}

// recordedSource returns the operation whose end the wait's recorded event marks: the last one launched on
// that stream before the event record; -1 if it is unknown.
func (r *rank) recordedSource(s *kineto.Sync) int32 {
	for i := range r.records {
		if rec := &r.records[i]; int64(rec.call.Corr) == s.RecordCorr {
			if st := r.streams[s.WaitOn]; st != nil {
				src := int32(-1)
				for _, o := range st.ops {
					if r.ops[o].call.Start > rec.call.Start {
						break
					}
					src = o
				}
				return src
			}
			return rec.source
		}
	}
	return -1
}

// nextOf returns the next operation that the waiting thread launches.
func (r *rank) nextOf(w *pendingWait) int32 {
	for k := w.at; k < int32(len(r.ops)) && k < w.at+64; k++ {
		if r.ops[k].call.Thread == w.call.Thread {
			return k
		}
	}
	return -1
}

// guess picks the source of a wait among the event records before it that no other wait uses: the operation
// that ended just before the stream continued, else the oldest.
func (r *rank) guess(w *pendingWait, used map[int32]bool) int32 {
	limit := r.ops[w.target].start()
	idle := int64(0)
	if b := r.ops[w.target].before; b >= 0 {
		idle = r.ops[b].end()
	}
	oldest, close := int32(-1), int32(-1)
	for i := range r.records {
		rec := &r.records[i]
		if rec.call.Start >= w.call.Start && rec.call.Thread == w.call.Thread {
			break
		}
		src := rec.last
		if rec.adjacent || src < 0 || src >= w.at || used[src] || r.ops[src].op.Stream == w.stream {
			continue
		}
		e := r.ops[src].end()
		if e > limit+tolerance {
			continue
		}
		if oldest < 0 {
			oldest = src
		}
		if e > limit-tight && e > idle && (close < 0 || e > r.ops[close].end()) {
			close = src
		}
	}
	if close >= 0 {
		return close
	}
	return oldest
}

// work is an operation of a process group with the identifier of its end's event.
type work struct {
	op    int32
	event int64
}

// watchdogs finds the events of works: each process group has a thread that asks,
// in the order of the works, whether their end events have happened. The sequences
// are aligned so that most waits fit.
func (r *rank) watchdogs() events {
	threads := map[int32][]ask{}
	launches := map[int32]bool{}
	bySync := map[uint32]int64{}
	for i := range r.t.Syncs {
		if s := &r.t.Syncs[i]; s.Kind == kineto.SyncEvent {
			bySync[s.Corr] = s.Event
		}
	}
	var order []int32
	for i := range r.t.Calls {
		c := &r.t.Calls[i]
		if c.Kind != kineto.Query {
			launches[c.Thread] = true
			continue
		}
		ev, ok := bySync[c.Corr]
		if !ok {
			continue
		}
		l := threads[c.Thread]
		if l == nil {
			order = append(order, c.Thread)
		}
		if n := len(l); n == 0 || l[n-1].event != ev {
			l = append(l, ask{event: ev})
		}
		l[len(l)-1].at = c.Start
		l[len(l)-1].times++
		threads[c.Thread] = l
	}
	groups, names := r.works()
	var out []work
	for _, t := range order {
		if launches[t] {
			continue
		}
		// A work that has ended is asked for several times in a row before it is
		// dropped, one that has not once a round.
		asked := slices.DeleteFunc(threads[t], func(a ask) bool { return a.times < 2 })
		out = append(out, r.matchWorks(asked, groups, names)...)
	}
	return eventsOf(out)
}

// events are the operations that ended with an event, by its identifier, in order.
type events map[int64][]int32

func eventsOf(works []work) events {
	slices.SortFunc(works, func(a, b work) int { return cmp.Compare(a.op, b.op) })
	e := events{}
	for _, w := range works {
		e[w.event] = append(e[w.event], w.op)
	}
	return e
}

// ask is a question of a watchdog: for an event, last at a time.
type ask struct {
	event int64
	at    int64
	times int // in a row
}

// works lists the operations of each process group in order of launch.
func (r *rank) works() (map[int32][]int32, []int32) {
	groups := map[int32][]int32{}
	var names []int32
	for i := range r.ops {
		if g := &r.ops[i]; len(g.comms) > 0 {
			c := g.comms[0].comm
			if groups[c] == nil {
				names = append(names, c)
			}
			groups[c] = append(groups[c], int32(i))
		}
	}
	return groups, names
}

// matchWorks aligns a watchdog's questions with the works of the group they fit
// best; nil when they fit none.
func (r *rank) matchWorks(asked []ask, groups map[int32][]int32, names []int32) []work {
	var best []work
	top := 0
	for _, name := range names {
		ops := groups[name]
		for shift := -min(len(asked), maxShift) + 1; shift < min(len(ops), maxShift); shift++ {
			var w []work
			ok := true
			for k := range asked {
				if i := k + shift; i >= 0 && i < len(ops) {
					if r.ops[ops[i]].end() > asked[k].at+tolerance {
						ok = false
						break
					}
					w = append(w, work{ops[i], asked[k].event})
				}
			}
			if !ok {
				continue
			}
			if n := r.fits(eventsOf(w)); n > 0 && n >= top {
				best, top = w, n
			}
		}
	}
	return best
}

// fits rates an alignment of works with event queries: plus 1 for each wait whose source ends before the
// waiting operation starts, minus 3 for each that it contradicts.
func (r *rank) fits(works events) int {
	n := 0
	for i := range r.pending {
		w := &r.pending[i]
		if w.sync == nil || w.record > 0 || w.target < 0 {
			continue
		}
		if src := workOf(works, w, r); src >= 0 {
			if r.ops[src].end() > r.ops[w.target].start()+tolerance {
				n -= 3
			} else {
				n++
			}
		}
	}
	return n
}

// workOf returns the operation whose end event a wait names; -1 if there is none. Event identifiers are
// reused, so it is the last such operation launched before the wait.
func workOf(works events, w *pendingWait, r *rank) int32 {
	ops := works[w.sync.Event]
	for i := len(ops) - 1; i >= 0; i-- {
		if ops[i] < w.at && r.ops[ops[i]].op.Stream != w.stream {
			return ops[i]
		}
	}
	return -1
}
