package collector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
)

// Requests of processes on real devices; live.h has the same numbers.
const (
	reqSegment = iota + 40
	reqSegmentDone
	reqAttend
	reqMoved
	reqParked
	reqTurn
	reqBacklog
	reqAstray
)

// What a process that attends is asked to do.
const (
	actionRelease = 1
	actionMove    = 2
)

// Live reports whether real devices take part: their streams wait for the cluster.
func (s *Settings) Live() bool { return s.Devices == Real && s.Clock != Record }

// live is what a process on real devices waits for. Its streams wait at tickets, numbers that the process
// gives to the calls of a group; the collector releases a ticket when the cluster has carried the calls out.
type live struct {
	gpu      int64 // which real device it uses
	segments map[uint64]*op
	tickets  map[uint64]int // units that have not ended
	free     []uint64       // tickets that are over
	releases []uint64       // those behind which kernels go on at once, which need its turn
	sent     int64          // turns that were sent
	opened   uint64         // up to which tickets its gate was opened for what is behind them
	asks     bool           // for its turn, without a release
	moves    []*move
}

// turn says who may use a real GPU. Where compute is timed, processes that share a GPU take turns, so that
// none slows another's kernels; the process that moves data has turns too.
type turn struct {
	holder *process
	moves  bool
	age    int // ticks of Watch
	queue  []*process
}

// move is the data of a launch that a process has to move.
type move struct {
	id   int64
	gpu  int64
	job  []byte
	done func(err error)
}

// backlog carries out what a process's threads have done since its last request, and
// wait for no answer to: each with its thread and that one's clock. The reply is the first
// refusal of a call.
func (c *Core) backlog(t *thread, q *request) reply {
	var out reply
	for b := q.payload; len(b) >= requestSize; {
		x, size := parseRequest(b), int(binary.LittleEndian.Uint32(b))
		b = b[requestSize:]
		if size > len(b) {
			return refuse(internalError, "a request of %d bytes in a backlog that ends after %d", size,
				len(b))
		}
		x.payload, b = b[:size], b[size:]
		number := x.a[5]
		if x.kind == reqGroup {
			number = x.a[3]
		}
		of := t.p.threads[int(number)]
		if of == nil {
			of = t
		}
		clock := of.now
		of.now = x.now
		switch x.kind {
		case reqGroup:
			if r := c.group(of, x); r.status != 0 {
				c.unwanted(of.p, x)
				if out.status == 0 {
					out = r
				}
			}
			x.now = of.now
		case reqSegment:
			c.segment(of, of.p.device(int(x.a[0])).stream(uint64(x.a[1])), uint64(x.a[2]),
				min(x.a[3], of.now))
		case reqEventRecord, reqEventWait:
			c.streamRequest(of, x)
		}
		of.now = max(clock, x.now)
	}
	return out
}

// unwanted releases the tickets of a group that was refused: the process has queued them already.
func (c *Core) unwanted(p *process, q *request) {
	ops, err := readOps(q.payload, q.a[0])
	if err != nil {
		return
	}
	for i := range ops {
		id := uint64(q.a[2]) + uint64(ops[i].flags>>flagComm)
		delete(p.live.tickets, id)
		p.live.free = append(p.live.free, id)
	}
	c.changed = true
}

// ticketsOf has the units of a group release what their streams wait for.
func (c *Core) ticketsOf(p *process, units []*unit, first int64, runs bool) {
	if !c.set.Live() || first <= 0 {
		return
	}
	for _, u := range units {
		u.ticket, u.runs = uint64(first)+uint64(u.ops[0].flags>>flagComm), runs
		p.live.tickets[u.ticket]++
	}
}

// over releases the ticket of a unit that has ended, carried out or not. If kernels run right behind it, that
// needs their process's turn; others wait for the process's gate.
func (c *Core) over(u *unit) {
	p := u.m.dev.p
	if u.ticket == 0 || p.ended {
		return
	}
	if p.live.tickets[u.ticket]--; p.live.tickets[u.ticket] > 0 {
		return
	}
	delete(p.live.tickets, u.ticket)
	if !u.runs && u.ticket > p.live.opened || c.set.Clock != Measured {
		p.live.free = append(p.live.free, u.ticket)
		c.changed = true
		return
	}
	p.live.releases = append(p.live.releases, u.ticket)
	c.want(p, false)
}

// --- turns ---

func (c *Core) turn(p *process) *turn {
	t := c.turns[p.live.gpu]
	if t == nil {
		t = &turn{}
		c.turns[p.live.gpu] = t
	}
	return t
}

