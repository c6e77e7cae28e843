// Package ibv moves bytes over InfiniBand and RoCE as NCCL 2.28.9's net_ib does: reliable connections, a CTS
// FIFO that the receiver writes into the sender's memory, chains of RDMA WRITE that end in WRITE_WITH_IMM,
// and flushes by RDMA READ. It uses package verbs for devices and queues.
//
// It knows nothing of collectives; Net (net.go) has the interface of NCCL's net plugin v11. NCCL counterpart:
// transport/net_ib.cc.
package ibv

import (
	"fmt"
	"net"
	"structs"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

const (
	// maxNICs is the largest number of ports of a fused device (net_ib.cc:49, NCCL_IB_MAX_DEVS_PER_NIC).
	maxNICs = 4
	// maxRequests is the largest number of outstanding requests of a connection, and the number of FIFO slots
	// (net_ib.cc:972: NCCL_NET_MAX_REQUESTS x NCCL_NET_IB_MAX_RECVS).
	maxRequests = 32 * transport.MaxRecvs
	// idBits is the number of bits of a request's index: a work request's id holds the indexes of up to eight
	// requests (net_ib.cc:2081).
	idBits = 8
)

// cts is one entry of the clear-to-send FIFO, which the receiver writes into
// the sender's memory (net_ib.cc:1104, struct ncclIbSendFifo).
type cts struct {
	_     structs.HostLayout
	addr  uint64
	size  uint64
	rkeys [maxNICs]uint32 // of the buffer, for each of the receiver's NICs
	nreqs uint32
	tag   int32
	idx   uint64 // slot number + 1; the NIC writes an entry atomically
	_     [16]byte
}

const (
	ctsSize   = 64
	fifoBytes = maxRequests * transport.MaxRecvs * ctsSize
	noteBytes = maxRequests * transport.MaxRecvs * 4 // sizes of messages
)

// nic is the part of a connection that belongs to one port.
type nic struct {
	dev  *verbs.Device
	near verbs.End
	cq   *verbs.CQ
	own  *verbs.MR // registration of the arena
}

// maxChain is the longest chain of work requests of one post: one write per
// receive of a multi-receive, and the final write with immediate.
const maxChain = transport.MaxRecvs + 1

// queuePair is a QP with the ports that it connects.
type queuePair struct {
	*verbs.QP
	nic int // index among its connection's NICs
	far int // index among the peer's NICs
}

// comm is the part that both ends of a connection share.
type comm struct {
	net   *Net
	conn  net.Conn
	peer  string
	arena *verbs.Arena
	notes []byte // start of the arena, where the peer may write
	nics  []*nic
	qps   []*queuePair // alternating between NICs
	flush []*queuePair // of a receiver: one per NIC, connected to itself
	qpAt  int          // next QP, equal on both sides
	perOp int          // QPs of a message that is not split over all QPs
	reqs  [maxRequests]request
	far   hello
	err   error
	fatal verbs.Fault // asynchronous events of its QPs and CQs
	watch *watcher    // nil: not watched
}

// kinds of requests
const (
	free = iota
	sending
	receiving
	flushing
)

// request is one isend, irecv or iflush in progress.
type request struct {
	c      *comm
	kind   int
	events int // number of completions still to come
	sizes  [transport.MaxRecvs]int
	n      int // number of messages of its slot
	buf    transport.Buf
	wrote  []int32 // of a multi-receive: sizes written by the sender
}

// opening holds the parameters of opening a connection.
type opening struct {
	conn   net.Conn
	far    *greeting // the dialer's greeting, on the side that it reached
	notes  int       // bytes at the arena's start where the peer may write
	more   int       // additional bytes of arena for the owner
	access uint32
}

// open connects a virtual device's QPs with the peer's; mem is the part of the arena where the peer may
// write.
func (n *Net) open(dev int, o *opening) (k *comm, mem []byte, err error) {
	k = &comm{net: n, conn: o.conn, peer: o.conn.RemoteAddr().String()}
	defer func() {
		if err != nil {
			_ = k.close()
		}
	}()
	for i := range k.reqs {
		k.reqs[i].c = k
	}
	for _, p := range n.virt[dev].ports {
		k.nics = append(k.nics, &nic{dev: n.phys[p].dev, near: n.phys[p].near})
	}
	if err = k.setup(o); err != nil {
		err = fmt.Errorf("set-up with %s: %w", k.peer, err)
	}
	return k, k.notes, err
}

// room allocates the arena for n QPs and registers it with the NICs.
func (k *comm) room(n int, o *opening) (err error) {
	size := o.notes + o.more + (n+maxNICs)*verbs.QPBytes + len(k.nics)*verbs.CQBytes
	if k.arena, err = verbs.NewArena(size); err != nil {
		return err
	}
	if k.notes, err = k.arena.Take(o.notes); err != nil {
		return err
	}
	for _, c := range k.nics {
		if c.own, err = c.dev.RegisterArena(k.arena); err != nil {
			return err
		}
	}
	return nil
}

// queues makes n QPs, alternating between NICs, and returns the message that describes them to the peer
// (net_ib.cc:1436).
func (k *comm) queues(n int, o *opening) (*hello, error) {
	me := &hello{Addr: uint64(verbs.AddressOf(k.arena.Bytes()))}
	for i, c := range k.nics {
		var err error
		mine := (n - i + len(k.nics) - 1) / len(k.nics)
		if c.cq, err = c.dev.NewCQ(k.arena, 2*maxRequests*mine, &k.fatal); err != nil {
			return nil, err
		}
		p := c.near.Port
		me.NICs = append(me.NICs, verbs.Address{Device: p.Device, LID: p.LID, GID: c.near.GID, MTU: p.MTU,
			Layer: p.Layer, Rkey: c.own.Rkey})
	}
	// Twice as many sends: data and immediate.
	w := verbs.QPPlan{Chain: maxChain, Sends: 2 * maxRequests, Recvs: maxRequests, Access: o.access}
	if k.net.set.Inline {
		w.Inline = ctsSize
	}
	for i := range n {
		q, err := k.newQP(i%len(k.nics), w)
		if err != nil {
			return nil, err
		}
		k.qps = append(k.qps, q)
		me.QPs = append(me.QPs, farQP{Num: q.Num, NIC: q.nic})
	}
	return me, nil
}

// newQP makes a QP of the i-th NIC and brings it to INIT.
func (k *comm) newQP(i int, w verbs.QPPlan) (*queuePair, error) {
	c := k.nics[i]
	made, err := c.dev.NewQP(k.arena, c.cq, w, &k.fatal)
	if err != nil {
		return nil, err
	}
	q := &queuePair{QP: made, nic: i}
	if err := q.Init(c.near.Port.Num, k.net.set.Service.PkeyIndex); err != nil {
		_ = q.Close()
		return nil, err
	}
	return q, nil
}

// take returns a free request and its index.
func (k *comm) take(kind int) (*request, uint64) {
	for i := range k.reqs {
		if r := &k.reqs[i]; r.kind == free {
			*r = request{c: k, kind: kind}
			return r, uint64(i)
		}
	}
	return nil, 0
}

// perMessage returns the number of QPs that one message uses.
func (k *comm) perMessage() int {
	if k.net.set.SplitData {
		return len(k.qps)
	}
	return k.perOp
}

// nextQP returns the next QP, round-robin.
func (k *comm) nextQP() *queuePair {
	q := k.qps[k.qpAt]
	k.qpAt = (k.qpAt + 1) % len(k.qps)
	return q
}

// alive returns the error by which the connection has failed; nil if it can continue.
func (k *comm) alive() error {
	if k.err != nil {
		return k.err
	}
	if k.net.set.IgnoreEvents {
		return nil
	}
	k.err = k.fatal.Get()
	for _, c := range k.nics {
		if k.err == nil {
			k.err = c.dev.Err()
		}
	}
	return k.err
}

// progress handles the available completions.
func (k *comm) progress() error {
	if err := k.alive(); err != nil {
		return err
	}
	for i, c := range k.nics {
		wcs, err := c.cq.Poll()
		for j := range wcs {
			if err == nil {
				err = k.completed(i, &wcs[j])
			}
		}
		if err != nil {
			k.err = err
			return err
		}
	}
	return nil
}

// completed handles one completion of a NIC.
func (k *comm) completed(nic int, wc *verbs.WC) error {
	r := &k.reqs[wc.ID%maxRequests]
	if !wc.OK() {
		return k.qp(nic, wc.QP).Failure(kindVerbs[r.kind], wc)
	}
	arrival := wc.Arrived()
	if arrival && r.n == 1 {
		r.sizes[0] = int(wc.Imm())
	}
	switch {
	case k.watch == nil:
	case arrival:
		k.watch.arrived(k.qp(nic, wc.QP), wc, r.sizes[0])
	default:
		k.watch.completed(k.qp(nic, wc.QP))
	}
	if r.kind != sending {
		r.events--
		return nil
	}
	for i := range r.n {
		k.reqs[wc.ID>>(idBits*i)%maxRequests].events--
	}
	return nil
}

// qp returns the QP with a NIC and number.
func (k *comm) qp(nic int, num uint32) *queuePair {
	for _, list := range [][]*queuePair{k.qps, k.flush} {
		for _, q := range list {
			if q.nic == nic && q.Num == num {
				return q
			}
		}
	}
	return &queuePair{QP: k.nics[nic].dev.Unknown(num), nic: nic}
}

// kindVerbs names, for errors, the operation that a request of each kind has posted.
var kindVerbs = [...]string{free: "completion", sending: "RDMA write", receiving: "receive or CTS write",
	flushing: "RDMA read (flush)"}

// Register registers memory with the connection's NICs.
func (k *comm) Register(mem []byte) (transport.Memory, error) {
	m := &memory{mem: mem, of: k}
	for _, c := range k.nics {
		mr, err := c.dev.Register(mem, k.net.relaxed)
		if err != nil {
			_ = m.Release()
			return nil, err
		}
		m.mrs = append(m.mrs, mr)
	}
	return m, nil
}

// memory is memory registered with every NIC of its connection.
type memory struct {
	mem []byte
	of  *comm
	mrs []*verbs.MR // by NIC
}

// Bytes returns the memory.
func (m *memory) Bytes() []byte { return m.mem }

// Release ends the registrations.
func (m *memory) Release() error {
	var c verbs.Closing
	for i, mr := range m.mrs {
		c.Keep(m.of.nics[i].dev.Release(mr))
	}
	return c.First
}

// at returns the local address and keys of a part of registered memory.
func at(b transport.Buf) (uintptr, *memory, error) {
	m, ok := b.Mem.(*memory)
	if !ok || b.Off < 0 || b.Size < 0 || b.Off+b.Size > len(m.mem) {
		return 0, nil,
			fmt.Errorf("buffer of %d bytes at %d is not inside registered memory of this transport", b.Size,
				b.Off)
	}
	return verbs.AddressOf(m.mem) + uintptr(b.Off), m, nil
}

// close frees the connection; the other side's requests fail.
func (k *comm) close() error {
	var c verbs.Closing
	c.Keep(k.free())
	c.Keep(k.conn.Close())
	return c.First
}

// free destroys the QPs; the socket by which they were set up stays open.
func (k *comm) free() error {
	var c verbs.Closing
	k.err = transport.ErrClosed
	for _, q := range append(k.flush, k.qps...) {
		c.Keep(q.Close())
	}
	for _, n := range k.nics {
		if n.cq != nil {
			c.Keep(n.cq.Close())
		}
		if n.own != nil {
			c.Keep(n.dev.Deregister(n.own))
		}
	}
	if k.arena != nil {
		c.Keep(k.arena.Close())
	}
	return c.First
}
