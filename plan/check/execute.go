package check

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/units"
)

// Memory is memory and arithmetic that a plan can be executed on: symbols
// (Check), bytes, or nothing at all. V is what a payload holds; a value is not
// changed once it was given away.
type Memory[V any] interface {
	// Read returns what n bytes at a place of a rank's memory hold.
	Read(rank int32, at plan.Ref, n units.Bytes) (V, error)
	Write(rank int32, at plan.Ref, n units.Bytes, v V) error
	// Reduce combines two operands of op; op is nil where the network does it.
	Reduce(op *plan.Op, a, b V) (V, error)
	// Post applies the final scaling to the result of op.
	Post(op *plan.Op, v V) (V, error)
}

// Observer is a Memory that wants to know of every op that has run, in an
// order in which each comes after all it depends on.
type Observer interface {
	Ran(pr *plan.Program, op *plan.Op)
}

// Execute runs the plan op by op in one thread, with FIFOs of FIFOSteps steps,
// and checks as it goes that sends and receives match and that ops are well
// formed. The error is a *Error or names what the machine complained of.
//
// An op is run at once, not slice by slice. That is enough to prove that a
// plan ends: if ops can run to the end in some order, so can their slices,
// because what one end of a FIFO does never takes away what the other waits
// for.
func Execute[V any](p *plan.Plan, m Memory[V]) error {
	if err := p.Distinct(); err != nil {
		return err
	}
	c, err := newRunner(p, m, allChannels, allRanks(p))
	if err != nil {
		return err
	}
	if err := c.run(); err != nil {
		return err
	}
	return c.drained()
}

// blind is a machine without data.
type blind struct{}

func (blind) Read(int32, plan.Ref, units.Bytes) (struct{}, error)   { return struct{}{}, nil }
func (blind) Write(int32, plan.Ref, units.Bytes, struct{}) error    { return nil }
func (blind) Reduce(*plan.Op, struct{}, struct{}) (struct{}, error) { return struct{}{}, nil }
func (blind) Post(*plan.Op, struct{}) (struct{}, error)             { return struct{}{}, nil }

// running is a program in progress.
type running struct {
	pr      plan.Program
	cur     plan.Cursor
	op      plan.Op
	have    bool // op is waiting to run
	done    bool
	waiting int32 // connection that the op waits for
}

// fifo is the state of one FIFO. slots is indexed by step modulo its
// depth.
type fifo[V any] struct {
	conn             plan.Conn
	posted, released int64
	slots            [plan.FIFOSteps][]piece[V]
	sender, receiver int32 // programs, -1 until one has used it
}

// piece is data in a slot.
type piece[V any] struct {
	off, bytes units.Bytes
	val        V
	read       bool
}

type runner[V any] struct {
	p        *plan.Plan
	m        Memory[V]
	observer Observer // nil if the machine is none
	progs    []running
	conns    []fifo[V] // from the id lo on
	lo       int32
	at       map[int32]int32 // id → place in conns, of some ranks alone; nil: all are there
	// fill and empty are what ranks that do not run do at a FIFO, where it is theirs: put the next step
	// into it, if it is there by then, and take what was sent.
	fill  func(k *fifo[V]) bool
	empty func(k *fifo[V]) error
	queue []int32
	// blockOf is the thread block of each program, an index in blocks.
	blockOf []int32
	blocks  []block
	nets    []network // by NetGroup
	layout  layoutOf
	polls   int // calls of poll
	pieces  arena[piece[V]]
}

// block is the thread block of a rank's channel: its programs run by phase.
type block struct {
	phase   int32
	left    int     // programs of the phase that run
	waiting []int32 // programs of later phases
}

// allChannels is no channel.
const allChannels = -1

// newRunner makes the runner of some ranks of a plan, or of one channel of it.
func newRunner[V any](p *plan.Plan, m Memory[V], channel int32, ranks []int32) (*runner[V], error) {
	c := &runner[V]{p: p, m: m}
	c.observer, _ = m.(Observer)
	var progs []plan.Program
	for _, rank := range ranks {
		if err := c.poll(); err != nil {
			return nil, err
		}
		progs = p.AppendPrograms(progs[:0], rank)
		last := [2]int32{-1, -1}
		for i := range progs {
			if channel != allChannels && progs[i].Channel != channel {
				continue
			}
			if at := [2]int32{progs[i].Rank, progs[i].Channel}; at != last {
				last = at
				c.blocks = append(c.blocks, block{phase: progs[i].Phase})
			}
			c.progs = append(c.progs, running{pr: progs[i], waiting: -1})
			c.blockOf = append(c.blockOf, int32(len(c.blocks)-1))
		}
	}
	if n := p.NumConns(); len(ranks) < p.Comm.NRanks {
		c.layUsed()
	} else {
		if channel != allChannels {
			n = p.ConnsPerRank() * int32(p.Comm.NRanks)
			c.lo = (channel - int32(p.Split.ChannelLo)) * n
		}
		c.conns = make([]fifo[V], n)
		for i := range c.conns {
			c.layConn(i, c.lo+int32(i))
		}
		c.layNetworks()
	}
	for i := range c.progs {
		p.OpenInto(&c.progs[i].cur, &c.progs[i].pr)
	}
	return c, nil
}

