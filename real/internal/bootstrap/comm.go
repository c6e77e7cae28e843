package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/simccl/simccl/real/internal/psk"
)

// Group is one rank's membership. Its methods may be called from several goroutines; all ranks must call
// AllGather and Barrier in the same order, like any collective.
type Group struct {
	rank, n int
	id      ID
	opt     Options
	ln      net.Listener
	gate    *psk.Gate
	control net.Conn
	cmu     sync.Mutex // guards writes on control

	next, prev net.Conn
	ringMu     sync.Mutex
	ringSeq    uint32
	prevCh     chan net.Conn // the predecessor's connection, once accepted

	addrs []string // by rank
	out   []*peerOut
	box   *mailbox

	succ   chan string
	err    atomic.Pointer[error]
	failed chan struct{} // closed at the first failure
	once   sync.Once
	closed atomic.Bool
	stop   chan struct{}
	ended  sync.Once // guards closing stop
	conns  connSet
}

// connSet holds connections, so that a failure can wake all their waiters by closing them.
type connSet struct {
	mu   sync.Mutex
	all  []net.Conn
	shut bool
}

func (s *connSet) add(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut {
		c.Close()
		return
	}
	s.all = append(s.all, c)
}

func (s *connSet) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut = true
	for _, c := range s.all {
		c.Close()
	}
}

// frameTime bounds the time to write a control frame.
const frameTime = 5 * time.Second

// Join reports to the root, waits for all ranks, and builds the ring. Errors: a *TimeoutError naming the
// missing ranks, ErrRefused, the error of the root's verdict, or ctx's cause, which it reports to the others.
func Join(ctx context.Context, id ID, rank, nRanks int, opt Options) (*Group, error) {
	if rank < 0 || rank >= nRanks {
		return nil, fmt.Errorf("bootstrap: rank %d is outside 0..%d", rank, nRanks-1)
	}
	c := &Group{rank: rank, n: nRanks, id: id, opt: opt.withDefaults(), gate: psk.NewGate(id.Secret[:]),
		prevCh: make(chan net.Conn, 1), succ: make(chan string, 1),
		failed: make(chan struct{}), stop: make(chan struct{}), out: make([]*peerOut, nRanks)}
	for i := range c.out {
		c.out[i] = &peerOut{}
	}
	c.box = newMailbox(nRanks)
	limited, cancel := context.WithTimeout(ctx, c.opt.Join+psk.HandshakeTime)
	defer cancel()
	if err := c.join(limited); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			c.giveUp(err)
		}
		c.shutdown()
		return nil, fmt.Errorf("bootstrap: rank %d: %w", rank, err)
	}
	return c, nil
}

func (c *Group) join(ctx context.Context) error {
	control, err := c.dial(ctx, c.id.Addr, roleControl)
	if err != nil {
		return fmt.Errorf("report to the root at %s: %w", c.id.Addr, err)
	}
	c.control = control
	host := c.opt.Host
	if host == "" {
		host, _, err = net.SplitHostPort(control.LocalAddr().String())
		if err != nil {
			return err
		}
	}
	if c.ln, err = net.Listen("tcp", net.JoinHostPort(host, "0")); err != nil {
		return fmt.Errorf("listen on %s: %w", host, err)
	}
	go c.accept()
	if err := c.send(frame{kind: frReport, payload: []byte(c.ln.Addr().String())}); err != nil {
		return fmt.Errorf("report to the root: %w", err)
	}
	go c.watch()
	go pings(c.stop, c.opt.Ping, func() { _ = c.send(frame{kind: frPing}) })
	var succ string
	select {
	case succ = <-c.succ:
	case <-c.failed:
		return *c.err.Load()
	case <-ctx.Done():
		return &TimeoutError{What: "wait for all ranks to report"}
	}
	return c.buildRing(ctx, succ)
}

// dialTries is the number of attempts to make a connection that is cut during its handshake: a root with too
// many unauthenticated connections drops the oldest of them.
const dialTries = 8

