package sock

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/simccl/simccl/real/internal/transport"
)

// maxRequests is the largest number of outstanding requests of a connection (nccl_net.h,
// NCCL_NET_MAX_REQUESTS).
const maxRequests = 32

// ErrPeerClosed says that the other side closed the connection, or its process ended.
var ErrPeerClosed = errors.New("the peer closed the connection")

// conn is one direction of a connection. One goroutine serves the control socket, message after message;
// helpers serve the data sockets. Both sides assign parts of a message to sockets in the same order.
type conn struct {
	inv     invitation
	send    bool
	socks   []net.Conn // the last is the control socket
	peer    string
	reqs    [maxRequests]request
	queue   chan *request
	helper  []chan task
	next    int // data socket of the next part
	msg     []byte
	err     atomic.Pointer[error]
	closing chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
	report  func(transport.Work) // called by the thread that posts and tests; nil: not watched
	watched atomic.Bool          // report is set, for the goroutines that serve the sockets
}

// task is the part of a message that one data socket transfers.
type task struct {
	r    *request
	sock int
	part []byte
	seen *seen
}

// States of a request.
const (
	idle = iota
	busy
)

type request struct {
	c     *conn
	state int // owned by the caller of Isend, Irecv and Test
	tag   int32
	buf   []byte
	size  int          // of the message, once known
	left  atomic.Int32 // outstanding parts, and one for the control socket
	sizes [1]int
	seen  []*seen // what sockets did for it, if watched
}

func newConn(socks []net.Conn, inv *invitation, send bool) *conn {
	c := &conn{inv: *inv, send: send, socks: socks, peer: socks[0].RemoteAddr().String(),
		queue:   make(chan *request, maxRequests),
		closing: make(chan struct{}), msg: make([]byte, header+inv.Inline)}
	for i := range c.reqs {
		c.reqs[i].c = c
	}
	for range inv.Threads {
		q := make(chan task, maxRequests*(inv.Socks/inv.Threads+1))
		c.helper = append(c.helper, q)
		c.wg.Go(func() { c.help(q) })
	}
	c.wg.Go(c.serve)
	return c
}

// fail ends every request with the first error.
func (c *conn) fail(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = ErrPeerClosed
	}
	err = fmt.Errorf("socket connection with %s: %w", c.peer, err)
	c.err.CompareAndSwap(nil, &err)
	c.once.Do(func() {
		close(c.closing)
		for _, s := range c.socks {
			s.Close()
		}
	})
}

func (c *conn) failure() error {
	if e := c.err.Load(); e != nil {
		return *e
	}
	return nil
}

// serve sends or receives each message's size, and the inline part with it.
func (c *conn) serve() {
	for {
		select {
		case <-c.closing:
			return
		case r := <-c.queue:
			var err error
			if c.send {
				err = c.give(r)
			} else {
				err = c.take(r)
			}
			if err == nil {
				err = c.rest(r)
			}
			if err != nil {
				c.fail(err)
				return
			}
		}
	}
}

func (c *conn) control() net.Conn { return c.socks[len(c.socks)-1] }

// inline returns how many bytes of a message travel with its size.
func (c *conn) inline(size int) int {
	if size <= c.inv.Inline {
		return size
	}
	return 0
}

func (c *conn) give(r *request) error {
	binary.LittleEndian.PutUint32(c.msg, uint32(r.size))
	n := copy(c.msg[header:], r.buf[:c.inline(r.size)])
	seen := c.begin(r, len(c.socks)-1, header+n)
	_, err := c.control().Write(c.msg[:header+n])
	seen.end()
	return err
}

func (c *conn) take(r *request) error {
	if _, err := io.ReadFull(c.control(), c.msg[:header]); err != nil {
		return err
	}
	r.size = int(binary.LittleEndian.Uint32(c.msg))
	if r.size > len(r.buf) {
		return &transport.TruncatedError{Tag: r.tag, Sent: r.size, Room: len(r.buf)}
	}
	seen := c.begin(r, len(c.socks)-1, header+c.inline(r.size))
	_, err := io.ReadFull(c.control(), r.buf[:c.inline(r.size)])
	seen.end()
	return err
}