// poll checks periodically whether to continue.
func (c *runner[V]) poll() error {
	if c.polls++; c.polls%1024 != 0 {
		return nil
	}
	return c.p.Req.Params.Poll()
}

func (c *runner[V]) fault(i int32, format string, args ...any) error {
	g := &c.progs[i]
	e := &Error{g.pr.Rank, g.pr.Channel, g.pr.Group, -1, fmt.Sprintf(format, args...)}
	if g.have {
		e.Seq = g.op.Seq
	}
	return e
}

// run lets every program go as far as it can until all have ended.
func (c *runner[V]) run() error {
	for i := range c.progs {
		l := &c.blocks[c.blockOf[i]]
		if c.progs[i].pr.Phase == l.phase {
			l.left++
			c.queue = append(c.queue, int32(i))
		} else {
			l.waiting = append(l.waiting, int32(i))
		}
	}
	ended := 0
	for len(c.queue) > 0 {
		i := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		if err := c.advance(i); err != nil {
			return err
		}
		if g := &c.progs[i]; g.done {
			ended++
			c.endOf(i)
		}
	}
	if ended != len(c.progs) {
		return c.deadlock()
	}
	return nil
}

// endOf starts the next phase of a rank's channel when a phase has ended.
func (c *runner[V]) endOf(i int32) {
	l := &c.blocks[c.blockOf[i]]
	if l.left--; l.left > 0 || len(l.waiting) == 0 {
		return
	}
	l.phase = c.progs[l.waiting[0]].pr.Phase
	rest := l.waiting[:0]
	for _, w := range l.waiting {
		if c.progs[w].pr.Phase == l.phase {
			l.left++
			c.queue = append(c.queue, w)
		} else {
			rest = append(rest, w)
		}
	}
	l.waiting = rest
}

// advance runs ops of program i until it ends or must wait.
func (c *runner[V]) advance(i int32) error {
	g := &c.progs[i]
	for {
		if err := c.poll(); err != nil {
			return err
		}
		if !g.have {
			if !g.cur.Next(&g.op) {
				g.done = true
				return nil
			}
			g.have = true
			if err := c.wellFormed(i); err != nil {
				return err
			}
		}
		if g.waiting = c.blockedOn(g); g.waiting >= 0 {
			return nil
		}
		if err := c.exec(i); err != nil {
			return err
		}
		g.have = false
	}
}

// blockedOn returns a connection for which the op must wait, -1 for none.
func (c *runner[V]) blockedOn(g *running) int32 {
	steps := int64(g.pr.OpSteps())
	for _, id := range g.op.From {
		k := c.fifo(id)
		for k.posted < k.released+int64(g.op.RecvAhead)+steps {
			if c.fill == nil || !c.fill(k) {
				return id
			}
		}
	}
	for _, id := range g.op.To {
		k := c.fifo(id)
		if k.posted+int64(g.op.SendAhead)+steps > k.released+plan.FIFOSteps {
			return id
		}
	}
	return -1
}

// wellFormed checks an op on its own.
func (c *runner[V]) wellFormed(i int32) error {
	g := &c.progs[i]
	op := &g.op
	switch {
	case op.Rank != g.pr.Rank || op.Channel != g.pr.Channel || op.Group != g.pr.Group:
		return c.fault(i, "belongs to rank %d channel %d group %d", op.Rank, op.Channel, op.Group)
	case op.Do&plan.Recv != 0 != (len(op.From) > 0) || op.Do&plan.Send != 0 != (len(op.To) > 0):
		return c.fault(i, "%v, but %d connections to receive and %d to send", op.Do, len(op.From), len(op.To))
	case op.Do&plan.Copy != 0 != (op.Dst.Buf != plan.NoBuffer):
		return c.fault(i, "%v with destination %v", op.Do, op.Dst)
	case op.Dst.Buf == plan.Input && (g.pr.Role != plan.RoleBlock || !c.p.Req.InPlace):
		return c.fault(i, "writes its input")
	case op.Bytes < 0 || op.RecvAhead < 0 || op.SendAhead < 0 || op.SendAhead >= plan.FIFOSteps ||
		op.RecvAhead >= plan.FIFOSteps:
		return c.fault(i, "negative size or steps out of reach")
	}
	l := c.layout.get(c.p, op.Rank)
	for _, r := range []plan.Ref{op.Src, op.Dst} {
		size := l.Input
		switch r.Buf {
		case plan.Output:
			size = l.Output
		case plan.Scratch:
			size = l.Scratch
		}
		if r.Buf != plan.NoBuffer && op.Bytes > 0 && (r.Off < 0 || op.Bytes > size || r.Off > size-op.Bytes) {
			return c.fault(i, "touches %v+%d of a buffer of %d bytes", r, op.Bytes, size)
		}
	}
	for _, id := range op.From {
		if err := c.own(i, id, false); err != nil {
			return err
		}
	}
	for _, id := range op.To {
		if err := c.own(i, id, true); err != nil {
			return err
		}
	}
	return nil
}

