package ibv

import (
	"fmt"
	"net"
	"time"
	"unsafe"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

// recvComm is the receiving end: it offers buffers by writing CTS entries into the sender's FIFO.
type recvComm struct {
	*comm
	sizes  []int32 // by slot: sizes that the sender writes for multi-receives
	offer  []cts   // by slot: staging of the CTS entries
	tail   uint64
	nicAt  int      // NIC of the next CTS
	landed []uint32 // destination of flush reads
}

// newRecv accepts a peer that has proven the handle's key.
func (n *Net) newRecv(dev int, c net.Conn, far *greeting) (*recvComm, error) {
	k, mem, err := n.open(dev, &opening{conn: c, far: far, notes: noteBytes, more: fifoBytes +
		maxNICs*verbs.QPBytes,
		access: verbs.AccessRemoteWrite | verbs.AccessRemoteAtomic})
	if err != nil {
		return nil, err
	}
	r := &recvComm{comm: k, sizes: unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(mem))),
		maxRequests*transport.MaxRecvs)}
	r.offer, err = verbs.Values[cts](k.arena, maxRequests*transport.MaxRecvs)
	if err == nil {
		r.landed, err = verbs.Values[uint32](k.arena, 1)
	}
	if err != nil {
		_ = k.close()
		return nil, err
	}
	return r, nil
}

// openFlush makes, for each NIC, a QP that is connected to itself, by which the NIC reads back the data that
// it wrote (net_ib.cc:1840). NCCL makes them with GPU Direct RDMA, here the first flush does.
func (r *recvComm) openFlush() error {
	s := *r.net.set.Service
	s.SL, s.TC = r.far.SL, r.far.TC
	for i, c := range r.nics {
		q, err := r.newQP(i, verbs.QPPlan{Chain: maxChain, Sends: 2 * maxRequests, Recvs: 1,
			Access: verbs.AccessLocalWrite | verbs.AccessRemoteRead})
		if err != nil {
			return err
		}
		r.flush = append(r.flush, q)
		p := c.near.Port
		self := verbs.Address{LID: p.LID, GID: c.near.GID, MTU: p.MTU, Layer: p.Layer}
		if err := q.Connect(&c.near, &self, q.Num, s, "itself"); err != nil {
			return err
		}
	}
	return nil
}

// Irecv offers buffers; messages may be smaller than the buffers.
func (r *recvComm) Irecv(bufs []transport.Buf, tags []int32) (transport.Request, error) {
	if err := r.progress(); err != nil {
		return nil, err
	}
	n := len(bufs)
	if n < 1 || n > transport.MaxRecvs || len(tags) != n {
		return nil, fmt.Errorf("receive of %d buffers with %d tags: 1 to %d of each", n, len(tags),
			transport.MaxRecvs)
	}
	q, id := r.take(receiving)
	if q == nil {
		return nil, nil
	}
	slot := int(r.tail % maxRequests)
	q.n, q.events = n, r.perMessage()
	q.wrote = r.sizes[slot*transport.MaxRecvs:][:n]
	e := r.offer[slot*transport.MaxRecvs:][:n]
	for i, b := range bufs {
		addr, m, err := at(b)
		if err != nil {
			q.kind = free
			return nil, err
		}
		q.wrote[i] = 0
		e[i] = cts{addr: uint64(addr), size: uint64(b.Size), nreqs: uint32(n), tag: tags[i], idx: r.tail + 1}
		for j, mr := range m.mrs {
			e[i].rkeys[j] = mr.Rkey
		}
	}
	if err := r.announce(q, id, slot, e); err != nil {
		r.err = err
		return nil, err
	}
	r.tail++
	return q, nil
}

// announce posts the receives for the immediates, then the CTS, each on the next NIC. A NIC's CTS into the
// slot with its number is signaled, which frees its send queue once a round (net_ib.cc:2347).
func (r *recvComm) announce(q *request, id uint64, slot int, e []cts) error {
	for range r.perMessage() {
		if err := r.nextQP().PostRecv(id); err != nil {
			return err
		}
	}
	qp := r.qps[r.nicAt]
	r.nicAt = (r.nicAt + 1) % len(r.nics)
	w := verbs.Work{ID: id, Op: verbs.OpWrite, Local: verbs.Pointer(&e[0]), Len: len(e) * ctsSize,
		Lkey:   r.nics[qp.nic].own.Lkey,
		Remote: r.far.Addr + uint64(slot*transport.MaxRecvs*ctsSize), Rkey: r.far.NICs[qp.far].Rkey,
		Inline: r.net.set.Inline && len(e) == 1}
	if slot == qp.nic {
		w.Signaled = true
		q.events++
	}
	began := time.Now()
	if err := qp.Post(w); err != nil {
		return err
	}
	r.watch.offered(qp, w, began)
	return nil
}

// Iflush reads a byte back from the last buffer with data, through every NIC, since it is unknown which of
// them wrote it.
func (r *recvComm) Iflush(bufs []transport.Buf) (transport.Request, error) {
	last := -1
	for i, b := range bufs {
		if b.Size > 0 {
			last = i
		}
	}
	if last < 0 {
		return nil, nil
	}
	addr, m, err := at(bufs[last])
	if err != nil {
		return nil, err
	}
	if r.flush == nil {
		if err := r.openFlush(); err != nil {
			r.err = err
			return nil, err
		}
	}
	q, id := r.take(flushing)
	if q == nil {
		return nil, fmt.Errorf("flush: %d requests are outstanding", maxRequests)
	}
	q.events = len(r.flush)
	for i, qp := range r.flush {
		w := verbs.Work{ID: id, Op: verbs.OpRead, Signaled: true, Local: verbs.Pointer(&r.landed[0]), Len: 1,
			Lkey:   r.nics[i].own.Lkey,
			Remote: uint64(addr), Rkey: m.mrs[i].Rkey}
		r.watch.posted(qp, w)
		if err := qp.Post(w); err != nil {
			r.err = err
			return nil, err
		}
	}
	return q, nil
}

// Close ends the connection.
func (r *recvComm) Close() error { return r.close() }

// Test reports whether the request has ended.
func (q *request) Test() (bool, []int, error) {
	if q.kind == free {
		return false, nil, fmt.Errorf("test of a request that has ended")
	}
	if q.events > 0 {
		if err := q.c.progress(); err != nil {
			return false, nil, err
		}
	}
	if q.events > 0 {
		return false, nil, nil
	}
	n := q.n
	switch {
	case q.kind == sending:
		n = 1
	case q.kind == receiving && n > 1:
		for i := range n {
			q.sizes[i] = int(q.wrote[i])
		}
	}
	q.kind = free
	return true, q.sizes[:n], nil
}
