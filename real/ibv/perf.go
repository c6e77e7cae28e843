package ibv

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/simccl/simccl/units"
)

// PerfConfig is one measurement between two ports of this machine, as
// perftest's ib_write_bw, ib_read_bw, ib_send_bw and their _lat siblings make
// it.
type PerfConfig struct {
	Op            string // write, read or send
	From, To      int    // devices
	Size          int    // bytes of a message
	Iters         int
	Duration      time.Duration // in place of Iters where set
	QPs           int           // bandwidth only
	Bidirectional bool          // bandwidth only
	Latency       bool
}

// Perf is what a measurement found.
type Perf struct {
	Iters int
	// Bandwidths in bytes per second, messages per second; of both directions
	// together where bidirectional.
	Peak, Average, Rate float64
	// Times of single messages, sorted: half a round trip of write and send, a
	// whole one of read.
	Times []time.Duration
}

// Typical is the middle of the sorted times; Mean and Stdev are of all.
func (p *Perf) Typical() time.Duration { return p.Percentile(50) }

// Percentile gives the time that pc of a hundred messages stay within.
func (p *Perf) Percentile(pc float64) time.Duration {
	return p.Times[min(len(p.Times)-1, int(math.Ceil(float64(len(p.Times))*pc/100)))]
}

// Mean is the average time and its standard deviation.
func (p *Perf) Mean() (mean, stdev time.Duration) {
	var sum, square float64
	for _, t := range p.Times {
		sum += float64(t)
	}
	m := sum / float64(len(p.Times))
	for _, t := range p.Times {
		square += (float64(t) - m) * (float64(t) - m)
	}
	return time.Duration(m), time.Duration(math.Sqrt(square / float64(len(p.Times))))
}

// window is how many messages of a QP are under way (perftest's --tx-depth).
const window = 128

var perfOps = map[string]uint32{"write": opWrite, "read": opRead, "send": opSend}

// stall is how long nothing may complete.
const stall = 30 * time.Second

// side is one end of a measurement. Its memory is two messages: what goes out,
// and what comes in.
type side struct {
	*comm
	mem      []byte
	op       uint32
	size     int
	posted   []int64 // nanoseconds, by message
	finished []int64
	got      int64 // messages received
}

// RunPerf makes a measurement.
func (n *Net) RunPerf(ctx context.Context, c PerfConfig) (*Perf, error) {
	op, known := perfOps[c.Op]
	if !known || c.Size < 1 || c.Iters < 1 && c.Duration <= 0 {
		return nil, fmt.Errorf("verbs measurement %q of %d bytes, %d times: write, read or send, of 1 byte or more, once or more", c.Op, c.Size, c.Iters)
	}
	m := *n
	m.set.QPs = units.Some(max(c.QPs, 1))
	if c.Latency {
		m.set.QPs = units.Some(1)
	}
	a, b, err := m.perfPair(ctx, &c)
	if err != nil {
		return nil, err
	}
	a.op, b.op, a.size, b.size = op, op, c.Size, c.Size
	var p *Perf
	if c.Latency {
		p, err = latency(ctx, a, b, &c)
	} else {
		p, err = bandwidth(ctx, a, b, &c)
	}
	return p, errors.Join(err, a.close(), b.close())
}

