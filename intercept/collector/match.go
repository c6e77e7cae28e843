package collector

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/workload"
)

// unit is what a member launches at a time: the collectives that it calls in a
// group, or its sends and receives.
type unit struct {
	m       *member
	o       *op
	ops     []wireOp
	kernel  *kernel // of collectives
	number  int
	halves  []*half // of messages
	dropped bool
	events  []int // of its GPU's record
	visited int   // the last walk that came here
	lead    *unit // of a rank that is no process's: the unit that it repeats
	ghosts  []*unit
	carried bool   // its messages are delivered
	ticket  uint64 // of a real stream that waits for it
	runs    bool   // that stream goes on behind it at once
}

// kernel is a launch of collectives by all members of a communicator.
type kernel struct {
	units   []*unit // by rank
	arrived int
	like    *unit // whose calls all have to equal
}

// half is one side of a message: a send or a receive. other is nil until the peer calls.
type half struct {
	u     *unit
	op    *wireOp
	other *half
}

// pair are the halves of messages from one rank to another one that have no other
// side yet.
type pair struct{ sends, recvs []*half }

func isMessage(o *wireOp) bool { return coll.Func(o.fn) == coll.Send || coll.Func(o.fn) == coll.Recv }

// describe names an operation.
func describe(o *wireOp) string {
	s := fmt.Sprintf("%s of %d elements of type %d", name(o), o.count, o.typ)
	switch f := coll.Func(o.fn); {
	case isMessage(o):
		s += fmt.Sprintf(" with peer %d", o.root)
	case f.Rooted():
		s += fmt.Sprintf(" with root %d", o.root)
	}
	if coll.Func(o.fn).Reduces() && o.redop != 0 {
		s += fmt.Sprintf(" and reduction %d", o.redop)
	}
	return s
}

func (u *unit) describe() string {
	s := describe(&u.ops[0])
	if len(u.ops) > 1 {
		s += fmt.Sprintf(" and %d more in the group", len(u.ops)-1)
	}
	return fmt.Sprintf("rank %d in %s", u.m.rank, s)
}

// fails reports whether a unit is not carried out.
func (u *unit) fails() bool { return u.dropped || u.lead != nil && u.lead.dropped }

// needs reports whether a unit waits for something that a member has not launched.
func (u *unit) needs(m *member) bool {
	if m.like != nil {
		return false
	}
	if u.kernel != nil {
		v := u.kernel.units[m.rank]
		return v == nil || v.dropped
	}
	for _, h := range u.halves {
		if u.m.c.members[h.op.root].process() == m && (h.other == nil || h.other.u.fails()) {
			return true
		}
	}
	return false
}

// group is ncclGroupEnd, or a call outside of groups. The reply has what it costs the host, in ps.
func (c *Core) group(t *thread, q *request) reply {
	ops, err := readOps(q.payload, q.a[0])
	if err != nil {
		return refuse(internalError, "%v", err)
	}
	if q.a[1] != 0 {
		return c.estimate(ops)
	}
	t.worked, t.polled = true, nil
	if len(ops) == 0 {
		return reply{}
	}
	if done, r := c.captured(t, ops); done {
		return r
	}
	members := map[uint64]bool{}
	for i := range ops {
		members[ops[i].comm] = true
	}
	begun := t.now
	if c.set.Prices != nil && q.a[4] == 0 { // not a replay of a graph
		t.now += int64(c.set.Prices.Launch(len(members)))
	}
	cost := t.now - begun
	r := c.post(t, ops, q.a[2], q.a[5] != 0)
	r.a[3] = cost
	return r
}

// captured adds a group to the graph that its streams capture.
func (c *Core) captured(t *thread, ops []wireOp) (bool, reply) {
	var g *graph
	for i := range ops {
		s := t.p.device(int(ops[i].dev)).stream(ops[i].stream)
		if i > 0 && s.capture != g {
			return true,
				refuse(invalidUsage,
					"a group has streams that are captured, and others that are not, or by another graph")
		}
		g = s.capture
	}
	if g == nil {
		return false, reply{}
	}
	g.items = append(g.items, item{ops: ops})
	return true, reply{}
}

