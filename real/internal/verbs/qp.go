package verbs

import (
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/internal/dl"
)

// CQ is a completion queue; poll it from one goroutine at a time.
type CQ struct {
	dev    *Device
	handle uintptr
	poll   dl.Proc
	wc     []WC // outside the Go heap
}

// pollBatch is the largest number of completions of one poll.
const pollBatch = 16

// CQBytes is the largest part of an arena that a CQ's completions occupy.
const CQBytes = (pollBatch + 1) * 64

// NewCQ makes a queue of depth entries, or as many as the device supports, whose completions are stored in
// the arena. Its fatal events are recorded in f.
func (d *Device) NewCQ(a *Arena, depth int, f *Fault) (*CQ, error) {
	wc, err := Values[WC](a, pollBatch)
	if err != nil {
		return nil, err
	}
	h, err := object("ibv_create_cq", d.Name, d.lib.fn.createCQ.Call(d.ctx, uintptr(min(depth, d.MaxCQE)), 0,
		0, 0))
	if err != nil {
		return nil, err
	}
	d.watch.follow(h, f)
	return &CQ{dev: d, handle: h, poll: dl.Proc(peek[uintptr](d.ctx, offContextOps+offPollCQ)), wc: wc}, nil
}

// Poll returns the available completions; the slice is valid until the next Poll.
func (q *CQ) Poll() ([]WC, error) {
	n := int32(q.poll.Call(q.handle, pollBatch, Pointer(&q.wc[0])))
	if n < 0 {
		return nil, &Error{Verb: "ibv_poll_cq", Device: q.dev.Name}
	}
	return q.wc[:n], nil
}

// Close destroys the queue.
func (q *CQ) Close() error {
	q.dev.watch.follow(q.handle, nil)
	return errnoOf("ibv_destroy_cq", q.dev.Name, q.dev.lib.fn.destroyCQ.Call(q.handle))
}

// QP is a queue pair of a reliable connection.
type QP struct {
	dev      *Device
	handle   uintptr
	postSend dl.Proc
	postRecv dl.Proc
	Num      uint32
	access   uint32
	peer     string // for errors
	wr       []sendWR
	sg       []sge
	rwr      []recvWR
	rsg      []sge
	bad      []uintptr
}

// QPPlan holds the capacities and access rights of a new QP.
type QPPlan struct {
	Sends, Recvs int    // depth of the queues
	Inline       int    // bytes of a request that may be sent inline
	Chain        int    // largest number of requests of one post
	Access       uint32 // AccessRemoteWrite and the like: what the peer may do
}

// NewQP creates a QP; its requests are built in the arena, its fatal events recorded in f.
func (d *Device) NewQP(a *Arena, cq *CQ, w QPPlan, f *Fault) (*QP, error) {
	q := &QP{dev: d, access: w.Access, postSend: dl.Proc(peek[uintptr](d.ctx, offContextOps+offPostSend)),
		postRecv: dl.Proc(peek[uintptr](d.ctx, offContextOps+offPostRecv))}
	var err error
	if q.wr, err = Values[sendWR](a, w.Chain); err != nil {
		return nil, err
	}
	if q.sg, err = Values[sge](a, w.Chain); err != nil {
		return nil, err
	}
	if q.rwr, err = Values[recvWR](a, 1); err != nil {
		return nil, err
	}
	if q.rsg, err = Values[sge](a, 1); err != nil {
		return nil, err
	}
	if q.bad, err = Values[uintptr](a, 1); err != nil {
		return nil, err
	}
	attr := &qpInitAttr{sendCQ: cq.handle, recvCQ: cq.handle, qpType: qptRC,
		cap: qpCap{maxSendWR: uint32(w.Sends), maxRecvWR: uint32(w.Recvs), maxSendSGE: 1, maxRecvSGE: 1,
			maxInlineData: uint32(w.Inline)}}
	if q.handle, err = object("ibv_create_qp", d.Name, d.lib.fn.createQP.Call(d.pd, Pointer(attr))); err !=
		nil {
		return nil, err
	}
	runtime.KeepAlive(attr)
	q.Num = peek[uint32](q.handle, offQPNum)
	d.watch.follow(q.handle, f)
	return q, nil
}

// QPBytes is the largest part of an arena that a QP's requests occupy.
const QPBytes = 2 << 10

// Address is the address of a port and the parameters of its memory, as sent to the other side.
type Address struct {
	Device string
	LID    uint16
	GID    GID
	MTU    int // bytes
	Layer  LinkLayer
	Rkey   uint32 // of the memory where the other side writes message sizes
}

// Device returns the device of the QP.
func (q *QP) Device() *Device { return q.dev }

// Unknown returns a placeholder for a QP with a number that is not open, for errors about it; it cannot be
// used.
func (d *Device) Unknown(num uint32) *QP { return &QP{dev: d, Num: num} }

func (q *QP) modify(what string, a *qpAttr, mask uintptr) error {
	for try := 1; ; try++ {
		r := q.dev.lib.fn.modifyQP.Call(q.handle, Pointer(a), mask)
		runtime.KeepAlive(a)
		err := errnoOf("ibv_modify_qp", q.dev.Name, r)
		if err == nil {
			return nil
		}
		e := err.(*Error)
		p := &q.dev.Retry
		if (e.Errno != syscall.ETIMEDOUT && !p.All) || try > p.Count {
			e.Detail = fmt.Sprintf("QP %d to %s", q.Num, what)
			return err
		}
		time.Sleep(time.Duration(try) * p.Sleep)
	}
}

