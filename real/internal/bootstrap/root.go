package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/simccl/simccl/real/internal/psk"
	"github.com/simccl/simccl/real/internal/transport"
)

// Root is the meeting point of the ranks. It runs in the process of rank 0 and, after the ring is built,
// watches the ranks: it learns first which one died and informs all others.
type Root struct {
	id     ID
	n      int
	opt    Options
	ln     net.Listener
	gate   *psk.Gate
	mu     sync.Mutex
	member []*member // by rank; nil until it reported
	open   int       // members that have neither left nor died
	joined int
	failed *verdict      // what ended the communicator; nil: nothing yet
	done   chan struct{} // closed when no member remains, or the join failed
	once   sync.Once
}

// member is the root's record of one rank.
type member struct {
	conn   net.Conn
	addr   string
	wmu    sync.Mutex
	closed bool
}

func (m *member) send(f frame) {
	m.wmu.Lock()
	defer m.wmu.Unlock()
	m.conn.SetWriteDeadline(time.Now().Add(frameTime))
	// An error here also shows on the reading side of the same connection.
	_ = writeFrame(m.conn, f)
}

// NewRoot listens on addr ("host:0" for any port) for nRanks ranks and serves them until all have left. The
// ranks join with the returned Root's ID.
func NewRoot(addr string, nRanks int, secret [secretSize]byte, opt Options) (*Root, error) {
	if nRanks < 1 {
		return nil, fmt.Errorf("bootstrap root: %d ranks; need at least 1", nRanks)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bootstrap root: listen on %s: %w", addr, err)
	}
	r := &Root{id: ID{Addr: ln.Addr().String(), Secret: secret}, n: nRanks, opt: opt.withDefaults(),
		ln: ln, gate: psk.NewGate(secret[:]), member: make([]*member, nRanks), done: make(chan struct{})}
	go r.accept()
	go r.joinLimit()
	return r, nil
}

// ID returns the ID with which ranks join.
func (r *Root) ID() ID { return r.id }

// Wait returns when every rank has left or died, or ctx ends.
func (r *Root) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the root immediately; for ranks that are still joined, rank 0 has died.
func (r *Root) Close() error {
	err := r.ln.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.member {
		if m != nil {
			m.conn.Close()
		}
	}
	r.finish()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (r *Root) finish() { r.once.Do(func() { close(r.done) }) }

// accept serves new connections until the listener closes. All ranks, and unknown peers, may connect at once.
func (r *Root) accept() { _ = transport.Serve(r.ln, r.n, r.admit) }

// admit authenticates a connection and registers its rank; the last rank to join starts the ring. It then
// watches the rank until it leaves or dies.
func (r *Root) admit(raw net.Conn, known func()) {
	c, g, err := welcome(raw, r.gate, known)
	if err != nil || g.role != roleControl {
		raw.Close()
		return
	}
	c.SetReadDeadline(time.Now().Add(frameTime))
	f, err := readFrame(c)
	if err != nil || f.kind != frReport {
		c.Close()
		return
	}
	m := &member{conn: c, addr: string(f.payload)}
	if v := r.enter(m, g); v != nil {
		m.send(v.frame(frVerdict))
		c.Close()
		return
	}
	r.watch(int(g.rank), m)
}

// enter registers the member and returns why it is refused, or nil.
func (r *Root) enter(m *member, g greeting) *verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	mismatch := func(format string, args ...any) *verdict {
		return &verdict{Kind: kindMismatch, Rank: int(g.rank), Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case int(g.nRanks) != r.n:
		return mismatch("rank %d expects %d ranks, the root %d", g.rank, g.nRanks, r.n)
	case int(g.rank) >= r.n:
		return mismatch("rank %d is outside 0..%d", g.rank, r.n-1)
	case r.member[g.rank] != nil:
		return mismatch("rank %d reported twice", g.rank)
	case r.failed != nil:
		return r.failed
	}
	r.member[g.rank] = m
	r.joined++
	r.open++
	if r.joined == r.n {
		for i, m := range r.member {
			go m.send(frame{kind: frSuccessor, payload: []byte(r.member[(i+1)%r.n].addr)})
		}
	}
	return nil
}

// joinLimit ends the join when its time is over, naming the ranks that have not reported.
func (r *Root) joinLimit() {
	t := time.NewTimer(r.opt.Join)
	defer t.Stop()
	select {
	case <-r.done:
		return
	case <-t.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.joined == r.n || r.failed != nil {
		return
	}
	v := verdict{Kind: kindTimeout, Text: "bootstrap"}
	for i, m := range r.member {
		if m == nil {
			v.Ranks = append(v.Ranks, i)
		}
	}
	if n := r.gate.Refused(); n > 0 {
		v.Text = fmt.Sprintf("bootstrap (%d connections came with another secret)", n)
	}
	r.failed = &v
	for _, m := range r.member {
		if m != nil {
			go m.send(v.frame(frVerdict))
		}
	}
	if r.open == 0 {
		r.finish()
	}
}

// watch reads a member's heartbeats until it leaves, aborts or dies.
func (r *Root) watch(rank int, m *member) {
	stop := make(chan struct{})
	defer close(stop)
	go pings(stop, r.opt.Ping, func() { m.send(frame{kind: frPing}) })
	for {
		m.conn.SetReadDeadline(time.Now().Add(r.opt.Silence))
		f, err := readFrame(m.conn)
		switch {
		case err != nil:
			r.remove(rank, m, &verdict{Kind: kindDead, Rank: rank, Text: deathReason(err, r.opt.Silence)})
			return
		case f.kind == frBye:
			r.remove(rank, m, nil)
			return
		case f.kind == frAbort:
			v := readVerdict(f.payload)
			v.Rank = rank // not the rank that the payload claims
			r.remove(rank, m, &v)
			return
		}
	}
}

// remove removes a member and informs the others why; v is nil if it left in order.
func (r *Root) remove(rank int, m *member, v *verdict) {
	m.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	r.open--
	f := frame{kind: frLeft, tag: uint32(rank)}
	if v != nil {
		if r.failed == nil {
			r.failed = v
		}
		// Ranks that received the verdict close too. Their closing is an echo of it, and must not overtake
		// the verdict on its way to other ranks.
		f = r.failed.frame(frVerdict)
	}
	for i, o := range r.member {
		if i != rank && o != nil && !o.closed {
			go o.send(f)
		}
	}
	if r.open == 0 && (r.joined == r.n || r.failed != nil) {
		r.ln.Close()
		r.finish()
	}
}

func deathReason(err error, silence time.Duration) string {
	var ne net.Error
	if errors.As(err, &ne) && ne.Timeout() {
		return fmt.Sprintf("no sign of life for %v", silence)
	}
	return "the connection between it and the root closed without a goodbye message"
}

// pings calls f at every interval until stop is closed.
func pings(stop <-chan struct{}, every time.Duration, f func()) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			f()
		}
	}
}
