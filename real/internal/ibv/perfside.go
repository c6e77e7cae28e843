package ibv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/simccl/simccl/real/internal/verbs"
)

// side is one end of a measurement of a bare operation. Its memory holds two messages: outgoing and incoming.
type side struct {
	*comm
	t        *control
	c        *PerfConfig
	op       uint32
	sends    bool // in bandwidth
	awaits   bool // the other side sends
	mem      []byte
	farEnded bool
	posted   []int64 // nanoseconds, by message
	finished []int64
	got      int64 // messages received
}

// bare measures write, read or send.
func (n *Net) bare(ctx context.Context, conn net.Conn, dev int, c *PerfConfig, client bool) (*Perf, *control,
	error) {
	o := &opening{conn: conn, notes: 2 * c.Size, access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead}
	if !client {
		o.far = new(greeting)
		if err := readLine(conn, o.far); err != nil {
			return nil, nil, err
		}
	}
	k, mem, err := n.open(dev, o)
	if err != nil {
		return nil, nil, err
	}
	s := &side{comm: k, t: newControl(conn), c: c, op: perfOps[c.Op], mem: mem, sends: client ||
		c.Bidirectional, awaits: !client || c.Bidirectional}
	p, err := s.run(ctx, client)
	return p, s.t, errors.Join(err, k.free())
}

func (s *side) run(ctx context.Context, client bool) (*Perf, error) {
	if s.op == verbs.OpSend {
		for _, q := range s.qps {
			for range min(s.c.TxDepth, maxRequests) {
				if err := s.offer(q); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := s.t.meet(); err != nil {
		return nil, err
	}
	switch {
	case !s.c.Latency:
		return s.stream(ctx)
	case client:
		return s.ping(ctx)
	}
	return &Perf{}, s.pong(ctx)
}

// work returns the next message of the side as a request on one of its QPs.
func (s *side) work(q *queuePair, id uint64) verbs.Work {
	return verbs.Work{ID: id, Op: s.op, Signaled: true, Local: verbs.AddressOf(s.mem), Len: s.c.Size,
		Lkey:   s.nics[q.nic].own.Lkey,
		Remote: s.far.Addr + uint64(s.c.Size), Rkey: s.far.NICs[q.far].Rkey}
}

// received is the id of a receive, which no message has.
const received = 1 << 32

func (s *side) offer(q *queuePair) error {
	return q.PostRecvInto(received, verbs.AddressOf(s.mem)+uintptr(s.c.Size), s.c.Size,
		s.nics[q.nic].own.Lkey)
}

// poll handles completions; it calls sent with the id of each of its own messages.
func (s *side) poll(sent func(id uint64)) (n int, err error) {
	for i, c := range s.nics {
		wcs, err := c.cq.Poll()
		if err != nil {
			return 0, err
		}
		for j := range wcs {
			wc := &wcs[j]
			q := s.qp(i, wc.QP)
			if !wc.OK() {
				return 0, q.Failure(opcodes[s.op], wc)
			}
			if wc.ID != received {
				sent(wc.ID)
				continue
			}
			s.got++
			if err := s.offer(q); err != nil {
				return 0, err
			}
		}
		n += len(wcs)
	}
	return n, nil
}

// listen checks whether the other side has ended.
func (s *side) listen() error {
	w, err := s.t.poll()
	s.farEnded = s.farEnded || w.Ended
	return err
}

// stream keeps every QP's window full until the count or the time is reached, and serves receives until the
// other side has sent everything.
func (s *side) stream(ctx context.Context) (*Perf, error) {
	began := time.Now()
	now := func() int64 { return time.Since(began).Nanoseconds() }
	done, alive, reported := 0, began, !s.sends
	for round := 0; ; round++ {
		for s.sends && len(s.posted)-done < s.c.TxDepth*len(s.qps) &&
			s.c.more(len(s.posted), time.Since(began)) {
			id := len(s.posted)
			s.posted, s.finished = append(s.posted, now()), append(s.finished, 0)
			q := s.qps[id%len(s.qps)]
			if err := q.Post(s.work(q, uint64(id))); err != nil {
				return nil, err
			}
		}
		n, err := s.poll(func(id uint64) { s.finished[id] = now(); done++ })
		if err != nil {
			return nil, err
		}
		if n > 0 {
			alive = time.Now()
		}
		if !reported && done == len(s.posted) && !s.c.more(done, time.Since(began)) {
			reported = true
			if err := writeLine(s.t.conn, &note{Ended: true}); err != nil {
				return nil, err
			}
		}
		if n == 0 || round%64 == 0 {
			if err := s.listen(); err != nil {
				return nil, err
			}
		}
		switch {
		case reported && n == 0 && (s.farEnded || !s.awaits):
			return s.bandwidth(), nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !reported && time.Since(alive) > stall:
			return nil, fmt.Errorf("%s on %s: nothing has completed for %v", opcodes[s.op],
				s.nics[0].dev.Name, stall)
		}
	}
}

// ping is the client's part in a latency measurement: back and forth (write, send), or one read after
// another.
func (s *side) ping(ctx context.Context) (*Perf, error) {
	p := &Perf{}
	began := time.Now()
	for i := 1; s.c.more(i-1, time.Since(began)); i++ {
		from := time.Now()
		if err := s.strike(i); err != nil {
			return nil, err
		}
		if err := s.await(ctx, i); err != nil {
			return nil, err
		}
		d := time.Since(from)
		if s.op != verbs.OpRead {
			d /= 2
		}
		p.Times = append(p.Times, d)
	}
	p.Iters = len(p.Times)
	slices.Sort(p.Times)
	return p, writeLine(s.t.conn, &note{Ended: true})
}

// pong answers each message until the client has ended.
func (s *side) pong(ctx context.Context) error {
	for i := 1; ; i++ {
		if err := s.await(ctx, i); err != nil || s.farEnded {
			return err
		}
		if err := s.strike(i); err != nil {
			return err
		}
	}
}

// strike posts message i, whose last byte is its number.
func (s *side) strike(i int) error {
	s.mem[s.c.Size-1] = byte(i)
	return s.qps[0].Post(s.work(s.qps[0], 0))
}

// await waits for the other side's message i (for read: its completion), and handles completions meanwhile.
// The answering side also waits for the end.
func (s *side) await(ctx context.Context, i int) error {
	limit := time.Now().Add(stall)
	read := false
	for n := 0; ; n++ {
		if _, err := s.poll(func(uint64) { read = true }); err != nil {
			return err
		}
		switch {
		case s.op == verbs.OpRead && read && !s.awaits, s.op == verbs.OpSend && s.got >= int64(i),
			s.op == verbs.OpWrite && loadByte(&s.mem[2*s.c.Size-1]) == byte(i):
			return nil
		case n%64 == 63:
			if err := s.listen(); err != nil || s.farEnded {
				return err
			}
		case n%1024 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		case n%1024 == 0 && !(s.op == verbs.OpRead && s.awaits) && time.Now().After(limit):
			return fmt.Errorf("%s on %s: message %d has not come for %v", opcodes[s.op], s.nics[0].dev.Name,
				i, stall)
		}
	}
}

// loadByte reads memory that a NIC writes; the call keeps the read in the
// caller's loop.
//
//go:noinline
func loadByte(p *byte) byte { return *p }
