package ibv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"time"

	"github.com/simccl/simccl/real/internal/psk"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
	"github.com/simccl/simccl/units"
)

// PerfConfig is one measurement between two ports: that of perftest's ib_write_bw, ib_read_bw, ib_send_bw and
// their _lat counterparts, or NCCL's pattern.
type PerfConfig struct {
	Op            string // write, read, send or nccl
	Size          int    // bytes of a message
	Iters         int
	Duration      time.Duration // instead of Iters, if set
	QPs           int           // bandwidth only
	TxDepth       int           // messages in flight per QP, 1 to 512; bandwidth only, not for nccl
	Bidirectional bool          // bandwidth only
	Latency       bool
	NoPeak        bool
}

// OpNCCL is NCCL's use of verbs, instead of one bare operation.
const OpNCCL = "nccl"

var perfOps = map[string]uint32{"write": verbs.OpWrite, "read": verbs.OpRead, "send": verbs.OpSend,
	OpNCCL: verbs.OpWriteImm}

func (c *PerfConfig) check() error {
	if _, known := perfOps[c.Op]; !known || c.Size < 1 || c.Iters < 1 && c.Duration <= 0 {
		return fmt.Errorf("verbs measurement %q of %d bytes, %d times: write, read, send or nccl, of 1 "+
			"byte or more, once or more", c.Op, c.Size, c.Iters)
	}
	if c.QPs < 1 || c.QPs > maxQPs || c.TxDepth < 1 || c.TxDepth > 2*maxRequests {
		return fmt.Errorf("verbs measurement over %d queue pairs with %d messages in flight: 1 to %d, and "+
			"1 to %d", c.QPs, c.TxDepth, maxQPs, 2*maxRequests)
	}
	return nil
}

// more reports whether message i is still to be sent; since is the time since the start.
func (c *PerfConfig) more(i int, since time.Duration) bool {
	if c.Duration > 0 {
		return since < c.Duration
	}
	return i < c.Iters
}

// Perf is the result of a measurement.
type Perf struct {
	Iters int
	// Bandwidths in bytes per second, messages per second; with Bidirectional the sums of both directions.
	// Peak is 0 if not determined.
	Peak, Average, Rate float64
	// Times of single messages, sorted: half a round trip for write and send, a whole one for read.
	Times []time.Duration
}

// add adds the other direction's result.
func (p *Perf) add(q *Perf) {
	p.Iters = max(p.Iters, q.Iters)
	p.Peak, p.Average, p.Rate = p.Peak+q.Peak, p.Average+q.Average, p.Rate+q.Rate
	p.Times = append(p.Times, q.Times...)
	slices.Sort(p.Times)
}

// Typical returns the median of the times.
func (p *Perf) Typical() time.Duration { return p.Percentile(50) }

// Percentile returns the time within which pc percent of the messages stay.
func (p *Perf) Percentile(pc float64) time.Duration {
	return p.Times[min(len(p.Times)-1, int(math.Ceil(float64(len(p.Times))*pc/100)))]
}

// Mean returns the average time and its standard deviation.
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

// stall is the time without a completion after which a measurement fails.
const stall = 30 * time.Second

// call is a client's first message: it opens a measurement. Without an operation it ends the service.
type call struct{ PerfConfig }

// bandwidth returns the rates of the messages that the side has sent.
func (s *side) bandwidth() *Perf {
	if len(s.finished) == 0 {
		return &Perf{}
	}
	n, last := float64(len(s.finished)), float64(slices.Max(s.finished))
	p := &Perf{Iters: len(s.finished), Average: n * float64(s.c.Size) / last * 1e9, Rate: n / last * 1e9}
	if !s.c.NoPeak && s.c.Duration <= 0 && len(s.finished) <= mostForPeak {
		p.Peak = s.peak()
	}
	return p
}

// mostForPeak is the largest number of messages for which perftest searches the peak.
const mostForPeak = 20_000

// peak returns the best rate from the posting of one message to the completion of a later one, as perftest
// does.
func (s *side) peak() float64 {
	best := 0.0
	for i := range s.finished {
		for j := i; j < len(s.finished); j++ {
			if d := s.finished[j] - s.posted[i]; d > 0 {
				best = max(best, float64(j-i+1)/float64(d))
			}
		}
	}
	return best * float64(s.c.Size) * 1e9
}

// ServePerf takes part in clients' measurements with a device, one after another, until a client ends the
// service or ctx ends. It refuses clients that do not prove the secret. report, if not nil, is called after
// each measurement.
func (n *Net) ServePerf(ctx context.Context, ln *net.TCPListener, dev int, secret []byte,
	report func(PerfConfig, error)) error {
	type caller struct {
		conn net.Conn
		call
	}
	gate := psk.NewGate(secret)
	check := func(c net.Conn, known func()) (w caller, err error) {
		if w.conn, _, err = gate.Admit(c, known); err == nil {
			err = readLine(w.conn, &w.call)
		}
		return w, err
	}
	return transport.Admit(ctx, ln, setupTime, check, func(_ net.Conn, w caller) (ended bool) {
		if w.Op == "" {
			w.conn.Close()
			return true
		}
		_, err := n.perform(ctx, w.conn, dev, w.PerfConfig, false)
		if report != nil {
			report(w.PerfConfig, err)
		}
		return false
	})
}

// Perf makes a measurement with the server at an address.
func (n *Net) Perf(ctx context.Context, addr string, dev int, secret []byte, c PerfConfig) (*Perf, error) {
	conn, err := dialPerf(ctx, addr, secret, call{c})
	if err != nil {
		return nil, err
	}
	return n.perform(ctx, conn, dev, c, true)
}