// own checks that program i may use an end of a connection, and that no other
// program does.
func (c *runner[V]) own(i, id int32, send bool) error {
	k, g := c.fifo(id), &c.progs[i]
	if k == nil {
		return c.fault(i, "connection %d does not exist", id)
	}
	end, owner, word := k.conn.Dst, &k.receiver, "receives"
	if send {
		end, owner, word = k.conn.Src, &k.sender, "sends"
	}
	if end != g.pr.Rank || k.conn.Channel != g.pr.Channel && g.pr.Role != plan.RoleBlock {
		return c.fault(i, "%s on connection %d, which is from rank %d to %d on channel %d", word, id,
			k.conn.Src, k.conn.Dst, k.conn.Channel)
	}
	if *owner >= 0 && *owner != i {
		return c.fault(i, "%s on connection %d like group %d", word, id, c.progs[*owner].pr.Group)
	}
	*owner = i
	return nil
}

// exec runs the op of program i, for which everything is there.
func (c *runner[V]) exec(i int32) error {
	g := &c.progs[i]
	op := &g.op
	steps := int64(g.pr.OpSteps())
	if at := c.step(op); at != int64(op.Step) {
		return c.fault(i, "says it is at step %d, but is at %d", op.Step, at)
	}
	var val V
	operands := 0
	take := func(v V) (err error) {
		if operands++; operands == 1 {
			val = v
			return nil
		}
		if op.Do&plan.Reduce == 0 {
			return c.fault(i, "several operands but nothing reduces them")
		}
		if val, err = c.m.Reduce(op, val, v); err != nil {
			return c.fault(i, "%v", err)
		}
		return nil
	}
	for _, id := range op.From {
		pc, err := c.receive(i, id)
		if err != nil {
			return err
		}
		if err := take(pc.val); err != nil {
			return err
		}
		if op.Do&plan.HoldRecv == 0 {
			if err := c.release(i, id, steps); err != nil {
				return err
			}
		}
	}
	if g.pr.Role == plan.RoleBlock && op.Do&plan.Accum != 0 {
		v, err := c.m.Read(op.Rank, op.Src, op.Bytes)
		if err != nil {
			return c.fault(i, "%v", err)
		}
		if err := take(v); err != nil {
			return err
		}
	}
	if v, ok, err := c.local(i); err != nil {
		return err
	} else if ok {
		if err := take(v); err != nil {
			return err
		}
	}
	if operands == 0 {
		return c.fault(i, "%v has no operand", op.Do)
	}
	return c.deliver(i, val, steps)
}

// deliver hands the result of an op on.
func (c *runner[V]) deliver(i int32, val V, steps int64) error {
	g := &c.progs[i]
	op := &g.op
	var err error
	if op.Do&plan.PostOp != 0 {
		val, err = c.m.Post(op, val)
	}
	if err == nil && op.Do&plan.Copy != 0 {
		err = c.m.Write(op.Rank, op.Dst, op.Bytes, val)
	}
	if err != nil {
		return c.fault(i, "%v", err)
	}
	for _, id := range op.To {
		if err := c.send(op, id, val, steps); err != nil {
			return err
		}
	}
	if c.observer != nil {
		c.observer.Ran(&g.pr, op)
	}
	return nil
}

// step returns the step at which an op is on its connections.
func (c *runner[V]) step(op *plan.Op) int64 {
	switch {
	case len(op.To) > 0:
		return c.fifo(op.To[0]).posted
	case len(op.From) > 0:
		return c.fifo(op.From[0]).released
	}
	return int64(op.Step)
}

