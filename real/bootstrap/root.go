package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Root is the meeting point. It lives in the process of rank 0 and, after the
// ring stands, watches over the ranks: it learns first who died and tells all.
type Root struct {
	id     ID
	n      int
	opt    Options
	ln     net.Listener
	mu     sync.Mutex
	member []*member // by rank; nil until it reported
	open   int       // members that neither left nor died
	joined int
	failed *frame        // the verdict that ended the communicator, if any
	done   chan struct{} // closed when no member is left, or the join failed
	once   sync.Once
}

// member is the root's view of one rank.
type member struct {
	conn   net.Conn
	addr   string
	wmu    sync.Mutex
	closed bool
}

func (m *member) send(f frame) {
	m.wmu.Lock()
	defer m.wmu.Unlock()
	m.conn.SetWriteDeadline(time.Now().Add(handshakeTime))
	// An error here shows on the reading side of the same connection.
	_ = writeFrame(m.conn, f)
}

// NewRoot listens on addr ("host:0" for any port) for nRanks ranks and serves
// them until all have left. The returned ID is what the ranks need.
func NewRoot(addr string, nRanks int, secret [secretSize]byte, opt Options) (*Root, error) {
	if nRanks < 1 {
		return nil, fmt.Errorf("bootstrap root: %d ranks; need at least 1", nRanks)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("bootstrap root: listen on %s: %w", addr, err)
	}
	r := &Root{id: ID{Addr: ln.Addr().String(), Secret: secret}, n: nRanks, opt: opt.withDefaults(),
		ln: ln, member: make([]*member, nRanks), done: make(chan struct{})}
	go r.accept()
	go r.joinLimit()
	return r, nil
}

// ID returns what the ranks need to join.
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

// Close ends the root at once; ranks still joined see rank 0 die.
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

func (r *Root) accept() {
	for {
		c, err := r.ln.Accept()
		if err != nil {
			return
		}
		go r.admit(c)
	}
}

// admit checks a newcomer and, when the last has come, releases the ring.
func (r *Root) admit(c net.Conn) {
	g, err := welcome(c, r.id.Secret)
	if err != nil || g.role != roleControl {
		c.Close()
		return
	}
	c.SetReadDeadline(time.Now().Add(handshakeTime))
	f, err := readFrame(c)
	if err != nil || f.kind != frReport {
		c.Close()
		return
	}
	m := &member{conn: c, addr: string(f.payload)}
	if why := r.enter(m, g); why != "" {
		m.send(frame{kind: frRefuse, payload: []byte(why)})
		c.Close()
		return
	}
	r.watch(int(g.rank), m)
}

// enter books the member and returns a reason to refuse it, or "".
func (r *Root) enter(m *member, g greeting) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case int(g.nRanks) != r.n:
		return fmt.Sprintf("rank %d expects %d ranks, the root %d", g.rank, g.nRanks, r.n)
	case int(g.rank) >= r.n:
		return fmt.Sprintf("rank %d is outside 0..%d", g.rank, r.n-1)
	case r.member[g.rank] != nil:
		return fmt.Sprintf("rank %d reported twice", g.rank)
	case r.failed != nil:
		return "the communicator has already failed: " + string(r.failed.payload)
	}
	r.member[g.rank] = m
	r.joined++
	r.open++
	if r.joined == r.n {
		for i, m := range r.member {
			go m.send(frame{kind: frSuccessor, payload: []byte(r.member[(i+1)%r.n].addr)})
		}
	}
	return ""
}

// joinLimit ends the wait for ranks that never report, naming them.
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
	if r.joined == r.n {
		return
	}
	var missing []int
	for i, m := range r.member {
		if m == nil {
			missing = append(missing, i)
		}
	}
	e := &TimeoutError{What: "bootstrap", Ranks: missing}
	r.failed = &frame{kind: frRefuse, payload: []byte(e.Error())}
	for _, m := range r.member {
		if m != nil {
			go m.send(*r.failed)
		}
	}
	if r.open == 0 {
		r.finish()
	}
}

// watch reads a member's signs of life until it leaves, aborts or dies.
func (r *Root) watch(rank int, m *member) {
	stop := make(chan struct{})
	defer close(stop)
	go pings(stop, r.opt.Ping, func() { m.send(frame{kind: frPing}) })
	for {
		m.conn.SetReadDeadline(time.Now().Add(r.opt.Silence))
		f, err := readFrame(m.conn)
		switch {
		case err != nil:
			r.gone(rank, m, frame{kind: frDead, tag: uint32(rank), payload: []byte(deathReason(err, r.opt.Silence))})
			return
		case f.kind == frBye:
			r.gone(rank, m, frame{kind: frLeft, tag: uint32(rank)})
			return
		case f.kind == frAbort:
			r.gone(rank, m, frame{kind: frGone, tag: uint32(rank), payload: f.payload})
			return
		}
	}
}

// gone strikes a member off and tells the others why.
func (r *Root) gone(rank int, m *member, f frame) {
	m.conn.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.closed {
		return
	}
	m.closed = true
	r.open--
	switch {
	case f.kind == frLeft:
	case r.failed == nil:
		r.failed = &f
	default:
		// Ranks that heard the verdict close too; that is its echo, and must
		// not overtake it on the way to those who have not heard it yet.
		f = *r.failed
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
	return "its connection to the root closed without a farewell"
}

// pings calls f at every interval until stop closes.
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
