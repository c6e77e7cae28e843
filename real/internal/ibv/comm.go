// Package ibv moves bytes over InfiniBand and RoCE as NCCL 2.28.9's net_ib
// does: reliable connections, a CTS FIFO that the receiver writes into the
// sender's memory, chains of RDMA WRITE that end in WRITE_WITH_IMM, and flushes
// by RDMA READ. Package verbs below it has devices and queues.
//
// It knows nothing of collectives; Net (net.go) has the shape of NCCL's net
// plugin v11. NCCL counterpart: transport/net_ib.cc.
package ibv

import (
	"fmt"
	"net"
	"structs"

	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
)

const (
	// maxNICs is how many ports one fused device has at most (net_ib.cc:49,
	// NCCL_IB_MAX_DEVS_PER_NIC).
	maxNICs = 4
	// maxRequests are outstanding per connection at most; there are as many FIFO
	// slots (net_ib.cc:972: NCCL_NET_MAX_REQUESTS x NCCL_NET_IB_MAX_RECVS).
	maxRequests = 32 * transport.MaxRecvs
	// idBits are those of a request's index: a work request's id holds the
	// indices of up to eight (net_ib.cc:2081).
	idBits = 8
)

// cts is one entry of the clear-to-send FIFO, which the receiver writes into
// the sender's memory (net_ib.cc:1104, struct ncclIbSendFifo).
type cts struct {
	_     structs.HostLayout
	addr  uint64
	size  uint64
	rkeys [maxNICs]uint32 // of the buffer, by the receiver's NIC
	nreqs uint32
	tag   int32
	idx   uint64 // slot number + 1; the NIC writes an entry in one piece
	_     [16]byte
}

const (
	ctsSize   = 64
	fifoBytes = maxRequests * transport.MaxRecvs * ctsSize
	noteBytes = maxRequests * transport.MaxRecvs * 4 // sizes of messages
)

// nic is a connection's part of one port.
type nic struct {
	dev  *verbs.Device
	near verbs.End
	cq   *verbs.CQ
	own  *verbs.MR // of the arena
}

// maxChain is the longest chain of work requests of one post: one write per
// receive of a multi-receive, and the final write with immediate.
const maxChain = transport.MaxRecvs + 1

// queuePair is a QP with the ports that it connects.
type queuePair struct {
	*verbs.QP
	nic int // of its connection, which of its NICs
	far int // which of the peer's NICs
}

// comm is what both ends have.
type comm struct {
	net   *Net
	conn  net.Conn
	peer  string
	arena *verbs.Arena
	notes []byte // the arena's start, to which the peer may write
	nics  []*nic
	qps   []*queuePair // alternating between NICs
	flush []*queuePair // of a receiver: by NIC, connected to themselves
	qpAt  int          // next QP, in step on both sides
	perOp int          // QPs of a message that is not split over all
	reqs  [maxRequests]request
	far   hello
	err   error
	fatal verbs.Fault // asynchronous events of its QPs and CQs
	watch *watcher    // nil: not watched
}

// kind of request
const (
	free = iota
	sending
	receiving
	flushing
)

// request is one isend, irecv or iflush.
type request struct {
	c      *comm
	kind   int
	events int // completions that are to come
	sizes  [transport.MaxRecvs]int
	n      int // messages of the slot it is of
	buf    transport.Buf
	wrote  []int32 // of a multi-receive: where the sender writes the sizes
}

// opening says what to open.
type opening struct {
	conn   net.Conn
	far    *greeting // of whom it reached: what the dialer said
	notes  int       // bytes at the arena's start to which the peer may write
	more   int       // bytes of arena for its owner
	access uint32
}

// open connects a virtual device's QPs with the peer's; mem is the notes.
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

// room makes the arena for n QPs and shows it to the NICs.
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

// queues makes n QPs, one NIC after another, and says what to show of them
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
	// Twice as many sends: data and notice.
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

// newQP makes a QP of a NIC, in INIT.
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

// take finds a free request.
func (k *comm) take(kind int) (*request, uint64) {
	for i := range k.reqs {
		if r := &k.reqs[i]; r.kind == free {
			*r = request{c: k, kind: kind}
			return r, uint64(i)
		}
	}
	return nil, 0
}

// perMessage is over how many QPs one message goes.
func (k *comm) perMessage() int {
	if k.net.set.SplitData {
		return len(k.qps)
	}
	return k.perOp
}

// nextQP is the next, round-robin.
func (k *comm) nextQP() *queuePair {
	q := k.qps[k.qpAt]
	k.qpAt = (k.qpAt + 1) % len(k.qps)
	return q
}

// alive returns why the connection cannot continue.
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

// progress handles the completions that are there.
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

// completed books one completion of a NIC.
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

// qp finds a QP by its NIC and number.
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

// kindVerbs says what a request of each kind has posted, for errors.
var kindVerbs = [...]string{free: "completion", sending: "RDMA write", receiving: "receive or CTS write",
	flushing: "RDMA read (flush)"}

// Register makes memory known to the connection's NICs.
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

// memory is registered with every NIC of its connection.
type memory struct {
	mem []byte
	of  *comm
	mrs []*verbs.MR // by NIC
}

// Bytes is the memory.
func (m *memory) Bytes() []byte { return m.mem }

// Release ends the registrations.
func (m *memory) Release() error {
	var c verbs.Closing
	for i, mr := range m.mrs {
		c.Keep(m.of.nics[i].dev.Release(mr))
	}
	return c.First
}

// at gives the local address and keys of a part of registered memory.
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

// free ends the QPs and leaves the socket by which they were set up.
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
