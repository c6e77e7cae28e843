package bootstrap

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// peerOut is this rank's outgoing connection to one peer, opened on first use.
type peerOut struct {
	mu   sync.Mutex
	conn net.Conn
}

// mailKey identifies the queue in which a message waits: by sender and tag.
type mailKey struct {
	from int
	tag  uint32
}

// mailbox holds messages that arrived before a Recv for them.
type mailbox struct {
	mu     sync.Mutex
	cond   *sync.Cond
	mail   map[mailKey][][]byte
	open   []int  // by rank: number of incoming connections
	left   []bool // by rank: it has left
	leftAt []time.Time
	shut   bool
}

func newMailbox(n int) *mailbox {
	b := &mailbox{mail: map[mailKey][][]byte{}, open: make([]int, n), left: make([]bool, n),
		leftAt: make([]time.Time, n)}
	b.cond = sync.NewCond(&b.mu)
	return b
}

// pump moves messages from a connection into the mailbox until the connection ends.
func (b *mailbox) pump(from int, conn net.Conn) {
	b.mu.Lock()
	b.open[from]++
	b.mu.Unlock()
	for {
		f, err := readFrame(conn)
		b.mu.Lock()
		if err != nil || f.kind != frData {
			b.open[from]--
			b.cond.Broadcast()
			b.mu.Unlock()
			conn.Close()
			return
		}
		k := mailKey{from, f.tag}
		b.mail[k] = append(b.mail[k], f.payload)
		b.cond.Broadcast()
		b.mu.Unlock()
	}
}

func (b *mailbox) leave(rank int) {
	b.mu.Lock()
	if rank < len(b.left) {
		b.left[rank], b.leftAt[rank] = true, time.Now()
	}
	b.cond.Broadcast()
	b.mu.Unlock()
	// A connection from that rank that is still being set up may arrive within leaveGrace.
	time.AfterFunc(leaveGrace, b.wake)
}

// wake makes every waiter check again. It takes the lock, so that no waiter is between its check and its
// wait.
func (b *mailbox) wake() {
	b.mu.Lock()
	b.cond.Broadcast()
	b.mu.Unlock()
}

func (b *mailbox) close() {
	b.mu.Lock()
	b.shut = true
	b.cond.Broadcast()
	b.mu.Unlock()
}

// leaveGrace is how long after the news that its sender left a message may still arrive.
const leaveGrace = time.Second

// Send sends data to peer under tag; it returns when the data is in the socket, possibly before the peer
// receives it. Sends of one goroutine to one peer under one tag arrive in order.
func (c *Group) Send(peer int, tag uint32, data []byte) error {
	what := fmt.Sprintf("send to rank %d, tag %d", peer, tag)
	if peer < 0 || peer >= c.n {
		return fmt.Errorf("%s: no such rank", what)
	}
	if err := c.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if peer == c.rank {
		c.box.mu.Lock()
		k := mailKey{peer, tag}
		c.box.mail[k] = append(c.box.mail[k], append([]byte(nil), data...))
		c.box.cond.Broadcast()
		c.box.mu.Unlock()
		return nil
	}
	o := c.out[peer]
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.opt.Op)
		defer cancel()
		conn, err := c.dial(ctx, c.addrs[peer], rolePeer)
		if err != nil {
			return c.cause(what, peer, err)
		}
		o.conn = conn
	}
	o.conn.SetWriteDeadline(time.Now().Add(c.opt.Op))
	if err := writeFrame(o.conn, frame{frData, tag, data}); err != nil {
		return c.cause(what, peer, err)
	}
	return nil
}

// Recv waits for and returns the next message from peer under tag.
func (c *Group) Recv(peer int, tag uint32) ([]byte, error) {
	what := fmt.Sprintf("receive from rank %d, tag %d", peer, tag)
	if peer < 0 || peer >= c.n {
		return nil, fmt.Errorf("%s: no such rank", what)
	}
	b, k := c.box, mailKey{peer, tag}
	limit := time.Now().Add(c.opt.Op)
	t := time.AfterFunc(c.opt.Op+time.Millisecond, b.wake)
	defer t.Stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if q := b.mail[k]; len(q) > 0 {
			m := q[0]
			if b.mail[k] = q[1:]; len(q) == 1 {
				delete(b.mail, k)
			}
			return m, nil
		}
		switch {
		case b.shut:
			return nil, fmt.Errorf("%s: %w", what, c.Err())
		case b.left[peer] && b.open[peer] == 0 && time.Since(b.leftAt[peer]) >= leaveGrace:
			return nil, fmt.Errorf("%s: %w", what, &LeftError{peer})
		case !time.Now().Before(limit):
			return nil, &TimeoutError{What: what, Ranks: []int{peer}}
		}
		b.cond.Wait()
	}
}
