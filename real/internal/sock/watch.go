package sock

import (
	"time"

	"github.com/simccl/simccl/real/internal/transport"
)

// seen records what one socket does for a message; nil if not watched. The thread that serves the socket
// writes it, the thread that tests the request reports it.
type seen struct{ transport.Work }

// Watch reports every message of the connection from this call on, socket by socket; a nil report ends it.
func (c *conn) Watch(report func(transport.Work)) {
	c.report = report
	c.watched.Store(report != nil)
}

// begin records that a socket begins a part of a message.
func (c *conn) begin(r *request, sock, size int) *seen {
	if !c.watched.Load() {
		return nil
	}
	s := &seen{transport.Work{QP: uint32(sock), Lane: sock, Lanes: len(c.socks), Opcode: "recv", Size: size,
		Posted: time.Now()}}
	if c.send {
		s.Opcode = "send"
	}
	r.seen = append(r.seen, s)
	return s
}

func (s *seen) end() {
	if s != nil {
		s.Done = time.Now()
	}
}

// report reports the records of a message that has ended.
func (r *request) report() {
	if r.c.report == nil {
		return
	}
	for i, s := range r.seen {
		s.ID = uint64(i)
		r.c.report(s.Work)
	}
}
