package streams

import (
	"math"
	"slices"
	"sort"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// operation is a collective or message in progress.
type operation struct {
	call    int32 // call of the first kernel that began
	comm    int32
	cost    *Cost
	shape   *shape
	task    int32
	key     messageKey // of a message
	message bool
	receive units.Time // of a buffered message, see Cost.Receive
	last    float64    // progress at which the receiver ends
	stale   bool       // slow must be recomputed
	remote  int32
	kernels []int32 // by member: its kernel; -1: not begun
	begun   int32   // members whose kernels have begun
	next    int32   // in shape.bySlack: the first member that has not begun
	ended   int32   // in shape.byEnd: number of members that have ended
	slow    Pace
	active  bool // counted in run.active
}

// activate counts an operation in or out (by is 1 or -1) among those in progress on its communicator's
// resources, and updates the rates of the calls that wait behind such operations.
func (r *run) activate(x *operation, by int32) {
	if x.message || len(r.behind) == 0 || x.active == (by > 0) {
		return
	}
	x.active = by > 0
	root := r.p.Resources(x.comm)
	r.active[root] += by
	for _, comm := range r.behind[root] {
		for _, o := range r.byComm[comm].ops {
			if o >= 0 && r.ops[o].task >= 0 {
				r.fluid.change(r.ops[o].task)
			}
		}
	}
}

// waiters returns, by communicator of Behind, the communicators of the calls that wait behind it.
func (r *run) waiters() map[int32][]int32 {
	var out map[int32][]int32
	for i := range r.in.Costs {
		for _, b := range r.in.Costs[i].Behind {
			if out == nil {
				out = map[int32][]int32{}
			}
			if comm := r.p.Calls[i].Comm; !slices.Contains(out[b.Comm], comm) {
				out[b.Comm] = append(out[b.Comm], comm)
			}
		}
	}
	return out
}

// shape is the order in which the members of a Cost must begin, and the order in which they end.
type shape struct {
	bySlack, byEnd []int32
	slack, ends    []float64 // times in these orders (ps)
}

// shapeKey identifies a shape by the slices of its Cost: Costs that share slices share the shape.
type shapeKey struct {
	ends, slack *units.Time
	time        units.Time
	n           int
}

// shape returns the shape of a Cost for n members, made now or before.
func (r *run) shape(c *Cost, n int) *shape {
	key := shapeKey{time: c.Time, n: n}
	if len(c.Ends) > 0 {
		key.ends = &c.Ends[0]
	}
	if len(c.Slack) > 0 {
		key.slack = &c.Slack[0]
	}
	if s, ok := r.shapes[key]; ok {
		return s
	}
	s := &shape{bySlack: make([]int32, n), byEnd: make([]int32, n), slack: make([]float64, n),
		ends: make([]float64, n)}
	end := func(i int32) units.Time {
		if len(c.Ends) == 0 {
			return c.Time
		}
		return c.Ends[i]
	}
	slack := func(i int32) units.Time {
		if len(c.Slack) == 0 {
			return 0
		}
		return min(c.Slack[i], end(i))
	}
	for i := range s.byEnd {
		s.byEnd[i], s.bySlack[i] = int32(i), int32(i)
	}
	sort.SliceStable(s.byEnd, func(a, b int) bool { return end(s.byEnd[a]) < end(s.byEnd[b]) })
	sort.SliceStable(s.bySlack, func(a, b int) bool { return slack(s.bySlack[a]) < slack(s.bySlack[b]) })
	for i := range s.ends {
		s.ends[i], s.slack[i] = float64(end(s.byEnd[i])), float64(slack(s.bySlack[i]))
	}
	r.shapes[key] = s
	return s
}

// memberIndex maps a rank of the job to its rank in a communicator.
type memberIndex struct {
	all    bool
	sorted []int32         // the ranks, if they ascend
	other  map[int32]int32 // otherwise: rank of the job → member
}

func newMembers(c *workload.Comm) memberIndex {
	switch {
	case c.Ranks == nil:
		return memberIndex{all: true}
	case slices.IsSorted(c.Ranks):
		return memberIndex{sorted: c.Ranks}
	}
	m := memberIndex{other: make(map[int32]int32, len(c.Ranks))}
	for i, r := range c.Ranks {
		m.other[r] = int32(i)
	}
	return m
}

func (m *memberIndex) of(rank int32) int32 {
	switch {
	case m.all:
		return rank
	case m.sorted != nil:
		i, _ := slices.BinarySearch(m.sorted, rank)
		return int32(i)
	}
	return m.other[rank]
}

// launch launches a node's kernel: it begins, or joins its GPU's queue for SMs.
func (r *run) launch(p place, n *node) {
	sms := int32(0)
	if n.kind == kernel {
		c := r.cost(p)
		if c.Empty {
			r.complete(p)
			return
		}
		sms = c.SMs
	} else {
		for _, h := range r.halves(p, n) {
			sms += r.in.Costs[h.call].SMs
		}
	}
	var k int32
	if last := len(r.freeKern) - 1; last >= 0 {
		k = r.freeKern[last]
		r.freeKern = r.freeKern[:last]
	} else {
		k = int32(len(r.kernels))
		r.kernels = append(r.kernels, kernelRun{})
	}
	r.kernels[k] = kernelRun{place: p}
	if !r.shared(p.rank) {
		r.beginKernel(k)
		return
	}
	sms = min(sms, r.in.GPUs[p.rank].SMs, maxChannels)
	r.kernels[k].sms = sms
	r.arrive(p.rank, arrival{call: true, id: k, waiting: sms})
}

// maxChannels is the largest number of blocks of an NCCL kernel (MAXCHANNELS, device.h).
const maxChannels = 64

// cost returns the Cost of a node's call.
func (r *run) cost(p place) *Cost { return &r.in.Costs[r.call(p)] }

func (r *run) call(p place) int32 { return r.p.Lists[r.p.Of[p.rank]].Steps[p.node].Call }

func (r *run) halves(p place, n *node) []half {
	return r.graphs[r.p.Of[p.rank]].halves[n.half : n.half+n.halves]
}

// beginKernel begins a kernel whose SMs are free.
func (r *run) beginKernel(k int32) {
	x := &r.kernels[k]
	p := x.place
	n := &r.graphs[r.p.Of[p.rank]].nodes[p.node]
	g := &r.gpus[p.rank]
	g.free -= x.sms - x.early
	g.taken += x.sms - x.early
	r.touch(p.rank)
	r.spans[p.rank][p.node].Begin = r.now
	if n.kind == kernel {
		x.left = 1
		call := r.call(p)
		comm := r.p.Calls[call].Comm
		r.join(r.collective(call, comm, n.seq), r.members[comm].of(p.rank), k, call)
		return
	}
	x.left = n.halves
	for _, h := range r.halves(p, n) {
		r.joinMessage(h, p.rank, k)
	}
}

// joinMessage adds a kernel to the message of one of its halves, as sender or receiver.
func (r *run) joinMessage(h half, rank, k int32) {
	c := &r.p.Calls[h.call]
	me := r.members[c.Comm].of(rank)
	key, side := messageKey{c.Comm, me, c.Peer, h.k}, int32(0)
	if c.Func == coll.Recv {
		key.src, key.dst, side = c.Peer, me, 1
	}
	o, ok := r.messages[key]
	if !ok {
		o = r.newOp(h.call, c.Comm, 2)
		r.messages[key] = o
		r.ops[o].message, r.ops[o].key = true, key
	}
	r.join(o, side, k, h.call)
}

// collective returns the operation with number seq on a communicator, and creates it for the first member.
func (r *run) collective(call, comm, seq int32) int32 {
	w := &r.byComm[comm]
	for int(seq-w.first) >= len(w.ops) {
		w.ops = append(w.ops, -1)
	}
	o := &w.ops[seq-w.first]
	if *o < 0 {
		*o = r.newOp(call, comm, r.p.Comms[comm].Size(r.p.Ranks()))
		if i := int(seq - w.first); r.in.Backend == nil && i > 0 && w.ops[i-1] != through {
			r.tasks[r.ops[*o].task].needs = nil
		}
	}
	return *o
}

// longest gives an operation the Cost of the longest of its members' calls; a buffered message takes the Cost
// of its sender. In a simulated job all are equal; recordings of ranks differ.
func (r *run) longest(x *operation, call, member int32) {
	c := &r.in.Costs[call]
	x.receive = max(x.receive, c.Receive)
	if x.ended == 0 && (c.Buffered && member == sender || !c.Buffered && c.Time > x.cost.Time) {
		x.cost, x.shape, x.next = c, r.shapeOf[call], 0
	}
}

// succeed gives operation o, the next after one that ended, the link needs of its call. Of a communicator's
// operations in progress only the first needs the links: the next has begun only on ranks that are finished
// with the first.
func (r *run) succeed(o int32) {
	if o < 0 || r.ops[o].task < 0 {
		return
	}
	task := r.ops[o].task
	t := &r.tasks[task]
	if t.running {
		r.fluid.leave(task)
	}
	if t.needs = r.needs[r.ops[o].call]; t.running {
		r.fluid.enter(task)
	}
}

// newOp creates an operation with n members.
func (r *run) newOp(call, comm int32, n int) int32 {
	var o int32
	if last := len(r.freeOps) - 1; last >= 0 {
		o = r.freeOps[last]
		r.freeOps = r.freeOps[:last]
	} else {
		o = int32(len(r.ops))
		r.ops = append(r.ops, operation{})
	}
	x := &r.ops[o]
	*x = operation{call: call, comm: comm, cost: &r.in.Costs[call], shape: r.shapeOf[call], task: -1,
		receive: r.in.Costs[call].Receive,
		remote:  -1, kernels: x.kernels[:0], slow: own}
	for range n {
		x.kernels = append(x.kernels, -1)
	}
	if b := r.in.Backend; b != nil {
		var err error
		if x.remote, err = b.Open(call); err != nil && r.err == nil {
			r.err = err
		}
		r.remote[x.remote] = o
		return o
	}
	x.task = r.newTask(opTask)
	t := &r.tasks[x.task]
	t.op, t.needs = o, r.needs[call]
	return o
}

// join adds a member's kernel to an operation; call is the index of the call in the member's list.
func (r *run) join(o, member, k, call int32) {
	x := &r.ops[o]
	x.kernels[member] = k
	x.begun++
	rank := r.kernels[k].rank
	if b := r.in.Backend; b != nil {
		b.Start(x.remote, r.backendMember(x, member), r.now)
		return
	}
	if call != x.call {
		r.longest(x, call, member)
	}
	g := &r.gpus[rank]
	g.ops = append(g.ops, x.task)
	if x.cost.Buffered && member == receiver {
		r.receive(x)
	}
	if !x.slow.covers(g.slow) {
		x.slow = x.slow.or(g.slow)
		r.fluid.change(x.task)
	}
	for x.next < int32(len(x.kernels)) && x.kernels[x.shape.bySlack[x.next]] != -1 {
		x.next++
	}
	r.proceed(o)
}

// Members of a message.
const (
	sender = iota
	receiver
)

// receive sets when the receiver of a buffered message ends: not before its kernel, begun now, has read the
// data.
func (r *run) receive(x *operation) {
	t := &r.tasks[x.task]
	progress := t.progress
	if t.running {
		progress += float64(t.rate * float64(r.now-t.at))
	}
	x.last = math.Max(x.last, progress+float64(x.receive))
}

// limits returns the progress that an operation can reach before another member has to begin, and the
// progress at which its next member ends; n is the number of members. Example: an operation of 100 us whose
// member 2 has a Slack of 30 us runs to 30 us without it, then waits; a member with Ends of 60 us ends there.
func (x *operation) limits(n int32) (limit, end float64) {
	limit = math.Inf(1)
	if x.next < n {
		limit = x.shape.slack[x.next]
	}
	if x.ended == n {
		return limit, 0
	}
	end = x.shape.ends[x.ended]
	if x.cost.Buffered {
		if member := x.shape.byEnd[x.ended]; member == receiver {
			end = math.Max(end, x.last)
		}
		if limit = math.Inf(1); x.kernels[sender] == -1 {
			limit = 0
		} else if x.kernels[receiver] == -1 && x.ended > 0 {
			limit = end // only the receiver's part is left
		}
	}
	return limit, end
}

// waits reports whether a call of Time 0 waits for a member. (Its progress cannot show that.)
func (x *operation) waits() bool {
	return x.cost.Time == 0 && !x.cost.Buffered && x.begun < int32(len(x.kernels))
}

// ended marks a member whose kernel has ended.
const ended = -2

// proceed ends the members whose end is reached, and sets how far the operation can progress until another
// member has to begin, or ends.
func (r *run) proceed(o int32) {
	x := &r.ops[o]
	t := &r.tasks[x.task]
	n := int32(len(x.kernels))
	for x.ended < n {
		member := x.shape.byEnd[x.ended]
		if _, end := x.limits(n); end > t.progress || x.kernels[member] < 0 || x.waits() {
			break
		}
		x.ended++
		r.leaveOp(x, member)
	}
	if x.ended == n {
		r.endOp(o)
		return
	}
	if x.cost.Buffered && x.ended > 0 && t.needs != nil { // all data have arrived
		if t.running {
			r.fluid.leave(x.task)
			r.fluid.change(x.task)
		}
		t.needs = nil
	}
	limit, end := x.limits(n)
	target := math.Min(limit, end)
	if target <= t.progress { // the operation waits for a member
		if t.running {
			t.running = false
			r.fluid.leave(x.task)
			t.rate = 0
		}
		return
	}
	t.target = target
	if !t.running {
		t.running, t.at, t.rate = true, r.now, 0
		r.activate(x, 1)
		r.fluid.enter(x.task)
		return
	}
	if t.rate > 0 { // else it has just begun, and its rate is computed at the end of the instant
		r.retarget(x.task, t.rate)
	}
}

// retarget sets a task's rate and schedules its timer for its target.
func (r *run) retarget(t int32, rate float64) {
	x := &r.tasks[t]
	x.progress += float64(x.rate * float64(r.now-x.at))
	x.at, x.rate = r.now, rate
	r.timers.schedule(t, r.now+units.Time(math.Ceil(math.Max(0, x.target-x.progress)/rate-1e-6)))
}

// leaveOp ends a member's kernel in an operation; a kernel of several messages ends with the last.
func (r *run) leaveOp(x *operation, member int32) {
	k := x.kernels[member]
	x.kernels[member] = ended
	kr := &r.kernels[k]
	g := &r.gpus[kr.rank]
	if r.in.Backend == nil {
		g.ops = without(g.ops, x.task)
	}
	if kr.left--; kr.left > 0 {
		return
	}
	p := kr.place
	g.free += kr.sms
	g.taken -= kr.sms
	r.freeKern = append(r.freeKern, k)
	if r.shared(p.rank) {
		r.freed(p.rank)
	}
	r.complete(p)
}

// endOp ends an operation after its last member.
func (r *run) endOp(o int32) {
	x := &r.ops[o]
	r.completed++
	r.activate(x, -1)
	if x.task >= 0 {
		if t := &r.tasks[x.task]; t.running {
			r.fluid.leave(x.task)
		}
		r.endTask(x.task)
	}
	if x.message {
		delete(r.messages, x.key)
	} else {
		w := &r.byComm[x.comm]
		for i := range w.ops {
			if w.ops[i] != o {
				continue
			}
			if w.ops[i] = through; i+1 < len(w.ops) {
				r.succeed(w.ops[i+1])
			}
			break
		}
		for len(w.ops) > 0 && w.ops[0] == through {
			w.ops = w.ops[:copy(w.ops, w.ops[1:])]
			w.first++
		}
	}
	r.freeOps = append(r.freeOps, o)
}

// through marks, in window.ops, a collective that has ended before an earlier one of its communicator, and,
// in run.left, a node that has ended.
const through = -3

// bound returns a task's rate without sharing of resources: it falls with compute on its GPUs, and behind
// calls of other communicators.
func (r *run) bound(t int32) float64 {
	x := &r.tasks[t]
	if x.kind != opTask {
		return x.bound
	}
	o := &r.ops[x.op]
	if o.stale {
		o.stale, o.slow = false, own
		for _, k := range o.kernels {
			if k >= 0 {
				o.slow = o.slow.or(r.gpus[r.kernels[k].rank].slow)
			}
		}
	}
	rate := 1.0
	if o.slow != own {
		rate = beside(o.cost, o.slow)
	}
	for _, b := range o.cost.Behind {
		if r.active[b.Comm] > 0 {
			rate *= b.Rate
		}
	}
	return rate
}

// beside returns the rate of a call whose kernels are slowed, interpolated in Cost.Slowed.
func beside(c *Cost, slow Pace) float64 {
	last, next := Slowed{Kernels: 1, Takes: 1}, Slowed{Kernels: 2, Takes: 2}
	for i := range c.Slowed {
		if i == 0 {
			last.Waits = c.Slowed[i].Waits
		} else {
			last = next
		}
		if next = c.Slowed[i]; slow.Kernels <= next.Kernels {
			break
		}
	} // beyond the last entry it is extrapolated
	at := (slow.Kernels - last.Kernels) / (next.Kernels - last.Kernels)
	between := func(a, b float64) float64 { return a + float64(at*(b-a)) }
	takes := between(last.Takes, next.Takes) +
		float64(between(last.Waits, next.Waits)*(slow.Waits-slow.Kernels))
	return 1 / math.Max(1, takes)
}

// backendMember returns a member's rank in the communicator; the members of a message are its sender and
// receiver.
func (r *run) backendMember(x *operation, member int32) int32 {
	if !x.message {
		return member
	}
	if member == 0 {
		return x.key.src
	}
	return x.key.dst
}

// ended ends the kernel of a rank in an operation of the Backend.
func (r *run) ended(remote, rank int32) {
	r.events++
	o := r.remote[remote]
	x := &r.ops[o]
	for member := range x.kernels {
		if r.backendMember(x, int32(member)) == rank && x.kernels[member] >= 0 {
			x.ended++
			r.leaveOp(x, int32(member))
		}
	}
	if x.ended == int32(len(x.kernels)) {
		delete(r.remote, remote)
		r.endOp(o)
	}
}