// want queues a process for its GPU. Who moves data goes first, since other ranks wait for the data.
func (c *Core) want(p *process, moves bool) {
	c.changed = true
	if c.set.Clock != Measured || p.live.gpu == 0 { // it does not attend yet
		return
	}
	t := c.turn(p)
	queued := slices.Index(t.queue, p)
	switch {
	case moves && queued >= 0:
		t.queue = slices.Insert(slices.Delete(t.queue, queued, queued+1), 0, p)
	case moves:
		t.queue = slices.Insert(t.queue, 0, p)
	case queued < 0 && (t.holder != p || t.moves):
		t.queue = append(t.queue, p)
	}
	c.grant(t)
}

func (c *Core) grant(t *turn) {
	for t.holder == nil && len(t.queue) > 0 {
		p := t.queue[0]
		t.queue = t.queue[1:]
		t.age = 0
		switch {
		case p.ended:
		case len(p.live.moves) > 0:
			t.holder, t.moves, c.changed = p, true, true
		case len(p.live.releases) > 0 || p.live.asks:
			t.holder, t.moves, c.changed = p, false, true
		}
	}
}

// yield ends a turn.
func (c *Core) yield(t *turn) {
	p := t.holder
	t.holder = nil
	if p != nil && !p.ended && (len(p.live.moves) > 0 || len(p.live.releases) > 0 || p.live.asks) &&
		!slices.Contains(t.queue, p) {
		t.queue = append(t.queue, p)
	}
	c.grant(t)
}

// parked ends a process's turn: all that it has put on its GPU waits for the cluster.
func (c *Core) parked(p *process, q *request) reply {
	if t := c.turn(p); t.holder == p && !t.moves && q.a[0] == p.live.sent {
		c.yield(t)
	}
	return reply{}
}

// askTurn handles a process that is about to open the gate before its kernels, up to a ticket: the tickets up
// to there are released in its turn, once their calls are carried out.
func (c *Core) askTurn(p *process, q *request) reply {
	if c.set.Clock != Measured {
		return reply{}
	}
	l := p.live
	l.opened = max(l.opened, uint64(q.a[0]))
	l.free = slices.DeleteFunc(l.free, func(id uint64) bool {
		if id <= l.opened {
			l.releases = append(l.releases, id)
		}
		return id <= l.opened
	})
	l.asks = l.asks || q.a[1] != 0
	if l.asks || len(l.releases) > 0 {
		c.want(p, false)
	}
	return reply{}
}

// astray warns that kernels of a process have run in another process's turn.
func (c *Core) astray(p *process) reply {
	if c.set.Warn != nil {
		c.set.Warn(fmt.Sprintf("kernels of process %d ran while others had its GPU, so times may be too "+
			"long; its host is held at its calls for a while", p.pid))
	}
	return reply{}
}

// tick ends turns that take too long while others wait, and segments that wait for calls too
// long.
func (c *Core) tick() {
	const long, stalled = 100, 20
	for _, r := range c.gpus {
		if len(r.held) == 0 {
			continue
		}
		if r.stalled++; r.stalled > stalled {
			r.stalled = 0
			c.letGo(r, 0)
			c.clock.Settle()
			c.answer(&thread{})
		}
	}
	for _, t := range c.turns { //lint:sorted each by itself
		if t.age++; t.holder != nil && !t.moves && t.age > long && len(t.queue) > 0 {
			c.yield(t)
		}
	}
}

// attend answers a process when there is something to do.
func (c *Core) attend(t *thread, q *request) func() (reply, bool) {
	p := t.p
	if q.a[1] == 0 {
		if p.live.gpu = q.a[0]; len(p.live.releases) > 0 || p.live.asks {
			c.want(p, false)
		}
	} else if c.mover != p {
		if p.pid != c.moverPID {
			return func() (reply, bool) {
				return refuse(systemError, "data are moved by simccl's own process"), true
			}
		}
		c.mover, p.mover = p, true
		for _, m := range c.unmoved {
			c.give(m)
		}
		c.unmoved = nil
	}
	return func() (reply, bool) {
		l := p.live
		holds, moves := true, true
		if c.set.Clock == Measured {
			x := c.turn(p)
			holds, moves = x.holder == p && !x.moves, x.holder == p && x.moves
		}
		switch {
		case moves && len(l.moves) > 0:
			m := l.moves[0]
			l.moves = l.moves[1:]
			c.moving[m.id] = m
			return reply{a: [4]int64{actionMove, m.id}, text: string(m.job)}, true
		case holds && (len(l.releases) > 0 || l.asks):
			r := released(append(l.free, l.releases...))
			r.a[2] = 1
			l.free, l.releases, l.asks = nil, nil, false
			l.sent++
			return r, true
		case len(l.free) > 0:
			r := released(l.free)
			l.free = nil
			return r, true
		}
		return reply{}, false
	}
}