// rest moves the part of a message that is not inline: split over the data sockets, or over the control
// socket if there are none (net_socket.cc:573).
func (c *conn) rest(r *request) error {
	left := r.buf[c.inline(r.size):r.size]
	if len(left) > 0 && len(c.helper) == 0 {
		seen := c.begin(r, len(c.socks)-1, len(left))
		if err := c.move(c.control(), left); err != nil {
			return err
		}
		seen.end()
		left = nil
	}
	part := len(left)
	if c.inv.Socks > 0 {
		part = max(c.inv.MinTask, (len(left)+c.inv.Socks-1)/c.inv.Socks)
	}
	for len(left) > 0 {
		n := min(part, len(left))
		r.left.Add(1)
		select {
		case c.helper[c.next%c.inv.Threads] <- task{r, c.next, left[:n], c.begin(r, c.next, n)}:
		case <-c.closing:
			return transport.ErrClosed
		}
		c.next = (c.next + 1) % c.inv.Socks
		left = left[n:]
	}
	r.left.Add(-1)
	return nil
}

func (c *conn) move(s net.Conn, b []byte) (err error) {
	if c.send {
		_, err = s.Write(b)
	} else {
		_, err = io.ReadFull(s, b)
	}
	return err
}

func (c *conn) help(q chan task) {
	for {
		select {
		case <-c.closing:
			return
		case t := <-q:
			if err := c.move(c.socks[t.sock], t.part); err != nil {
				c.fail(err)
				return
			}
			t.seen.end()
			t.r.left.Add(-1)
		}
	}
}

// post queues a request; nil without error means that too many are outstanding.
func (c *conn) post(b transport.Buf, tag int32) (transport.Request, error) {
	if err := c.failure(); err != nil {
		return nil, err
	}
	m, ok := b.Mem.(memory)
	if !ok || b.Off < 0 || b.Size < 0 || b.Off+b.Size > len(m) {
		return nil, fmt.Errorf("buffer of %d bytes at %d is not inside memory of this transport", b.Size,
			b.Off)
	}
	for i := range c.reqs {
		r := &c.reqs[i]
		if r.state == idle {
			r.state, r.tag, r.buf, r.size = busy, tag, m[b.Off:b.Off+b.Size], b.Size
			r.seen = r.seen[:0]
			r.left.Store(1)
			c.queue <- r // never blocks: it has room for all requests
			return r, nil
		}
	}
	return nil, nil
}

// Test reports whether the request has ended.
func (r *request) Test() (bool, []int, error) {
	if r.state == idle {
		return false, nil, errors.New("test of a request that has ended")
	}
	if r.left.Load() > 0 {
		return false, nil, r.c.failure()
	}
	r.state, r.sizes[0] = idle, r.size
	r.report()
	return true, r.sizes[:], nil
}

// memory is unregistered memory: sockets need no registration.
type memory []byte

func (m memory) Bytes() []byte  { return m }
func (m memory) Release() error { return nil }

// Register returns mem as the connection's memory.
func (c *conn) Register(mem []byte) (transport.Memory, error) { return memory(mem), nil }

// Close ends the connection. Data that was sent and tested stays in flight.
func (c *conn) Close() error {
	c.fail(transport.ErrClosed)
	c.wg.Wait()
	return nil
}

type sendComm struct{ *conn }

// Isend starts sending a message.
func (s *sendComm) Isend(b transport.Buf, tag int32) (transport.Request, error) {
	return s.post(b, tag)
}

type recvComm struct{ *conn }

// Irecv offers one buffer; sockets support no tags and only one message per receive (net_socket.cc:682).
func (r *recvComm) Irecv(bufs []transport.Buf, tags []int32) (transport.Request, error) {
	if len(bufs) != 1 || len(tags) != 1 {
		return nil, fmt.Errorf("receive of %d buffers with %d tags: sockets take one", len(bufs), len(tags))
	}
	return r.post(bufs[0], tags[0])
}

// Iflush does nothing: data arrives in host memory.
func (r *recvComm) Iflush([]transport.Buf) (transport.Request, error) { return nil, nil }