// check finds the members of a group and refuses what NCCL does.
func (c *Core) check(ops []wireOp) ([]*member, *reply) {
	out := make([]*member, len(ops))
	selves := map[*member]int{}
	for i := range ops {
		m, bad := c.member(int64(ops[i].comm))
		if bad != nil {
			return nil, bad
		}
		if r, ok := m.initDone(); !ok || r.status != 0 {
			r = refuse(max(r.status, invalidArgument), "%s: the communicator is not ready: %s", name(&ops[i]),
				r.text)
			return nil, &r
		}
		ranks := int32(len(m.c.members))
		if f := coll.Func(ops[i].fn); (isMessage(&ops[i]) || f.Rooted()) && (ops[i].root < 0 ||
			ops[i].root >= ranks) {
			r := refuse(invalidArgument, "%s of a communicator of %d ranks", describe(&ops[i]), ranks)
			return nil, &r
		}
		if out[i] = m; isMessage(&ops[i]) && ops[i].root == m.rank {
			if selves[m]++; coll.Func(ops[i].fn) == coll.Recv {
				selves[m] -= 2
			}
		}
	}
	for i, m := range out {
		if selves[m] != 0 {
			r := refuse(invalidUsage, "%s: rank %d sends to itself without receiving in the same group",
				name(&ops[i]), m.rank)
			return nil, &r
		}
	}
	return out, nil
}

// post launches a group: of each communicator a unit of collectives and one of
// messages, in the order of their first calls. Real streams wait behind ticket, and go on
// at once where runs is set.
func (c *Core) post(t *thread, ops []wireOp, ticket int64, runs bool) reply {
	members, bad := c.check(ops)
	if bad != nil {
		return *bad
	}
	t.p.calls += len(ops)
	return c.launch(t, ops, members, c.recordCalls(t, ops, members), ticket, runs)
}

// launch makes the units of a group, and matches them; events are where the calls are
// in the records of their GPUs.
func (c *Core) launch(t *thread, ops []wireOp, members []*member, events []int, ticket int64,
	runs bool) reply {
	type key struct {
		m       *member
		message bool
	}
	made := map[key]*unit{}
	var order []*unit
	for i := range ops {
		k := key{members[i], isMessage(&ops[i])}
		u := made[k]
		if u == nil {
			u = &unit{m: members[i]}
			made[k] = u
			order = append(order, u)
		}
		u.ops, u.events = append(u.ops, ops[i]), append(u.events, events[i])
	}
	c.ticketsOf(t.p, order, ticket, runs)
	for _, message := range []bool{false, true} {
		for _, u := range order {
			if isMessage(&u.ops[0]) != message {
				continue
			}
			c.stage(t, u)
			if r := c.match(u); r.status != 0 {
				return r
			}
		}
	}
	for _, u := range order {
		c.clock.Begin(&u.o.Operation)
	}
	return reply{}
}