// Init brings a new QP to INIT on a port.
func (q *QP) Init(port uint8, pkey uint16) error {
	return q.modify("INIT", &qpAttr{state: stInit, portNum: port, pkeyIndex: pkey, accessFlags: q.access},
		maskState|maskPkey|maskPort|maskAccess)
}

// Connect brings a QP from INIT to RTS against QP num of the peer's port, with
// NCCL's attributes (net_ib.cc:1274, ncclIbRtrQp, ncclIbRtsQp).
func (q *QP) Connect(n *End, to *Address, num uint32, s netcfg.Service, peer string) error {
	q.peer = peer
	a := &qpAttr{state: stRTR, pathMTU: mtuCode(min(n.Port.MTU, to.MTU)), destQPNum: num, maxDestRDAtomic: 1,
		minRNRTimer: 12,
		ah:          n.route(to, s.SL, s.TC)}
	if err := q.modify("RTR", a, maskState|maskAV|maskPathMTU|maskDestQPN|maskRQPSN|maskMaxDestRD|
		maskMinRNR); err != nil {
		return err
	}
	b := &qpAttr{state: stRTS, timeout: s.Timeout, retryCnt: s.Retry, rnrRetry: 7, maxRDAtomic: 1}
	return q.modify("RTS", b, maskState|maskTimeout|maskRetryCnt|maskRNRRetry|maskSQPSN|maskMaxRD)
}

// Extensions queries the extensions that a QP's NIC offers, or after RTS those that both NICs have; nil if
// there are none (net_ib.cc:1449, ibvwrap.cc:313).
func (q *QP) Extensions() (*ECE, error) {
	e := new(ECE)
	known, err := q.extend("ibv_query_ece", q.dev.lib.fn.queryECE, e)
	if !known {
		return nil, err
	}
	return e, nil
}

// SetExtensions passes the extensions of the peer's NIC to the QP, before RTR; known is true if the NIC
// supports extensions.
func (q *QP) SetExtensions(e *ECE) (known bool, err error) {
	return q.extend("ibv_set_ece", q.dev.lib.fn.setECE, e)
}

func (q *QP) extend(verb string, f dl.Proc, e *ECE) (known bool, err error) {
	if f == 0 {
		return false, nil
	}
	r := f.Call(q.handle, Pointer(e))
	runtime.KeepAlive(e)
	if errno := syscall.Errno(int32(r)); errno == syscall.EOPNOTSUPP {
		return false, nil
	}
	err = errnoOf(verb, q.dev.Name, r)
	return err == nil, err
}

// Break forces the QP into the error state: all posted requests are flushed.
func (q *QP) Break() error { return q.modify("ERR", &qpAttr{state: stErr}, maskState) }

// Work is one request of a chain: an RDMA write, write with immediate, read, or a send.
type Work struct {
	ID       uint64
	Op       uint32 // OpWrite, OpWriteImm, OpRead, OpSend
	Signaled bool
	Inline   bool
	Local    uintptr
	Len      int
	Lkey     uint32
	Remote   uint64
	Rkey     uint32
	Imm      uint32
}

// Post puts a chain of requests on the send queue with one doorbell.
func (q *QP) Post(chain ...Work) error {
	if len(chain) > len(q.wr) {
		return fmt.Errorf("a chain of %d requests is longer than %d", len(chain), len(q.wr))
	}
	for i, w := range chain {
		r := &q.wr[i]
		*r = sendWR{wrID: w.ID, opcode: w.Op, imm: swap32(w.Imm), remoteAddr: w.Remote, rkey: w.Rkey}
		if w.Len > 0 {
			q.sg[i] = sge{addr: uint64(w.Local), length: uint32(w.Len), lkey: w.Lkey}
			r.sgList, r.numSGE = Pointer(&q.sg[i]), 1
		}
		if w.Signaled {
			r.flags |= sendSignaled
		}
		if w.Inline {
			r.flags |= sendInline
		}
		if i+1 < len(chain) {
			r.next = Pointer(&q.wr[i+1])
		}
	}
	return errnoOf("ibv_post_send", q.dev.Name, q.postSend.Call(q.handle, Pointer(&q.wr[0]),
		Pointer(&q.bad[0])))
}

// PostRecv posts a receive without buffer, for the immediate of a write.
func (q *QP) PostRecv(id uint64) error {
	q.rwr[0] = recvWR{wrID: id}
	return errnoOf("ibv_post_recv", q.dev.Name, q.postRecv.Call(q.handle, Pointer(&q.rwr[0]),
		Pointer(&q.bad[0])))
}

// PostRecvInto posts a receive with a buffer for a send's data.
func (q *QP) PostRecvInto(id uint64, addr uintptr, n int, lkey uint32) error {
	q.rsg[0] = sge{addr: uint64(addr), length: uint32(n), lkey: lkey}
	q.rwr[0] = recvWR{wrID: id, sgList: Pointer(&q.rsg[0]), numSGE: 1}
	return errnoOf("ibv_post_recv", q.dev.Name, q.postRecv.Call(q.handle, Pointer(&q.rwr[0]),
		Pointer(&q.bad[0])))
}

// Failure converts a bad completion into an error; verb names the posted operation.
func (q *QP) Failure(verb string, wc *WC) error {
	return &CompletionError{Verb: verb, Status: wc.Status,
		Text:   dl.String(q.dev.lib.fn.wcStatusStr.Call(uintptr(wc.Status))),
		Device: q.dev.Name, QP: wc.QP, Peer: q.peer, Vendor: wc.vendorErr, Notice: q.dev.watch.notice()}
}

// Close destroys the QP.
func (q *QP) Close() error {
	q.dev.watch.follow(q.handle, nil)
	return errnoOf("ibv_destroy_qp", q.dev.Name, q.dev.lib.fn.destroyQP.Call(q.handle))
}
