package host

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/transport"
)

// pump is a rank's proxy: one loop that moves the steps of all its network connections.
type pump struct {
	rank    int32
	crowded bool
	log     *log
	idle    [][2]int64 // if times are recorded: intervals in which nothing moved
	still   int64      // begin of the present one; 0: data moves
	sends   []*outgoing
	recvs   []*incoming
	finish  atomic.Bool
}

// outgoing moves posted steps of a FIFO to the peer.
type outgoing struct {
	f     *fifo
	comm  transport.SendComm
	mem   transport.Memory
	steps int64 // of one message
	sent  int64 // steps passed to the net
	wait  []transport.Request
	conn  plan.Conn
	hops  []hop // if times are recorded
	tried int64 // time of the first poll of the next message; 0: none yet
	works []transport.Work
}

// incoming offers free steps of a FIFO to the peer.
type incoming struct {
	f       *fifo
	comm    transport.RecvComm
	mem     transport.Memory
	steps   int64
	offered int64
	wait    []transport.Request
	flush   transport.Request
	conn    plan.Conn
	hops    []hop // if times are recorded
	posted  [plan.FIFOSteps]int64
	works   []transport.Work
}

// loop runs until the programs are done and every send has ended, or ctx ends.
func (q *pump) loop(ctx context.Context) error {
	w := backoff{crowded: q.crowded}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// Read finish first: programs that are done before the poll of their FIFOs have posted everything.
		finish := q.finish.Load()
		busy, moved := false, false
		for _, o := range q.sends {
			m, err := o.progress(q.log)
			if err != nil {
				return fmt.Errorf("rank %d: send to rank %d, channel %d: %w", q.rank, o.conn.Dst,
					o.conn.Channel, err)
			}
			moved = moved || m
			busy = busy || len(o.wait) > 0 || o.sent < o.f.posted.Load()
		}
		for _, i := range q.recvs {
			m, err := i.progress(q.log)
			if err != nil {
				return fmt.Errorf("rank %d: receive from rank %d, channel %d: %w", q.rank, i.conn.Src,
					i.conn.Channel, err)
			}
			moved = moved || m
		}
		switch {
		case moved:
			w.n = 0
			q.moves()
		case finish && !busy:
			return nil
		default:
			q.rests()
			if err := w.wait(ctx); err != nil {
				return err
			}
		}
	}
}

func (o *outgoing) progress(l *log) (moved bool, err error) {
	for o.sent+o.steps <= o.f.posted.Load() {
		at := o.sent % plan.FIFOSteps
		b := transport.Buf{Mem: o.mem, Off: int(at) * o.f.slot, Size: int(o.f.size[at].Load())}
		now := l.now()
		if o.tried == 0 {
			o.tried = now
		}
		r, err := o.comm.Isend(b, 0)
		if err != nil {
			return false, err
		}
		if r == nil {
			break
		}
		o.wait, o.sent, moved = append(o.wait, r), o.sent+o.steps, true
		if l != nil {
			o.hops = append(o.hops, hop{tried: o.tried, from: now})
			o.tried = 0
		}
	}
	for len(o.wait) > 0 {
		done, _, err := o.wait[0].Test()
		if err != nil {
			return false, err
		}
		if !done {
			break
		}
		if l != nil {
			o.hops[len(o.hops)-len(o.wait)].to = l.now()
		}
		at := o.f.released.Load()
		o.f.size[at%plan.FIFOSteps].Store(0)
		o.f.released.Store(at + o.steps)
		o.wait, moved = o.wait[1:], true
	}
	return moved, nil
}

func (i *incoming) progress(l *log) (moved bool, err error) {
	for i.offered+i.steps <= i.f.released.Load()+plan.FIFOSteps {
		at := i.offered % plan.FIFOSteps
		b := transport.Buf{Mem: i.mem, Off: int(at) * i.f.slot, Size: int(i.steps) * i.f.slot}
		r, err := i.comm.Irecv([]transport.Buf{b}, []int32{0})
		if err != nil {
			return false, err
		}
		if r == nil {
			break
		}
		i.posted[at] = l.now()
		i.wait, i.offered, moved = append(i.wait, r), i.offered+i.steps, true
	}
	for len(i.wait) > 0 {
		if i.flush == nil {
			done, sizes, err := i.wait[0].Test()
			if err != nil {
				return false, err
			}
			if !done {
				break
			}
			if l != nil {
				i.land(l)
			}
			at := i.f.posted.Load() % plan.FIFOSteps
			i.f.size[at].Store(int64(sizes[0]))
			if i.conn.Route.Flush {
				b := transport.Buf{Mem: i.mem, Off: int(at) * i.f.slot, Size: sizes[0]}
				if i.flush, err = i.comm.Iflush([]transport.Buf{b}); err != nil {
					return false, err
				}
			}
		}
		if i.flush != nil {
			done, _, err := i.flush.Test()
			if err != nil || !done {
				return moved, err
			}
			i.flush = nil
			if l != nil {
				i.hops[len(i.hops)-1].flushed = l.now()
			}
		}
		i.f.posted.Add(i.steps)
		i.wait, moved = i.wait[1:], true
	}
	return moved, nil
}

// land records that the next message has arrived.
func (i *incoming) land(l *log) {
	i.hops = append(i.hops, hop{from: i.posted[i.f.posted.Load()%plan.FIFOSteps], to: l.now()})
}