// stage puts a unit on its streams: the last new one runs it, and waits for the
// others, which wait for it then. Kernels of a communicator's resources run one after
// the other.
func (c *Core) stage(t *thread, u *unit) {
	var list []*stream
	for i := range u.ops {
		if s := u.m.dev.stream(u.ops[i].stream); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	r := c.gpus[u.m.gpu()]
	root := u.m.c.root()
	var behind []*streams.Operation[*op]
	if k := r.kernels[root]; k != nil {
		behind = append(behind, &k.Operation)
	}
	for _, s := range list[:len(list)-1] {
		behind = append(behind, s.Tail)
	}
	u.o = c.newOp(t.now, list[len(list)-1], launch, behind...)
	u.o.unit = u
	if c.set.Live() && c.set.Clock == Measured {
		r.open = append(r.open, launched{u, r.calls})
		r.calls++
	}
	for _, s := range list {
		s.Tail = &u.o.Operation
	}
	r.kernels[root] = u.o
	u.m.pending = append(u.m.pending, u)
}

// match finds the other ranks' part of a unit, and reports what differs.
func (c *Core) match(u *unit) reply {
	if isMessage(&u.ops[0]) {
		return c.matchMessages(u)
	}
	x, m := u.m.c, u.m
	u.number = m.posted
	m.posted++
	for len(x.kernels)+x.first <= u.number {
		x.kernels = append(x.kernels, &kernel{units: make([]*unit, len(x.members))})
	}
	k := x.kernels[u.number-x.first]
	if k.like == nil {
		k.like = u
	}
	u.kernel = k
	k.units[m.rank] = u
	if text := differs(k.like, u); text != "" {
		return c.mismatch(u, fmt.Sprintf("collective launch %d of the communicator: %s", u.number, text))
	}
	for _, o := range x.members {
		if o.left && !c.feeding && k.units[o.rank] == nil {
			return c.abandoned(u, o)
		}
	}
	return reply{}
}

// abandoned fails a communicator of which a call needs a rank that has left. Where
// its process has ended the caller learns that from ncclCommGetAsyncError.
func (c *Core) abandoned(u *unit, o *member) reply {
	if o.how == leaveDestroy {
		return c.mismatch(u, fmt.Sprintf("%s, and rank %d has left the communicator", u.describe(), o.rank))
	}
	c.fail(u.m.c, remoteError, fmt.Sprintf("%s, and the process of rank %d has ended", u.describe(), o.rank))
	return reply{}
}

// differs says how two ranks call different collectives.
func differs(a, b *unit) string {
	if len(a.ops) != len(b.ops) {
		return fmt.Sprintf("rank %d calls %d in a group, rank %d %d", a.m.rank, len(a.ops), b.m.rank,
			len(b.ops))
	}
	for i := range a.ops {
		x, y := &a.ops[i], &b.ops[i]
		f := coll.Func(x.fn)
		if x.fn != y.fn || x.count != y.count || x.typ != y.typ || f.Reduces() && x.redop != y.redop ||
			f.Rooted() && x.root != y.root {
			return fmt.Sprintf("rank %d calls %s, rank %d %s", a.m.rank, describe(x), b.m.rank, describe(y))
		}
	}
	return ""
}

// mismatch fails a communicator whose ranks do not call the same. NCCL would hang, or
// sum what does not belong together.
func (c *Core) mismatch(u *unit, text string) reply {
	c.warn("mismatch on a communicator of %d ranks: %s", len(u.m.c.members), text)
	c.fail(u.m.c, invalidUsage, text)
	c.clock.Settle()
	return refuse(invalidUsage, "%s", text)
}

// matchMessages finds the other halves of a unit's messages, and of those of the ranks that do the
// same: their peers are as far away.
func (c *Core) matchMessages(u *unit) reply {
	r := c.halves(u)
	for _, m := range u.m.copies {
		if m.c != u.m.c || r.status != 0 {
			continue
		}
		v := &unit{m: m, o: u.o, lead: u, ops: append([]wireOp(nil), u.ops...)}
		for i := range v.ops {
			v.ops[i].root = m.c.grid.Peer(v.ops[i].root, u.m.rank, m.rank)
		}
		u.ghosts = append(u.ghosts, v)
		r = c.halves(v)
	}
	return r
}

func (c *Core) halves(u *unit) reply {
	x := u.m.c
	for i := range u.ops {
		o := &u.ops[i]
		h := &half{u: u, op: o}
		u.halves = append(u.halves, h)
		sends := coll.Func(o.fn) == coll.Send
		key := [2]int32{u.m.rank, o.root}
		if !sends {
			key = [2]int32{o.root, u.m.rank}
		}
		p := x.pairs[key]
		if p == nil {
			p = &pair{}
			x.pairs[key] = p
		}
		mine, theirs := &p.sends, &p.recvs
		if !sends {
			mine, theirs = theirs, mine
		}
		if len(*theirs) == 0 {
			*mine = append(*mine, h)
			if peer := x.members[o.root].process(); peer.left && !c.feeding {
				return c.abandoned(u, peer)
			}
			continue
		}
		h.other = (*theirs)[0]
		h.other.other = h
		*theirs = (*theirs)[1:]
		if a, b := bytesOf(h.op), bytesOf(h.other.op); a != b {
			return c.mismatch(u, fmt.Sprintf("rank %d calls %s, %d bytes, rank %d %s, %d bytes", u.m.rank,
				describe(h.op), a, h.other.u.m.rank, describe(h.other.op), b))
		}
	}
	return reply{}
}

func bytesOf(o *wireOp) int64 { return int64(o.count) * int64(coll.DataType(o.typ).Size()) }

// arrived is called when a unit's kernel could begin on its GPU. The kernels of a launch begin together when
// the last of them could.
func (c *Core) arrived(u *unit) {
	if u.kernel == nil {
		c.exchange(u)
		return
	}
	k := u.kernel
	if k.arrived++; k.arrived < u.m.c.processes() {
		return
	}
	begin := int64(0)
	for _, v := range k.units {
		if v != nil {
			begin = max(begin, int64(v.o.Ready))
		}
	}
	t, err := c.collectives(u.m.c, u.ops)
	switch {
	case err == nil && c.set.Data && c.set.Live():
		c.moveLive(k.units, func(err error) { c.ended(k, begin, begin+t, err) })
		return
	case err == nil && c.set.Data:
		err = c.reduceAll(k.units)
	}
	c.ended(k, begin, begin+t, err)
}

// ended ends the kernels of a launch on all members, after its data have been moved.
func (c *Core) ended(k *kernel, begin, at int64, err error) {
	x := k.like.m.c
	if err != nil {
		c.broken(x, err)
		return
	}
	for _, v := range k.units {
		if v != nil {
			v.m.retire(v)
			c.communicates(v, begin, at)
			c.finish(v.o, at)
		}
	}
	for len(x.kernels) > 0 && x.kernels[0].arrived == x.processes() {
		x.kernels = x.kernels[1:]
		x.first++
	}
}

// broken fails a communicator of which an operation cannot be simulated.
func (c *Core) broken(x *comm, err error) {
	c.warn("%v", err)
	c.fail(x, internalError, err.Error())
}

// dropUnit ends a unit that is not carried out: the record does not have it.
func (c *Core) dropUnit(u *unit) {
	u.dropped = true
	r := c.gpus[u.m.gpu()]
	for _, i := range u.events {
		r.dropped[i] = true
	}
	if u.o.Arrived {
		c.finish(u.o, int64(u.o.Ready))
	}
	c.carried(u)
}

// retire removes a unit from the pending ones, which ncclCommFinalize waits for.
func (m *member) retire(u *unit) {
	for i, v := range m.pending {
		if v == u {
			m.pending = append(m.pending[:i], m.pending[i+1:]...)
			return
		}
	}
}

// gpus returns the cluster's GPU of each rank.
func (x *comm) gpus() []int32 {
	out := make([]int32, len(x.members))
	for i, m := range x.members {
		out[i] = int32(m.gpu())
	}
	return out
}

func callOf(o *wireOp) workload.Call {
	c := workload.Call{Func: coll.Func(o.fn), Type: coll.DataType(o.typ), Count: int64(o.count),
		InPlace:    o.flags&flagInPlace != 0,
		Registered: o.flags&flagRegistered != 0, Window: o.flags&flagWindow != 0}
	if c.Func.Reduces() && o.redop < int32(len(coll.RedOps())) {
		c.RedOp = coll.RedOp(o.redop)
	}
	if isMessage(o) {
		c.Peer = o.root
	} else if c.Func.Rooted() {
		c.Root = o.root
	}
	return c
}

func (c *Core) collectives(x *comm, ops []wireOp) (int64, error) {
	if c.set.Prices == nil {
		return 0, nil
	}
	list := make([]workload.Call, len(ops))
	for i := range ops {
		list[i] = callOf(&ops[i])
	}
	t, err := c.set.Prices.Collectives(c.ctx, x.gpus(), list)
	if err != nil {
		err = fmt.Errorf("%s on %d ranks: %w", describe(&ops[0]), len(x.members), err)
	}
	return int64(t), err
}

// exchange carries out a unit's messages if they can begin. NCCL sends and receives the messages of a group
// in one kernel, so a message waits for all kernels that are connected with its own: rank 0 that sends to 1,
// which sends to 2 in the same group, waits for 2. Ranks that repeat this unit are tried too.
func (c *Core) exchange(u *unit) {
	first := c.walks + 1
	c.walk(u, first)
	for _, v := range u.ghosts {
		if !v.carried && v.visited < first {
			c.walk(v, first)
		}
	}
}

// walk follows the messages from a unit to all that they connect, and delivers them if each has arrived and
// has its other side. A unit that an earlier walk since first has visited is known to wait.
func (c *Core) walk(u *unit, first int) {
	c.walks++
	u.visited = c.walks
	units := []*unit{u}
	for i := 0; i < len(units); i++ {
		v := units[i]
		if !v.o.Arrived || v.fails() {
			return
		}
		for _, h := range v.halves {
			switch {
			case h.other == nil || h.other.u.visited >= first && h.other.u.visited < c.walks:
				return
			case h.other.u.visited < first:
				h.other.u.visited = c.walks
				units = append(units, h.other.u)
			}
		}
	}
	c.deliver(units)
}

// deliver carries out the messages of units.
func (c *Core) deliver(units []*unit) {
	x := units[0].m.c
	begin, real := int64(0), false
	var list []job.Message
	for _, u := range units {
		u.carried, real = true, real || u.lead == nil
		begin = max(begin, int64(u.o.Ready))
		for _, h := range u.halves {
			if coll.Func(h.op.fn) == coll.Send {
				list = append(list, job.Message{From: u.m.rank, To: h.op.root, Bytes: bytesOf(h.op)})
			}
		}
	}
	if !real {
		return // no process waits for them
	}
	ends := make([]int64, len(x.members))
	if c.set.Prices != nil {
		times, err := c.set.Prices.Messages(c.ctx, x.gpus(), list)
		if err != nil {
			c.broken(x, fmt.Errorf("%s: %w", units[0].describe(), err))
			return
		}
		for i := range times {
			ends[i] = int64(times[i])
		}
	}
	done := func(err error) {
		if err != nil {
			c.broken(x, err)
			return
		}
		for _, u := range units {
			if u.lead != nil {
				continue
			}
			u.m.retire(u)
			c.communicates(u, begin, begin+ends[u.m.rank])
			c.finish(u.o, begin+ends[u.m.rank])
		}
	}
	switch {
	case c.set.Data && c.set.Live():
		c.moveLive(units, done)
	case c.set.Data:
		done(c.carry(units))
	default:
		done(nil)
	}
}
