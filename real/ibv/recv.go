package ibv

import (
	"fmt"
	"net"
	"unsafe"

	"github.com/simccl/simccl/real/transport"
)

// recvComm is the receiving end: it offers buffers by writing CTS entries into
// the sender's FIFO.
type recvComm struct {
	*comm
	sizes  []int32 // written by the sender for multi-receives, by slot
	offer  []cts   // staging of the CTS entries, by slot
	tail   uint64
	flushQ *QP
	landed []uint32 // where flush reads go
}

// newRecv takes a peer that knows the token.
func (n *Net) newRecv(dev int, c net.Conn, token [16]byte) (*recvComm, error) {
	k, mem, err := n.open(dev, c, token, false, fifoBytes)
	if err != nil {
		return nil, err
	}
	r := &recvComm{comm: k, sizes: unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(mem))), maxRequests*transport.MaxRecvs)}
	k.multi = func(slot, i int) int32 { return r.sizes[slot*transport.MaxRecvs+i] }
	if r.offer, err = place[cts](k.arena, maxRequests*transport.MaxRecvs); err != nil {
		return nil, err
	}
	if r.landed, err = place[uint32](k.arena, 1); err != nil {
		return nil, err
	}
	return r, r.openFlush(n.gid[dev])
}

// openFlush makes a QP connected to itself, by which the NIC reads back what
// it wrote (net_ib.cc, gpuFlush).
func (r *recvComm) openFlush(gid int) (err error) {
	if r.flushQ, err = r.dev.NewQP(r.arena, r.cq, maxRequests); err != nil {
		return err
	}
	if err = r.flushQ.Init(r.port.Num, *r.net.set.Service); err != nil {
		return err
	}
	g, err := r.dev.GID(r.port.Num, gid)
	if err != nil {
		return err
	}
	self := Address{QPN: r.flushQ.Num, LID: r.port.LID, GID: g, MTU: r.port.MTU, Layer: r.port.Layer}
	return r.flushQ.Connect(r.port, gid, self, *r.net.set.Service, "itself")
}

// Irecv offers buffers; a message of any size up to the buffer's may come.
func (r *recvComm) Irecv(bufs []transport.Buf, tags []int32) (transport.Request, error) {
	if err := r.progress(); err != nil {
		return nil, err
	}
	n := len(bufs)
	if n < 1 || n > transport.MaxRecvs || len(tags) != n {
		return nil, fmt.Errorf("receive of %d buffers with %d tags: 1 to %d of each", n, len(tags), transport.MaxRecvs)
	}
	q, id := r.take(receiving)
	if q == nil {
		return nil, nil
	}
	slot := int(r.tail % maxRequests)
	q.n, q.slot, q.events = n, slot, r.qpsPerOp()
	e := r.offer[slot*transport.MaxRecvs:][:n]
	for i, b := range bufs {
		addr, mr, err := at(b)
		if err != nil {
			q.kind = free
			return nil, err
		}
		e[i] = cts{addr: uint64(addr), size: uint64(b.Size), rkey: mr.Rkey, nreqs: uint32(n), tag: tags[i], idx: r.tail + 1}
	}
	if err := r.announce(q, id, slot, e); err != nil {
		r.err = err
		return nil, err
	}
	r.tail++
	return q, nil
}

// announce posts the receives that take the immediates, then the CTS. A CTS is
// signaled once a round of the FIFO, which frees the send queue.
func (r *recvComm) announce(q *request, id, slot int, e []cts) error {
	for range r.qpsPerOp() {
		if err := r.qps[r.qpAt].PostRecv(uint64(id)); err != nil {
			return err
		}
		r.qpAt = (r.qpAt + 1) % len(r.qps)
	}
	w := Work{ID: uint64(id), Op: opWrite, Local: pointer(&e[0]), Len: len(e) * ctsSize, Lkey: r.own.Lkey,
		Remote: r.far.Addr + uint64(slot*transport.MaxRecvs*ctsSize), Rkey: r.far.Rkey,
		Inline: r.net.set.Inline && len(e) == 1}
	if slot == 0 {
		w.Signaled = true
		q.events++
	}
	return r.qps[0].Post(w)
}

// Iflush reads one word back from the last buffer that holds data.
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
	addr, mr, err := at(bufs[last])
	if err != nil {
		return nil, err
	}
	q, id := r.take(flushing)
	if q == nil {
		return nil, fmt.Errorf("flush: %d requests are under way", maxRequests)
	}
	q.events = 1
	w := Work{ID: uint64(id), Op: opRead, Signaled: true, Local: pointer(&r.landed[0]), Len: 1, Lkey: r.own.Lkey,
		Remote: uint64(addr), Rkey: mr.Rkey}
	r.watch.posted(r.flushQ, w)
	return q, r.flushQ.Post(w)
}

// Close ends the connection.
func (r *recvComm) Close() error {
	if r.flushQ != nil {
		if err := r.flushQ.Close(); err != nil {
			return err
		}
	}
	return r.close()
}

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
	if q.kind == receiving && n > 1 {
		for i := range n {
			q.sizes[i] = int(q.c.multi(q.slot, i))
		}
	}
	q.kind = free
	return true, q.sizes[:n], nil
}