// dial connects with retries, since the other side may not listen yet.
func (c *Group) dial(ctx context.Context, addr string, as role) (net.Conn, error) {
	var d net.Dialer
	tries := 0
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err == nil {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			var safe net.Conn
			safe, err = greet(conn, c.id.Secret, greeting{as, uint32(c.rank), uint32(c.n)})
			stop()
			if err == nil {
				c.conns.add(safe)
				return safe, nil
			}
			conn.Close()
			switch tries++; {
			case errors.Is(err, ErrRefused) || ctx.Err() != nil:
				return nil, err
			case !errors.Is(err, psk.ErrCut) || tries == dialTries:
				return nil, fmt.Errorf("%w: %w", ErrNoRank, err)
			}
		} else if wrong := (*net.AddrError)(nil); errors.As(err, &wrong) {
			return nil, err // an address without a port never becomes valid
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-c.failed:
			return nil, *c.err.Load()
		case <-time.After(wait):
		}
	}
}

func (c *Group) send(f frame) error {
	c.cmu.Lock()
	defer c.cmu.Unlock()
	c.control.SetWriteDeadline(time.Now().Add(frameTime))
	return writeFrame(c.control, f)
}

// watch reads the root's messages: first the successor's address, then news of the other ranks.
func (c *Group) watch() {
	for {
		c.control.SetReadDeadline(time.Now().Add(c.opt.Silence))
		f, err := readFrame(c.control)
		if err != nil {
			c.fail(&DeadError{Rank: 0, Reason: deathReason(err, c.opt.Silence), Root: true})
			return
		}
		switch f.kind {
		case frSuccessor:
			select {
			case c.succ <- string(f.payload):
			default:
			}
		case frVerdict:
			v := readVerdict(f.payload)
			c.fail(v.err())
			return
		case frLeft:
			c.box.leave(int(f.tag))
		}
	}
}

// fail records the first failure and wakes every waiter.
func (c *Group) fail(err error) {
	c.once.Do(func() {
		if c.closed.Load() {
			err = net.ErrClosed
		}
		c.err.Store(&err)
		close(c.failed)
		c.conns.closeAll()
		c.box.close()
	})
}

// Failed returns a channel that is closed when the communicator fails; Err then returns the reason.
func (c *Group) Failed() <-chan struct{} { return c.failed }

// Err returns the error with which the communicator failed, or nil.
func (c *Group) Err() error {
	if e := c.err.Load(); e != nil {
		return *e
	}
	return nil
}

// Addr returns the address at which the others reach this rank.
func (c *Group) Addr() string { return c.ln.Addr().String() }

// Rank returns this rank's number.
func (c *Group) Rank() int { return c.rank }

// Size returns the number of ranks.
func (c *Group) Size() int { return c.n }

// Abort informs all ranks that this one gives up, and why: a cause that carries a signal is reported as an
// interruption.
func (c *Group) Abort(cause error) {
	c.giveUp(cause)
	c.shutdown()
}

func (c *Group) giveUp(cause error) {
	v := verdictOf(c.rank, cause)
	if c.control != nil && c.Err() == nil {
		_ = c.send(v.frame(frAbort))
	}
	c.fail(v.err())
}

// Close leaves in order. The process that hosts the Root must call Root.Wait afterwards, so that the others
// are not cut off.
func (c *Group) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	_ = c.send(frame{kind: frBye})
	c.shutdown()
	return nil
}

func (c *Group) shutdown() {
	c.closed.Store(true)
	c.ended.Do(func() { close(c.stop) })
	if c.ln != nil {
		c.ln.Close()
	}
	c.fail(net.ErrClosed)
}

// cause converts the error of a broken wait to its reason: when a peer's connection breaks, the root's
// verdict arrives shortly afterwards.
func (c *Group) cause(what string, peer int, err error) error {
	grace := time.NewTimer(c.opt.Silence + time.Second)
	defer grace.Stop()
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		if e := c.Err(); e != nil {
			return fmt.Errorf("%s: %w", what, e)
		}
		return &TimeoutError{What: what, Ranks: []int{peer}}
	}
	select {
	case <-c.failed:
		return fmt.Errorf("%s: %w", what, c.Err())
	case <-grace.C:
		return fmt.Errorf("%s: rank %d: %w", what, peer, err)
	}
}