// local returns the operand of the op's own rank, if it has one.
func (c *runner[V]) local(i int32) (v V, ok bool, err error) {
	op := &c.progs[i].op
	src := op.Src
	switch {
	case op.Do&plan.Accum != 0 && op.Do&plan.Send != 0:
		k := c.fifo(op.To[0])
		for _, pc := range k.slots[(k.posted+int64(op.SendAhead))%plan.FIFOSteps] {
			if pc.off == op.SendOff && pc.bytes == op.Bytes {
				return pc.val, true, nil
			}
		}
		return v, false, c.fault(i, "adds to a piece that is not there")
	case op.Do&plan.Accum != 0:
		src = op.Dst
	case src.Buf == plan.NoBuffer:
		return v, false, nil
	}
	if v, err = c.m.Read(op.Rank, src, op.Bytes); err != nil {
		return v, false, c.fault(i, "%v", err)
	}
	return v, true, nil
}

// receive finds the piece that the op reads from a connection.
func (c *runner[V]) receive(i, id int32) (*piece[V], error) {
	op := &c.progs[i].op
	k := c.fifo(id)
	slot := k.slots[(k.released+int64(op.RecvAhead))%plan.FIFOSteps]
	for j := range slot {
		if pc := &slot[j]; pc.off == op.RecvOff {
			if pc.bytes != op.Bytes {
				return nil, c.fault(i, "receives %d bytes from rank %d, which sent %d", op.Bytes, k.conn.Src,
					pc.bytes)
			}
			pc.read = true
			return pc, nil
		}
	}
	return nil, c.fault(i, "reads from rank %d at offset %d of a step, where nothing was put", k.conn.Src,
		op.RecvOff)
}

// release gives the steps of an op back to the sender.
func (c *runner[V]) release(i, id int32, steps int64) error {
	k := c.fifo(id)
	for range steps {
		slot := &k.slots[k.released%plan.FIFOSteps]
		for _, pc := range *slot {
			if !pc.read {
				return c.fault(i, "drops %d bytes from rank %d unread", pc.bytes, k.conn.Src)
			}
		}
		*slot = (*slot)[:0]
		k.released++
	}
	return c.wake(k.sender, id)
}

func (c *runner[V]) send(op *plan.Op, id int32, val V, steps int64) error {
	k := c.fifo(id)
	slot := &k.slots[(k.posted+int64(op.SendAhead))%plan.FIFOSteps]
	pc := piece[V]{off: op.SendOff, bytes: op.Bytes, val: val}
	replaced := false
	for j := range *slot {
		if (*slot)[j].off == pc.off {
			(*slot)[j], replaced = pc, true
		}
	}
	if !replaced {
		if cap(*slot) == 0 {
			*slot = c.pieces.one()
		}
		*slot = append(*slot, pc)
	}
	if op.Do&plan.HoldSend != 0 {
		return nil
	}
	k.posted += steps
	if c.empty != nil {
		if err := c.empty(k); err != nil {
			return err
		}
	}
	return c.wake(k.receiver, id)
}

// wake puts the program at the other end of a connection, or the network, back
// to work if it waits for it.
func (c *runner[V]) wake(i, id int32) error {
	if k := c.fifo(id); k.conn.Kind == connect.CollNetRoute {
		return c.network(k.conn.NetGroup)
	}
	c.rouse(id, i)
	return nil
}

// rouse puts a program back to work that waits for a connection.
func (c *runner[V]) rouse(id, i int32) {
	if i >= 0 && c.progs[i].have && c.progs[i].waiting == id {
		c.progs[i].waiting = -1
		c.queue = append(c.queue, i)
	}
}

// deadlock describes who waits for what.
func (c *runner[V]) deadlock() error {
	var b strings.Builder
	n := 0
	who := int32(-1)
	for i := range c.progs {
		g := &c.progs[i]
		if g.done || !g.have {
			continue
		}
		if who < 0 {
			who = int32(i)
		}
		if n++; n <= 4 {
			k := c.fifo(g.waiting)
			fmt.Fprintf(&b, "; rank %d group %d op %d (%v) waits for %d->%d, %d steps sent, %d taken",
				g.pr.Rank, g.pr.Group, g.op.Seq, g.op.Do, k.conn.Src, k.conn.Dst, k.posted, k.released)
		}
	}
	if who < 0 {
		return &Error{-1, -1, -1, -1, "programs of a later phase never start"}
	}
	return c.fault(who, "deadlock: %d programs wait for each other%s", n, b.String())
}

// drained checks that nothing sent was left unreceived.
func (c *runner[V]) drained() error {
	for i := range c.conns {
		k := &c.conns[i]
		left := k.posted - k.released
		for _, s := range k.slots {
			if len(s) > 0 {
				left = max(left, 1)
			}
		}
		if left != 0 {
			return &Error{k.conn.Src, k.conn.Channel, -1, -1,
				fmt.Sprintf("%d steps sent to rank %d are never received", left, k.conn.Dst)}
		}
	}
	return nil
}
