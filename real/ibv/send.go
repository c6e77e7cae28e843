package ibv

import (
	"fmt"
	"net"
	"sync/atomic"
	"unsafe"

	"github.com/simccl/simccl/real/transport"
)

// sendComm is the sending end: it waits for the receiver's CTS and writes into
// the memory that it names.
type sendComm struct {
	*comm
	fifo  []cts
	sizes []int32 // staging of message sizes, by slot
	head  uint64
	slot  [transport.MaxRecvs]*request // requests matched to the slot at head
}

func (n *Net) newSend(dev int, c net.Conn, token [16]byte) (*sendComm, error) {
	k, mem, err := n.open(dev, c, token, true, fifoBytes)
	if err != nil {
		return nil, err
	}
	s := &sendComm{comm: k, fifo: unsafe.Slice((*cts)(unsafe.Pointer(unsafe.SliceData(mem))), maxRequests*transport.MaxRecvs)}
	s.sizes, err = place[int32](k.arena, maxRequests*transport.MaxRecvs)
	return s, err
}

// ready returns the CTS entries of the slot at head, nil while the receiver
// has not written all of them.
func (s *sendComm) ready() []cts {
	at := int(s.head%maxRequests) * transport.MaxRecvs
	if atomic.LoadUint64(&s.fifo[at].idx) != s.head+1 {
		return nil
	}
	n := int(s.fifo[at].nreqs)
	if n < 1 || n > transport.MaxRecvs {
		s.err = fmt.Errorf("%s sent a CTS for %d messages", s.peer, n)
		return nil
	}
	e := s.fifo[at : at+n]
	for i := range e {
		if atomic.LoadUint64(&e[i].idx) != s.head+1 {
			return nil
		}
	}
	return e
}

// Isend matches the message with a receive of its tag; when every receive of
// the slot has its message, all go out as one chain.
func (s *sendComm) Isend(b transport.Buf, tag int32) (transport.Request, error) {
	if err := s.progress(); err != nil {
		return nil, err
	}
	if _, _, err := at(b); err != nil {
		return nil, err
	}
	e := s.ready()
	if e == nil {
		return nil, s.err
	}
	for i := range e {
		if s.slot[i] != nil || e[i].tag != tag {
			continue
		}
		if uint64(b.Size) > e[i].size {
			return nil, &transport.TruncatedError{Tag: tag, Sent: b.Size, Room: int(e[i].size)}
		}
		r, _ := s.take(sending)
		if r == nil {
			return nil, nil
		}
		r.buf, r.tag, r.n, r.events = b, tag, 1, s.qpsPerOp()
		r.sizes[0] = b.Size
		s.slot[i] = r
		if s.full(len(e)) {
			if err := s.post(e); err != nil {
				s.err = err
				return nil, err
			}
		}
		return r, nil
	}
	return nil, nil
}

func (s *sendComm) full(n int) bool {
	for _, r := range s.slot[:n] {
		if r == nil {
			return false
		}
	}
	return true
}

// post writes the slot's messages: per QP a chain of writes that ends in a
// write with immediate (net_ib.cc, ncclIbMultiSend).
func (s *sendComm) post(e []cts) error {
	nq, n := s.qpsPerOp(), len(e)
	slot := int(s.head % maxRequests)
	lead := s.slot[0]
	lead.group = [transport.MaxRecvs]*request{}
	copy(lead.group[:], s.slot[:n])
	for i, r := range s.slot[:n] {
		s.sizes[slot*transport.MaxRecvs+i] = int32(r.buf.Size)
	}
	for q := range nq {
		var chain [maxChain]Work
		c := 0
		for i, r := range s.slot[:n] {
			off, size := share(r.buf.Size, q, nq)
			if size == 0 {
				continue
			}
			addr, mr, err := at(r.buf)
			if err != nil {
				return err
			}
			chain[c] = Work{Op: opWrite, Local: addr + uintptr(off), Len: size, Lkey: mr.Lkey, Remote: e[i].addr + uint64(off), Rkey: e[i].rkey}
			c++
		}
		c = s.finish(&chain, c, slot, n, lead)
		qp := s.qps[s.qpAt]
		s.qpAt = (s.qpAt + 1) % len(s.qps)
		s.watch.posted(qp, chain[:c]...)
		if err := qp.Post(chain[:c]...); err != nil {
			return err
		}
	}
	s.slot = [transport.MaxRecvs]*request{}
	s.head++
	return nil
}

// finish ends a chain with the immediate that completes the receive: on the
// data itself, or behind it where adaptive routing may reorder the data, or
// carrying all sizes of a multi-receive.
func (s *sendComm) finish(chain *[maxChain]Work, c, slot, n int, lead *request) int {
	id := uint64(s.index(lead))
	if n == 1 {
		imm := uint32(lead.buf.Size)
		if c == 1 && !(s.adaptive() && lead.buf.Size > s.net.set.ARThreshold) {
			chain[0].Op, chain[0].Imm, chain[0].Signaled, chain[0].ID = opWriteImm, imm, true, id
			return 1
		}
		chain[c] = Work{Op: opWriteImm, Imm: imm, Signaled: true, ID: id, Remote: s.far.Addr, Rkey: s.far.Rkey}
		return c + 1
	}
	at := slot * transport.MaxRecvs
	chain[c] = Work{Op: opWriteImm, Signaled: true, ID: id, Local: pointer(&s.sizes[at]), Len: 4 * n, Lkey: s.own.Lkey,
		Remote: s.far.Addr + uint64(4*at), Rkey: s.far.Rkey}
	return c + 1
}

func (s *sendComm) adaptive() bool {
	if s.net.set.AdaptiveSet {
		return s.net.set.Adaptive
	}
	return s.port.Layer == InfiniBand
}

// share is the part of a message that QP q of nq carries: equal parts of whole
// 128 bytes (net_ib.cc, DIVUP(DIVUP(size, nqps), align) * align).
func share(size, q, nq int) (off, n int) {
	part := (size + nq - 1) / nq
	part = (part + 127) / 128 * 128
	off = min(q*part, size)
	return off, min(part, size-off)
}

// Close ends the connection.
func (s *sendComm) Close() error { return s.close() }
