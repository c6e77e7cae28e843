package ibv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// inFlight is the number of steps that NCCL has in flight on a connection (NCCL_STEPS).
const inFlight = 8

// pattern measures NCCL's use of verbs instead of one bare operation: every message waits for the receiver's
// clear-to-send, eight are in flight, and a write with immediate notifies the receiver. A latency is the time
// from the offer of a receive to its end, with one message at a time. The receiver of each direction has its
// result.
func (n *Net) pattern(ctx context.Context, t *control, dev int, c *PerfConfig, client bool) (*Perf, error) {
	sends, receives := client || c.Bidirectional, !client || c.Bidirectional
	f := &flow{c: c, t: t}
	err := f.connect(ctx, n, dev, sends, receives)
	defer f.close()
	if err == nil {
		err = t.meet()
	}
	if err != nil {
		return nil, err
	}
	return f.run(ctx)
}

// flow is one side's part: a receiver, a sender, or both. One loop serves all of it, as a proxy thread does.
type flow struct {
	c        *PerfConfig
	t        *control
	s        transport.SendComm
	r        transport.RecvComm
	src, dst transport.Memory
	undo     []func()

	recv, send []transport.Request
	offered    int
	sent       int
	limit      int // number of messages to send; -1: not yet known
	from       time.Time
	p          Perf
}

// connect sends the peer this side's address if this side receives, and connects to the peer's if it sends.
func (f *flow) connect(ctx context.Context, n *Net, dev int, sends, receives bool) error {
	l, err := n.Listen(dev)
	if err != nil {
		return err
	}
	defer l.Close()
	if err := writeLine(f.t.conn, &note{Handle: l.Handle()}); err != nil {
		return err
	}
	w, err := f.t.next()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	accepted := make(chan error, 1)
	go func() {
		var err error
		if receives {
			f.r, err = l.Accept(ctx)
		}
		accepted <- err
	}()
	if sends {
		if f.s, err = n.Connect(ctx, dev, w.Handle); err != nil {
			cancel()
		}
	}
	if err = errors.Join(err, <-accepted); err != nil {
		return err
	}
	if sends {
		if f.src, err = f.memory(f.s.Register); err != nil {
			return err
		}
	}
	if receives {
		f.dst, err = f.memory(f.r.Register)
	}
	return err
}

func (f *flow) memory(register func([]byte) (transport.Memory, error)) (transport.Memory, error) {
	mem, free, err := verbs.HostMemory(inFlight * f.c.Size)
	if err != nil {
		return nil, err
	}
	f.undo = append(f.undo, free)
	m, err := register(mem)
	if err == nil {
		f.undo = append(f.undo, func() { _ = m.Release() })
	}
	return m, err
}

func (f *flow) close() {
	for _, undo := range slices.Backward(f.undo) {
		undo()
	}
	if f.s != nil {
		_ = f.s.Close()
	}
	if f.r != nil {
		_ = f.r.Close()
	}
}

// run serves requests until all messages of both directions have ended.
func (f *flow) run(ctx context.Context) (*Perf, error) {
	depth := inFlight
	if f.c.Latency {
		depth = 1
	}
	f.limit = -1
	if f.s == nil {
		f.limit = 0
	}
	began, alive, reported := time.Now(), time.Now(), f.r == nil
	for {
		more := f.r != nil && f.c.more(f.offered, time.Since(began))
		if !reported && !more {
			reported = true
			if err := writeLine(f.t.conn, &note{Ended: true, Count: f.offered}); err != nil {
				return nil, err
			}
		}
		moved, err := f.poll(depth, more)
		if err != nil {
			return nil, err
		}
		if moved {
			alive = time.Now()
		} else if w, err := f.t.poll(); err != nil {
			return nil, err
		} else if w.Ended {
			f.limit = w.Count
		}
		switch {
		case reported && f.limit == f.sent && len(f.recv)+len(f.send) == 0:
			return f.result(time.Since(began)), nil
		case time.Since(alive) > stall:
			return nil, fmt.Errorf("messages of %d bytes: nothing has ended for %v", f.c.Size, stall)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// result returns the rates of the received messages.
func (f *flow) result(d time.Duration) *Perf {
	if f.p.Iters > 0 {
		f.p.Rate = float64(f.p.Iters) / d.Seconds()
		f.p.Average = f.p.Rate * float64(f.c.Size)
	}
	slices.Sort(f.p.Times)
	return &f.p
}

// poll offers, sends and tests once; moved is true if a message ended.
func (f *flow) poll(depth int, more bool) (moved bool, err error) {
	if f.r != nil {
		if moved, err = f.receive(depth, more); err != nil {
			return false, err
		}
	}
	if f.s == nil {
		return moved, nil
	}
	if len(f.send) < inFlight && f.sent != f.limit {
		q, err := f.s.Isend(transport.Buf{Mem: f.src, Off: f.sent % inFlight * f.c.Size, Size: f.c.Size}, 0)
		if err != nil {
			return false, err
		}
		if q != nil {
			f.send, f.sent = append(f.send, q), f.sent+1
		}
	}
	if len(f.send) > 0 {
		done, _, err := f.send[0].Test()
		if err != nil {
			return false, err
		}
		if done {
			f.send, moved = f.send[1:], true
		}
	}
	return moved, nil
}

func (f *flow) receive(depth int, more bool) (ended bool, err error) {
	if len(f.recv) < depth && more {
		if len(f.recv) == 0 {
			f.from = time.Now()
		}
		b := transport.Buf{Mem: f.dst, Off: f.offered % inFlight * f.c.Size, Size: f.c.Size}
		q, err := f.r.Irecv([]transport.Buf{b}, []int32{0})
		if err != nil {
			return false, err
		}
		if q != nil {
			f.recv, f.offered = append(f.recv, q), f.offered+1
		}
	}
	if len(f.recv) == 0 {
		return false, nil
	}
	if ended, _, err = f.recv[0].Test(); ended {
		f.recv = f.recv[1:]
		f.p.Iters++
		if f.c.Latency {
			f.p.Times = append(f.p.Times, time.Since(f.from))
		}
	}
	return ended, err
}