// released is the reply that lets a process's streams go on behind tickets.
func released(list []uint64) reply {
	b := make([]byte, 0, 8*len(list))
	for _, id := range list {
		b = binary.LittleEndian.AppendUint64(b, id)
	}
	return reply{a: [4]int64{actionRelease, int64(len(list))}, text: string(b)}
}

// --- data ---

// moved handles the report of a process that the data of a move are in place, or the error.
func (c *Core) moved(p *process, q *request) reply {
	m := c.moving[q.a[0]]
	if m == nil {
		return refuse(internalError, "no data were moved")
	}
	delete(c.moving, q.a[0])
	t := c.turn(p)
	if t.holder == p && t.moves {
		t.holder = nil
	}
	var err error
	if q.a[1] != 0 {
		err = errors.New(string(q.payload))
	}
	m.done(err)
	c.clock.Settle()
	if len(p.live.moves) > 0 && t == c.turn(p) {
		c.want(p, true)
	}
	c.grant(t)
	return reply{}
}

// give queues a move for the process that moves data. It uses one GPU at a time: that of the move if it is
// idle.
func (c *Core) give(m *move) {
	idle := len(c.moving) == 0
	for _, t := range c.turns { //lint:sorted any of them
		idle = idle && t.holder != c.mover && !slices.Contains(t.queue, c.mover)
	}
	if idle || c.mover.live.gpu == 0 {
		c.mover.live.gpu = m.gpu
	}
	c.mover.live.moves = append(c.mover.live.moves, m)
	c.want(c.mover, true)
}

// StartMover starts the process that moves data: no other one learns where the buffers of
// ranks are.
func (c *Core) StartMover(start func() (pid int, err error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	c.moverPID, err = start()
	return err
}

// NoMover fails all moves: the process that moves data has ended.
func (c *Core) NoMover(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noMover = why
	list := c.unmoved
	c.unmoved = nil
	for _, m := range c.moving { //lint:sorted each by itself
		list = append(list, m)
	}
	clear(c.moving)
	if c.mover != nil {
		list = append(list, c.mover.live.moves...)
		c.mover.live.moves = nil
	}
	for _, m := range list {
		m.done(errors.New(why))
	}
	c.clock.Settle()
	c.answer(&thread{})
}

// endTurn ends the turn of a process that has ended.
func (c *Core) endTurn(p *process) {
	for _, t := range c.turns { //lint:sorted each by itself
		if t.holder == p {
			c.yield(t)
		}
	}
}

// rankOf returns a rank's buffers and scalar of a call.
func rankOf(o *wireOp) *stepRank {
	return &stepRank{Shared: o.shared, Scalar: o.scalar, Pointer: o.flags&flagScalarPointer != 0}
}

func stepsOf(units []*unit) *stepList {
	j := newStepList()
	for i := range units[0].ops {
		if units[0].kernel == nil {
			break
		}
		all := make([]*stepRank, len(units))
		for r, u := range units {
			all[r] = rankOf(&u.ops[i])
		}
		o := &units[0].ops[i]
		j.collective(&stepCall{Name: describe(o), Func: coll.Func(o.fn), Type: coll.DataType(o.typ),
			RedOp: min(o.redop, sumScaled), Scaled: o.redop >= sumScaled, Count: int64(o.count),
			Root: o.root}, all)
	}
	for _, u := range units {
		for _, h := range u.halves {
			if coll.Func(h.op.fn) == coll.Send && h.op.count > 0 {
				j.Copy(describe(h.op), rankOf(h.op), 0, rankOf(h.other.op), 0, bytesOf(h.op))
			}
		}
	}
	return j
}

// moveLive has the data of a launch moved; done follows.
func (c *Core) moveLive(units []*unit, done func(err error)) {
	job, err := stepsOf(units).Bytes()
	if err != nil {
		done(err)
		return
	}
	c.moves++
	m := &move{id: c.moves, gpu: units[0].m.dev.p.live.gpu, job: job, done: done}
	switch {
	case c.noMover != "":
		done(errors.New(c.noMover))
	case c.mover == nil:
		c.unmoved = append(c.unmoved, m)
	default:
		c.give(m)
	}
}