// perfPair connects two ends with memory for the messages.
func (n *Net) perfPair(ctx context.Context, c *PerfConfig) (a, b *side, err error) {
	if min(c.From, c.To) < 0 || max(c.From, c.To) >= len(n.virt) {
		return nil, nil, fmt.Errorf("no RDMA device %d, there are %d", max(c.From, c.To), len(n.virt))
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	token, err := newToken()
	if err != nil {
		return nil, nil, err
	}
	ends, errs := [2]*side{}, make(chan error, 1)
	open := func(i, dev int, conn net.Conn) error {
		o := &opening{conn: conn, token: token, notes: 2 * c.Size, access: accessRemoteWrite | accessRemoteRead}
		if i == 1 {
			o.far = new(greeting)
			if err := hear(conn, o.far); err != nil {
				return err
			}
		}
		k, mem, err := n.open(dev, o)
		ends[i] = &side{comm: k, mem: mem}
		return err
	}
	go func() {
		conn, err := ln.Accept()
		if err == nil {
			err = open(1, c.To, conn)
		}
		errs <- err
	}()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", ln.Addr().String())
	if err == nil {
		err = open(0, c.From, conn)
	}
	return ends[0], ends[1], errors.Join(err, <-errs)
}

// work is the next message of the side on one of its QPs.
func (s *side) work(q *QP, id uint64) Work {
	return Work{ID: id, Op: s.op, Signaled: true, Local: address(s.mem), Len: s.size, Lkey: s.nics[q.nic].own.Lkey,
		Remote: s.far.Addr + uint64(s.size), Rkey: s.far.NICs[q.far].Rkey}
}

func (s *side) offer(q *QP) error {
	return q.PostRecvInto(1<<32, address(s.mem)+uintptr(s.size), s.size, s.nics[q.nic].own.Lkey)
}

// poll handles completions; sent counts own messages, by id.
func (s *side) poll(sent func(id uint64)) (n int, err error) {
	for i, c := range s.nics {
		wcs, err := c.cq.Poll()
		if err != nil {
			return 0, err
		}
		for j := range wcs {
			wc := &wcs[j]
			q := s.qp(i, wc.qpNum)
			if wc.status != statusSuccess {
				return 0, q.failure(opcodes[s.op], wc)
			}
			if wc.wrID != 1<<32 {
				sent(wc.wrID)
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

// bandwidth keeps every QP's window full in one direction or both.
func bandwidth(ctx context.Context, a, b *side, c *PerfConfig) (*Perf, error) {
	var ended atomic.Int32
	senders := int32(1)
	if c.Bidirectional {
		senders = 2
	}
	if a.op == opSend {
		for _, s := range []*side{a, b} {
			for _, q := range s.qps {
				for range window {
					if err := s.offer(q); err != nil {
						return nil, err
					}
				}
			}
		}
	}
	began := time.Now()
	far := make(chan error, 1)
	go func() { far <- b.stream(ctx, c, began, c.Bidirectional, &ended, senders) }()
	err := a.stream(ctx, c, began, true, &ended, senders)
	if err := errors.Join(err, <-far); err != nil {
		return nil, err
	}
	p := &Perf{Iters: len(a.finished)}
	for _, s := range []*side{a, b}[:senders] {
		last := slices.Max(s.finished)
		p.Average += float64(len(s.finished)*s.size) / float64(last) * 1e9
		p.Rate += float64(len(s.finished)) / float64(last) * 1e9
		p.Peak += s.peak()
	}
	return p, nil
}

// stream sends until the count or the time is reached, and serves receives
// until both sides have sent all.
func (s *side) stream(ctx context.Context, c *PerfConfig, began time.Time, sends bool, ended *atomic.Int32, senders int32) error {
	now := func() int64 { return time.Since(began).Nanoseconds() }
	done, alive := 0, time.Now()
	told := !sends
	for {
		more := sends && (c.Duration <= 0 && len(s.posted) < c.Iters || c.Duration > 0 && now() < c.Duration.Nanoseconds())
		for more && len(s.posted)-done < window*len(s.qps) && (c.Duration > 0 || len(s.posted) < c.Iters) {
			id := len(s.posted)
			s.posted, s.finished = append(s.posted, now()), append(s.finished, 0)
			q := s.qps[id%len(s.qps)]
			if err := q.Post(s.work(q, uint64(id))); err != nil {
				return err
			}
		}
		n, err := s.poll(func(id uint64) { s.finished[id] = now(); done++ })
		if err != nil {
			ended.Store(senders) // the other side need not wait
			return err
		}
		if n > 0 {
			alive = time.Now()
		}
		if !told && !more && done == len(s.posted) {
			told = true
			ended.Add(1)
		}
		switch {
		case ended.Load() >= senders && n == 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(alive) > stall && sends && !told:
			return fmt.Errorf("%s on %s: nothing has completed for %v", opcodes[s.op], s.nics[0].dev.Name, stall)
		}
	}
}

// peak is the best rate from the posting of one message to the completion of
// a later one, as perftest has it; of the average where there are too many.
func (s *side) peak() float64 {
	n := len(s.finished)
	if n > 5000 {
		return float64(n*s.size) / float64(slices.Max(s.finished)) * 1e9
	}
	best := 0.0
	for i := range n {
		for j := i; j < n; j++ {
			if d := s.finished[j] - s.posted[i]; d > 0 {
				best = max(best, float64((j-i+1)*s.size)/float64(d)*1e9)
			}
		}
	}
	return best
}

// latency goes back and forth (write, send), or reads one by one.
func latency(ctx context.Context, a, b *side, c *PerfConfig) (*Perf, error) {
	p := &Perf{}
	began := time.Now()
	more := func(i int) bool {
		if c.Duration > 0 {
			return time.Since(began) < c.Duration
		}
		return i < c.Iters
	}
	if a.op == opSend {
		for _, s := range []*side{a, b} {
			for range 4 {
				if err := s.offer(s.qps[0]); err != nil {
					return nil, err
				}
			}
		}
	}
	var stop atomic.Bool
	far := make(chan error, 1)
	go func() {
		var err error
		for i := int64(1); a.op != opRead && err == nil; i++ {
			if err = b.await(ctx, i, &stop); err == nil && !stop.Load() {
				err = b.strike(i)
			}
			if stop.Load() {
				break
			}
		}
		far <- err
	}()
	var err error
	for i := int64(1); err == nil && more(int(i)-1); i++ {
		from := time.Now()
		err = a.strike(i)
		if err == nil {
			err = a.await(ctx, i, nil)
		}
		d := time.Since(from)
		if a.op != opRead {
			d /= 2
		}
		p.Times = append(p.Times, d)
	}
	stop.Store(true)
	err = errors.Join(err, <-far)
	p.Iters = len(p.Times)
	slices.Sort(p.Times)
	return p, err
}

// strike posts message i, which ends in the byte of its number.
func (s *side) strike(i int64) error {
	s.mem[s.size-1] = byte(i)
	return s.qps[0].Post(s.work(s.qps[0], 0))
}

// await waits for the other side's message i (of a read: its completion), and
// takes the completions that come.
func (s *side) await(ctx context.Context, i int64, stop *atomic.Bool) error {
	limit := time.Now().Add(stall)
	read := false
	for n := 0; ; n++ {
		if _, err := s.poll(func(uint64) { read = true }); err != nil {
			return err
		}
		switch {
		case s.op == opRead && read, s.op == opSend && s.got >= i, s.op == opWrite && loadByte(&s.mem[2*s.size-1]) == byte(i),
			stop != nil && stop.Load():
			return nil
		case n%1024 == 0 && ctx.Err() != nil:
			return context.Cause(ctx)
		case n%1024 == 0 && time.Now().After(limit):
			return fmt.Errorf("%s on %s: message %d has not come for %v", opcodes[s.op], s.nics[0].dev.Name, i, stall)
		}
	}
}

// loadByte reads memory that a NIC writes; the call keeps the read in the
// caller's loop.
//
//go:noinline
func loadByte(p *byte) byte { return *p }
