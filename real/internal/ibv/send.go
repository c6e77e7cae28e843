package ibv

import (
	"fmt"
	"net"
	"sync/atomic"
	"unsafe"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// sendComm is the sending end: it waits for the receiver's CTS and writes into the memory that the CTS names.
type sendComm struct {
	*comm
	fifo     []cts
	sizes    []int32 // by slot: staging of message sizes
	head     uint64
	slot     [transport.MaxRecvs]*request // requests matched to the slot at head
	ids      uint64                       // their indexes, as the id of work requests
	adaptive bool
}

func (n *Net) newSend(dev int, c net.Conn) (*sendComm, error) {
	k, mem, err := n.open(dev, &opening{conn: c, notes: fifoBytes, more: noteBytes,
		access: verbs.AccessRemoteWrite})
	if err != nil {
		return nil, err
	}
	s := &sendComm{comm: k, fifo: unsafe.Slice((*cts)(unsafe.Pointer(unsafe.SliceData(mem))),
		maxRequests*transport.MaxRecvs), adaptive: true}
	// On if every fused port allows it; by default InfiniBand does (net_ib.cc:798).
	for _, c := range k.nics {
		byLayer := 0
		if c.near.Port.Layer == verbs.InfiniBand {
			byLayer = 1
		}
		s.adaptive = s.adaptive && n.set.Adaptive.Or(byLayer) != 0
	}
	if s.sizes, err = verbs.Values[int32](k.arena, maxRequests*transport.MaxRecvs); err != nil {
		_ = k.close()
		return nil, err
	}
	return s, nil
}

// ready returns the CTS entries of the slot at head; nil while the receiver has not written all of them.
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

// Isend matches the message with a receive of its tag; when every receive of the slot has its message, all
// are sent as one chain.
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
		if e[i].addr == 0 || e[i].rkeys[0] == 0 {
			s.err = fmt.Errorf("%s sent a CTS with address %#x and rkey %#x for tag %d", s.peer, e[i].addr,
				e[i].rkeys[0], tag)
			return nil, s.err
		}
		r, id := s.take(sending)
		if r == nil {
			return nil, nil
		}
		r.buf, r.n, r.events = b, len(e), s.perMessage()
		r.sizes[0] = b.Size
		s.slot[i] = r
		s.ids |= id << (idBits * i)
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

// post writes the slot's messages: per QP a chain of writes that ends in a write with immediate
// (net_ib.cc:2064, ncclIbMultiSend).
func (s *sendComm) post(e []cts) error {
	nq, n := s.perMessage(), len(e)
	notes := s.sizes[int(s.head%maxRequests)*transport.MaxRecvs:][:n]
	for i, r := range s.slot[:n] {
		notes[i] = int32(r.buf.Size)
	}
	for part := range nq {
		qp := s.nextQP()
		var chain [maxChain]verbs.Work
		c := 0
		for i, r := range s.slot[:n] {
			off, size := share(r.buf.Size, part, nq)
			if size == 0 {
				continue
			}
			addr, m, err := at(r.buf)
			if err != nil {
				return err
			}
			chain[c] = verbs.Work{Op: verbs.OpWrite, Local: addr + uintptr(off), Len: size,
				Lkey:   m.mrs[qp.nic].Lkey,
				Remote: e[i].addr + uint64(off), Rkey: e[i].rkeys[qp.far]}
			c++
		}
		c = s.finish(&chain, c, qp, notes)
		s.watch.posted(qp, chain[:c]...)
		if err := qp.Post(chain[:c]...); err != nil {
			return err
		}
	}
	e[0] = cts{} // NCCL clears it too, so that a stale entry is never used
	s.slot, s.ids = [transport.MaxRecvs]*request{}, 0
	s.head++
	return nil
}

// finish ends a chain with the immediate that completes the receive: on the data itself, or after it if
// adaptive routing may reorder the data, or with the sizes of a multi-receive.
func (s *sendComm) finish(chain *[maxChain]verbs.Work, c int, qp *queuePair, notes []int32) int {
	last := verbs.Work{Op: verbs.OpWriteImm, Signaled: true, ID: s.ids, Remote: s.far.Addr,
		Rkey: s.far.NICs[qp.far].Rkey}
	if len(notes) == 1 {
		size := s.slot[0].buf.Size
		last.Imm = uint32(size)
		if c == 1 && !(s.adaptive && size > s.net.set.ARThreshold.Or(8192)) {
			w := &chain[0]
			w.Op, w.Imm, w.Signaled, w.ID = last.Op, last.Imm, true, last.ID
			return 1
		}
	} else {
		last.Local, last.Len, last.Lkey = verbs.Pointer(&notes[0]), 4*len(notes), s.nics[qp.nic].own.Lkey
		last.Remote += uint64(4 * transport.MaxRecvs * (s.head % maxRequests))
	}
	chain[c] = last
	return c + 1
}

// Close ends the connection.
func (s *sendComm) Close() error { return s.close() }
