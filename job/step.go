package job

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
)

// steps is the Backend of fidelity step: all calls run in one simulator session.
type steps struct {
	c     *costing
	s     *sim.Session
	kinds []int32 // by call: plan of the session; -1: no kernel is launched
	calls []int32 // by operation of the session
}

var _ streams.Backend = (*steps)(nil)

// backend declares the plans of all calls in a session.
func (c *costing) backend(ctx context.Context) (*steps, error) {
	b := &steps{c: c, s: sim.NewSession(ctx, c.p.Ranks()), kinds: make([]int32, len(c.calls))}
	type key struct {
		x    *planned
		comm int32
	}
	known := map[key]int32{}
	for i, x := range c.calls {
		b.kinds[i] = -1
		if x == nil {
			continue
		}
		at := c.comms[c.p.Calls[i].Comm]
		k, ok := known[key{x, at.id}]
		if !ok {
			var err error
			if k, err = b.s.Declare(c.m.config(at), located(x.plan, at), at.ranks); err != nil {
				return nil, fmt.Errorf("%s on %s: %w", x.op.Func.TestName(), c.p.Comms[at.id].Name, err)
			}
			known[key{x, at.id}] = k
		}
		b.kinds[i] = k
	}
	b.s.Seal()
	if c.session = b.s; c.opt.Observe && c.m.Sim.Packets != nil {
		c.network = b.observe()
	}
	return b, nil
}

// Open implements streams.Backend.
func (b *steps) Open(call int32) (int32, error) {
	op, err := b.s.Open(b.kinds[call])
	for len(b.calls) <= int(op) {
		b.calls = append(b.calls, call)
	}
	return op, err
}

func (b *steps) at(op int32) *communicator { return b.c.comms[b.c.p.Calls[b.calls[op]].Comm] }

// Start implements streams.Backend.
func (b *steps) Start(op, member int32, at units.Time) { b.s.Start(op, b.at(op).rankOf[member], at) }

// Slow implements streams.Backend.
func (b *steps) Slow(rank int32, pace streams.Pace) { b.s.Slow(rank, pace.Kernels, pace.Waits) }

// Next implements streams.Backend.
func (b *steps) Next() (units.Time, bool) { return b.s.Next() }

// Advance implements streams.Backend.
func (b *steps) Advance(at units.Time, ended func(op, member int32)) error {
	return b.s.Advance(at, func(op, rank int32) { ended(op, b.at(op).of[rank]) })
}
