package sock

import (
	"time"

	"github.com/simccl/simccl/real/internal/transport"
)

// seen is what one socket does for a message; nil where nobody watches. Who
// serves the socket writes it, who tests the request tells it.
type seen struct{ transport.Work }

// Watch reports every message of the connection from now on, socket by socket;
// nil ends it.
func (c *conn) Watch(tell func(transport.Work)) {
	c.tell = tell
	c.watched.Store(tell != nil)
}

// begin notes that a socket turns to a part of a message.
func (c *conn) begin(r *request, sock, size int) *seen {
	if !c.watched.Load() {
		return nil
	}
	s := &seen{transport.Work{QP: uint32(sock), Lane: sock, Lanes: len(c.socks), Opcode: "recv", Size: size, Posted: time.Now()}}
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

// tell reports what was seen of a message that is over.
func (r *request) tell() {
	if r.c.tell == nil {
		return
	}
	for i, s := range r.seen {
		s.ID = uint64(i)
		r.c.tell(s.Work)
	}
}
