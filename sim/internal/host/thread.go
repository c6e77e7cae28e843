package host

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// thread is a proxy thread: one server, which serves one connection after the
// other. Jobs that arrive at one instant are served in their order (proxy.cc:776
// goes through its list of operations): of four messages that take 0.4 us each
// the first is posted after 0.4 us and the last after 1.6. Together, all four are
// done after 1.6 us, so that equal connections stay equal.
type thread struct {
	together bool

	busy  units.Time
	batch []job
}

// job is a stage that a thread has to do for a connection, or for a batch of
// heads (stages of at least collectPost).
type job struct {
	conn, stage int32
	order       int64
	cost        units.Time
	done        units.Time // set by serve
}

// orderOf is in which order a thread takes up what comes at one instant: stage by
// stage, by channel.
func orderOf(stage, channel, id int32) int64 {
	return int64(stage)<<48 | int64(channel)<<32 | int64(id)
}

// add takes a job, and reports whether it is the first of its round: the caller
// then calls serve at the end of the instant.
func (t *thread) add(j job) bool {
	t.batch = append(t.batch, j)
	return len(t.batch) == 1
}

// serve works off the jobs that have come since the last round, and sets when each
// is done. The slice is good until the next add.
func (t *thread) serve(now units.Time) []job {
	if !t.together {
		slices.SortStableFunc(t.batch, func(a, b job) int { return cmp.Compare(a.order, b.order) })
	}
	t.busy = max(t.busy, now)
	for i := range t.batch {
		t.busy += t.batch[i].cost
		t.batch[i].done = t.busy
	}
	if t.together {
		for i := range t.batch {
			t.batch[i].done = t.busy
		}
	}
	jobs := t.batch
	t.batch = t.batch[:0]
	return jobs
}

// JitterRanks is the largest communicator that is simulated with jitter: in a
// longer pipeline its effect on the whole falls as 1/ranks.
const JitterRanks = 72

// Staggers reports whether a plan's threads serve what comes at one instant one
// after the other: those of NVLS trees, whose threads serve all channels, and of
// rings and PAT where there are more than two channels a rank of a node. Where a
// thread has one channel or two, to serve both together costs 2 % at most and
// lets one represent the other (docs/adr/0016). Nodes of which two are more than
// JitterRanks ranks, as the racks of an NVL72, have no run with jitter to agree
// with, and their class was fitted to runs in lockstep.
func Staggers(p *plan.Plan) bool {
	if 2*p.Comm.MaxLocalRanks > JitterRanks {
		return false
	}
	switch p.Req.Algo {
	case coll.NVLSTree:
		return p.Req.Func == coll.AllReduce
	case coll.Ring, coll.PAT:
		return (p.Req.Func == coll.AllReduce || p.Req.Func == coll.AllGather ||
			p.Req.Func == coll.ReduceScatter) &&
			p.Split.NChannels > 2*p.Comm.MaxLocalRanks
	}
	return false
}

// proxies are the proxy threads of all ranks. A thread's loop polls every
// connection end that has an operation, one after the other: with 16 ends at
// 0.1 us and 0.4 us for the loop itself a round takes 2 us, and what becomes
// ready is polled 1 us later on average.
type proxies struct {
	threads []thread // by rank
	ends    []int32  // connection ends that each thread polls; nil until the first poll
	loop    units.Time
	perEnd  units.Time // over TCP a system call that finds nothing
}

// interval is how long a thread takes to poll an end of a connection again.
func (n *Network) interval(thread int32) units.Time {
	if n.proxy.ends == nil {
		n.countEnds()
	}
	return n.proxy.loop + n.proxy.perEnd*units.Time(n.proxy.ends[thread])
}

// countEnds counts the ends that each thread polls in a round. Those of one
// channel and rank that belong to different batches of a kernel are queued
// behind each other (proxy.cc:344), and the longest batch counts.
func (n *Network) countEnds() {
	type queue struct{ thread, rank, channel, dir, phase, ends int32 }
	each := func(do func(q queue)) {
		for i := range n.Conns {
			c := &n.Conns[i]
			if c.SrcProxy >= 0 { // the network itself has none
				do(queue{c.SrcProxy, c.Src, c.Channel, 0, c.phase, c.SrcLoad})
			}
			if c.DstProxy >= 0 {
				do(queue{c.DstProxy, c.Dst, c.Channel, 1, c.phase, c.DstLoad})
			}
		}
	}
	first := make([]int32, len(n.proxy.threads)+1) // of each thread's
	each(func(q queue) { first[q.thread+1]++ })
	for i := range n.proxy.threads {
		first[i+1] += first[i]
	}
	all, next := make([]queue, first[len(n.proxy.threads)]), slices.Clone(first)
	each(func(q queue) {
		all[next[q.thread]] = q
		next[q.thread]++
	})
	for i := range n.proxy.threads {
		slices.SortFunc(all[first[i]:first[i+1]], func(a, b queue) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.channel, b.channel),
				cmp.Compare(a.dir, b.dir), cmp.Compare(a.phase, b.phase))
		})
	}
	n.proxy.ends = make([]int32, len(n.proxy.threads))
	most, ends := int32(0), int32(0)
	for i, q := range all {
		ends += q.ends
		last := i+1 == len(all)
		queued := !last && all[i+1].thread == q.thread && all[i+1].rank == q.rank &&
			all[i+1].channel == q.channel && all[i+1].dir == q.dir
		if queued && all[i+1].phase == q.phase {
			continue
		}
		most, ends = max(most, ends), 0
		if !queued {
			n.proxy.ends[q.thread] += most
			most = 0
		}
	}
}

// pollAt is when a thread polls what is ready now at a connection's end: half a
// round later on average, and not before the polls that what was ready earlier
// takes. free is when that is over; this takes polls more.
func (n *Network) pollAt(free *units.Time, thread, polls int32) units.Time {
	round := n.interval(thread)
	at := max(n.queue.Now+round/2, *free)
	*free = at + round*units.Time(polls)
	return at
}

// serve gives a proxy thread a job, which done or reduced ends.
func (n *Network) serve(thread int32, j job) {
	if n.proxy.threads[thread].add(j) {
		n.pushRound(thread)
	}
}

// round ends an instant of a thread.
func (n *Network) round(thread int32) {
	jobs := n.proxy.threads[thread].serve(n.queue.Now)
	if obs := n.Observer; obs != nil {
		obs.Thread(thread, jobs[len(jobs)-1].done)
	}
	for i := range jobs {
		j := jobs[i]
		if j.stage >= collectPost {
			n.collected(j.conn, j.stage, j.done)
			continue
		}
		n.done(j.conn, j.stage, j.done)
	}
}

// Threads returns the number of proxy threads.
func (n *Network) Threads() int { return len(n.proxy.threads) }
