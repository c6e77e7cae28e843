package ibv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/simccl/simccl/real/transport"
)

// inFlight is how many steps of a connection NCCL has under way (NCCL_STEPS).
const inFlight = 8

// RunPattern measures what NCCL does with verbs in place of one bare
// operation: every message waits for the receiver's clear-to-send, eight are
// under way, and a write with immediate tells the receiver. A time is from the
// offer of a receive to its end, of one message at a time.
func (n *Net) RunPattern(ctx context.Context, c PerfConfig) (*Perf, error) {
	s, r, err := n.loop(ctx, &c)
	if err != nil {
		return nil, err
	}
	p, err := pattern(ctx, s, r, &c)
	return p, errors.Join(err, s.Close(), r.Close())
}

// loop connects two devices of this machine.
func (n *Net) loop(ctx context.Context, c *PerfConfig) (transport.SendComm, transport.RecvComm, error) {
	l, err := n.Listen(c.To)
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	var r transport.RecvComm
	far := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		var err error
		r, err = l.Accept(ctx)
		far <- err
	}()
	s, err := n.Connect(ctx, c.From, l.Handle())
	if err != nil {
		cancel()
	}
	return s, r, errors.Join(err, <-far)
}

// flow is a measurement under way.
type flow struct {
	s          transport.SendComm
	r          transport.RecvComm
	src, dst   transport.Memory
	size       int
	recv, send []transport.Request
	offered    int
	sent       int
}

func pattern(ctx context.Context, s transport.SendComm, r transport.RecvComm, c *PerfConfig) (p *Perf, err error) {
	f := &flow{s: s, r: r, size: c.Size}
	for _, e := range []struct {
		to   *transport.Memory
		with func([]byte) (transport.Memory, error)
	}{{&f.src, s.Register}, {&f.dst, r.Register}} {
		mem, free, err := HostMemory(inFlight * c.Size)
		if err != nil {
			return nil, err
		}
		defer free()
		if *e.to, err = e.with(mem); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, (*e.to).Release()) }()
	}
	depth := inFlight
	if c.Latency {
		depth = 1
	}
	p = &Perf{}
	began, alive := time.Now(), time.Now()
	var from time.Time
	more := func() bool {
		if c.Duration > 0 {
			return time.Since(began) < c.Duration
		}
		return f.offered < c.Iters
	}
	for more() || len(f.recv)+len(f.send) > 0 {
		if len(f.recv) == 0 {
			from = time.Now()
		}
		ended, err := f.turn(depth, more)
		if err != nil {
			return nil, err
		}
		if ended {
			p.Iters++
			alive = time.Now()
			p.Times = append(p.Times, time.Since(from))
		}
		if time.Since(alive) > stall {
			return nil, fmt.Errorf("messages of %d bytes: nothing has ended for %v", c.Size, stall)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	d := time.Since(began).Seconds()
	p.Rate = float64(p.Iters) / d
	p.Average = p.Rate * float64(c.Size)
	p.Peak = p.Average
	slices.Sort(p.Times)
	return p, nil
}

// turn offers, sends and tests once; ended: a receive did.
func (f *flow) turn(depth int, more func() bool) (ended bool, err error) {
	if len(f.recv) < depth && len(f.send) < depth && more() {
		b := transport.Buf{Mem: f.dst, Off: f.offered % inFlight * f.size, Size: f.size}
		q, err := f.r.Irecv([]transport.Buf{b}, []int32{0})
		if err != nil {
			return false, err
		}
		if q != nil {
			f.recv, f.offered = append(f.recv, q), f.offered+1
		}
	}
	if f.sent < f.offered {
		q, err := f.s.Isend(transport.Buf{Mem: f.src, Off: f.sent % inFlight * f.size, Size: f.size}, 0)
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
			f.send = f.send[1:]
		}
	}
	if len(f.recv) > 0 {
		if ended, _, err = f.recv[0].Test(); ended {
			f.recv = f.recv[1:]
		}
	}
	return ended, err
}