// connect makes the FIFOs of all ends, and network connections for those whose other end is reached over the
// wire. The returned function closes them.
func (e *Executor) connect(ctx context.Context, x *run, ends []end) ([]*pump, func(), error) {
	w := e.cfg.Wire
	var far []end
	for _, d := range ends {
		if w != nil && d.conn.Src != d.conn.Dst {
			far = append(far, d)
		} else if x.rxs[d.conn.ID] == nil {
			f := newFIFO(make([]byte, stepBuffer(x.p, d.proto)))
			x.rxs[d.conn.ID], x.txs[d.conn.ID] = f, f
		}
	}
	if w == nil {
		return nil, func() {}, nil
	}
	c := &connector{x: x, w: w, pumps: map[int32]*pump{}}
	var all sync.WaitGroup
	for _, d := range far {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := c.open(ctx, d); err != nil {
				x.fail.set(fmt.Errorf("connect rank %d to rank %d, channel %d: %w", d.conn.Src, d.conn.Dst,
					d.conn.Channel, err))
				if s, can := w.Exchange(d.conn.Src).(interface{ Stop(error) }); can {
					s.Stop(err)
				}
			}
		}()
	}
	all.Wait()
	var pumps []*pump
	for _, q := range c.pumps {
		pumps = append(pumps, q)
	}
	return pumps, c.close, x.fail.get()
}

// stepBuffer returns the size of a FIFO of a protocol. On the CPU, LL and LL128 keep their flags elsewhere,
// so their FIFOs have more room than data.
func stepBuffer(p *plan.Plan, proto coll.Protocol) int { return int(p.Comm.BuffSizes[proto]) }

type connector struct {
	x     *run
	w     *Wire
	mu    sync.Mutex
	pumps map[int32]*pump
	undo  []func()
}

func (c *connector) later(f func()) {
	c.mu.Lock()
	c.undo = append(c.undo, f)
	c.mu.Unlock()
}

func (c *connector) close() {
	for i := len(c.undo) - 1; i >= 0; i-- {
		c.undo[i]()
	}
	c.undo = nil
}

func (c *connector) pump(rank int32) *pump {
	q := c.pumps[rank]
	if q == nil {
		q = &pump{rank: rank}
		c.pumps[rank] = q
	}
	return q
}

func (c *connector) memory(n int) ([]byte, error) {
	if c.w.Memory == nil {
		return make([]byte, n), nil
	}
	b, free, err := c.w.Memory(n)
	if err == nil {
		c.later(free)
	}
	return b, err
}

// open sets up one end: the receiver listens and sends its handle to the sender through the exchange.
func (c *connector) open(ctx context.Context, d end) error {
	buf, err := c.memory(stepBuffer(c.x.p, d.proto))
	if err != nil {
		return err
	}
	f := newFIFO(buf)
	if d.send {
		return c.openSend(ctx, d, f)
	}
	return c.openRecv(ctx, d, f)
}

func (c *connector) openSend(ctx context.Context, d end, f *fifo) error {
	h, err := c.w.Exchange(d.conn.Src).Recv(int(d.conn.Dst), uint32(d.conn.ID))
	if err != nil {
		return err
	}
	comm, err := c.w.Net.Connect(ctx, c.w.Device(d.conn.Src, d.conn.Route.SrcNet), h)
	if err != nil {
		return err
	}
	mem, err := comm.Register(f.buf)
	if err != nil {
		comm.Close()
		return err
	}
	c.later(func() { mem.Release(); comm.Close() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.x.txs[d.conn.ID] = f
	q := c.pump(d.conn.Src)
	q.sends = append(q.sends, &outgoing{f: f, comm: comm, mem: mem, steps: d.steps, conn: d.conn})
	return nil
}

func (c *connector) openRecv(ctx context.Context, d end, f *fifo) error {
	l, err := c.w.Net.Listen(c.w.Device(d.conn.Dst, d.conn.Route.DstNet))
	if err != nil {
		return err
	}
	defer l.Close()
	if err := c.w.Exchange(d.conn.Dst).Send(int(d.conn.Src), uint32(d.conn.ID), l.Handle()); err != nil {
		return err
	}
	comm, err := l.Accept(ctx)
	if err != nil {
		return err
	}
	mem, err := comm.Register(f.buf)
	if err != nil {
		comm.Close()
		return err
	}
	c.later(func() { mem.Release(); comm.Close() })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.x.rxs[d.conn.ID] = f
	q := c.pump(d.conn.Dst)
	q.recvs = append(q.recvs, &incoming{f: f, comm: comm, mem: mem, steps: d.steps, conn: d.conn})
	return nil
}

// InProcess is an Exchange among ranks of one process.
type InProcess struct {
	mu   sync.Mutex
	cond *sync.Cond
	mail map[[3]int64][]byte
	err  error
}

// NewInProcess returns an empty exchange; Of returns each rank's view.
func NewInProcess() *InProcess {
	p := &InProcess{mail: map[[3]int64][]byte{}}
	p.cond = sync.NewCond(&p.mu)
	return p
}

// Of returns the view of a rank.
func (p *InProcess) Of(rank int32) Exchange { return &inProcessView{p, int64(rank)} }

type inProcessView struct {
	p    *InProcess
	rank int64
}

func (v *inProcessView) Send(peer int, tag uint32, data []byte) error {
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	v.p.mail[[3]int64{v.rank, int64(peer), int64(tag)}] = data
	v.p.cond.Broadcast()
	return nil
}

// Stop ends every present and later wait with an error.
func (v *inProcessView) Stop(err error) {
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	v.p.err = err
	v.p.cond.Broadcast()
}

func (v *inProcessView) Recv(peer int, tag uint32) ([]byte, error) {
	k := [3]int64{int64(peer), v.rank, int64(tag)}
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	for v.p.mail[k] == nil {
		if v.p.err != nil {
			return nil, v.p.err
		}
		v.p.cond.Wait()
	}
	b := v.p.mail[k]
	delete(v.p.mail, k)
	return b, nil
}