// EndPerf informs the server that the measurements are complete.
func EndPerf(ctx context.Context, addr string, secret []byte) error {
	conn, err := dialPerf(ctx, addr, secret, call{})
	if err != nil {
		return err
	}
	return conn.Close()
}

func dialPerf(ctx context.Context, addr string, secret []byte, w call) (net.Conn, error) {
	if w.Op != "" {
		if err := w.check(); err != nil {
			return nil, err
		}
	}
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil,
			fmt.Errorf("no server to measure with (bench verbs --serve --listen ADDRESS starts one): %w", err)
	}
	_ = raw.SetDeadline(time.Now().Add(setupTime))
	conn, err := psk.Dial(raw, secret, nil)
	if err == nil {
		err = writeLine(conn, &w)
	}
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("server at %s: %w", addr, err)
	}
	_ = raw.SetDeadline(time.Time{})
	return conn, nil
}

// RunPerf makes a measurement between two devices of this machine.
func (n *Net) RunPerf(ctx context.Context, from, to int, c PerfConfig) (*Perf, error) {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer ln.Close()
	key, err := transport.NewKey()
	if err != nil {
		return nil, err
	}
	secret := key[:]
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := n.ServePerf(ctx, ln, to, secret, func(_ PerfConfig, err error) {
			if err != nil {
				served <- err
			}
		})
		if err != nil && ctx.Err() == nil {
			served <- err
		}
	}()
	p, err := n.Perf(ctx, ln.Addr().String(), from, secret, c)
	if err == nil {
		return p, EndPerf(ctx, ln.Addr().String(), secret)
	}
	select {
	case e := <-served:
		err = errors.Join(err, e)
	case <-time.After(time.Second):
	}
	return nil, err
}

// perform is one side's part in a measurement. The client returns the result.
func (n *Net) perform(ctx context.Context, conn net.Conn, dev int, c PerfConfig, client bool) (p *Perf,
	err error) {
	defer conn.Close()
	if err := c.check(); err != nil {
		return nil, err
	}
	if dev < 0 || dev >= len(n.virt) {
		return nil, fmt.Errorf("no RDMA device %d, there are %d", dev, len(n.virt))
	}
	// A broken wait must not outlive the measurement's end.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	m := *n
	// The address at which the peer reached this side also reaches its listeners.
	if m.set.Host, _, err = net.SplitHostPort(conn.LocalAddr().String()); err != nil {
		return nil, err
	}
	m.set.QPs = units.Some(c.QPs)
	if c.Latency {
		m.set.QPs, c.Bidirectional = units.Some(1), false
	}
	var t *control
	if c.Op == OpNCCL {
		t = newControl(conn)
		p, err = m.pattern(ctx, t, dev, &c, client)
	} else {
		p, t, err = m.bare(ctx, conn, dev, &c, client)
	}
	if t == nil {
		return nil, err
	}
	return t.settle(p, err, client)
}

// note is a control message between the sides.
type note struct {
	Ready  bool
	Ended  bool   // no more messages follow; for nccl, no more are accepted
	Count  int    // with Ended: number of messages offered
	Handle []byte // for nccl: the receiver's handle
	Perf   *Perf
	Err    string
}

// control is the control connection of two sides.
type control struct {
	conn   net.Conn
	far    chan note // closed when the peer disconnects
	result *Perf     // the peer's; it may arrive before this side has ended
}

func newControl(conn net.Conn) *control {
	t := &control{conn: conn, far: make(chan note, 16)}
	go func() {
		defer close(t.far)
		for in := json.NewDecoder(conn); ; {
			var w note
			if in.Decode(&w) != nil {
				return
			}
			t.far <- w
		}
	}()
	return t
}

var errPeerEnded = errors.New("the peer ended the measurement")

// next waits for the peer's next note, when this side has nothing else to do.
func (t *control) next() (note, error) {
	select {
	case w, ok := <-t.far:
		return w, w.fault(ok)
	case <-time.After(stall):
		return note{}, fmt.Errorf("the peer has not answered for %v", stall)
	}
}

func (w *note) fault(ok bool) error {
	switch {
	case !ok:
		return errPeerEnded
	case w.Err != "":
		return fmt.Errorf("the peer says: %s", w.Err)
	}
	return nil
}

// poll returns the next note if there is one. A side that still handles completions after the peer has ended
// may receive the peer's result, which is stored for settle.
func (t *control) poll() (w note, err error) {
	select {
	case w, ok := <-t.far:
		if w.Perf != nil {
			t.result = w.Perf
		}
		return w, w.fault(ok)
	default:
		return note{}, nil
	}
}

// meet waits until both sides are ready.
func (t *control) meet() error {
	if err := writeLine(t.conn, &note{Ready: true}); err != nil {
		return err
	}
	w, err := t.next()
	if err == nil && !w.Ready {
		err = errors.New("the peer is not ready")
	}
	return err
}

// settle returns both sides' results to the client, and nothing to the server.
func (t *control) settle(p *Perf, err error, client bool) (*Perf, error) {
	if err != nil {
		_ = writeLine(t.conn, &note{Err: err.Error()})
		return nil, err
	}
	if !client {
		if err := writeLine(t.conn, &note{Perf: p}); err != nil {
			return nil, err
		}
		// The client disconnects when it has the result.
		if w, err := t.next(); err != errPeerEnded {
			return nil, errors.Join(err, w.fault(true))
		}
		return nil, nil
	}
	if t.result == nil {
		w, err := t.next()
		if err == nil && w.Perf == nil {
			err = errors.New("the peer sent no result")
		}
		if err != nil {
			return nil, err
		}
		t.result = w.Perf
	}
	p.add(t.result)
	return p, nil
}
