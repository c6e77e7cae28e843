package ibv

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"structs"
	"time"

	"github.com/simccl/simccl/real/transport"
)

// Requests under way per connection, and FIFO slots (net_ib.cc,
// MAX_REQUESTS = NCCL_NET_MAX_REQUESTS).
const maxRequests = 32

// cts is one entry of the clear-to-send FIFO, which the receiver writes into
// the sender's memory (net_ib.cc, struct ncclIbSendFifo).
type cts struct {
	_     structs.HostLayout
	addr  uint64
	size  uint64
	rkey  uint32
	nreqs uint32
	tag   int32
	_     uint32
	idx   uint64 // written last by the NIC's order; slot number + 1
	_     [24]byte
}

const ctsSize = 64

// fifoBytes holds all slots of one direction.
const fifoBytes = maxRequests * transport.MaxRecvs * ctsSize

// hello is what both sides tell each other over TCP.
type hello struct {
	Token [16]byte
	QPs   []Address
	// Fifo: the sender's CTS FIFO; the receiver's array of message sizes.
	Addr uint64
	Rkey uint32
	Dev  string
}

var errStranger = errors.New("refused: the peer does not show the handle's token")

func newToken() (t [16]byte, err error) {
	_, err = rand.Read(t[:])
	return t, err
}

// comm is what both ends have.
type comm struct {
	net   *Net
	dev   *Device
	port  Port
	conn  net.Conn
	arena *Arena
	cq    *CQ
	qps   []*QP
	qpAt  int // next QP, in step on both sides
	reqs  [maxRequests]request
	own   *MR
	peer  string
	far   hello
	err   error
	watch *watcher // nil: nobody
	// multi reads the size of message i of a slot, where the sender wrote it.
	multi func(slot, i int) int32
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
	events int
	sizes  [transport.MaxRecvs]int
	n      int
	tag    int32
	slot   int
	buf    transport.Buf
	// group are the requests that end with this one: all messages of a
	// multi-receive go out as one chain.
	group [transport.MaxRecvs]*request
}

// open creates the queues and tells the peer, in either order of roles.
func (n *Net) open(dev int, c net.Conn, token [16]byte, first bool, fifo int) (*comm, []byte, error) {
	p := n.port[dev]
	k := &comm{net: n, dev: n.devs[p.Device], port: p, conn: c}
	var err error
	if k.arena, err = NewArena(fifo + 64<<10); err != nil {
		return nil, nil, err
	}
	mem, err := k.arena.Take(fifo)
	if err != nil {
		return nil, nil, err
	}
	depth := 2 * maxRequests * (transport.MaxRecvs + 1)
	if k.cq, err = k.dev.NewCQ(k.arena, depth*n.set.QPs); err != nil {
		return nil, nil, err
	}
	me := hello{Token: token, Dev: p.Device}
	gid, err := k.dev.GID(p.Num, n.gid[dev])
	if err != nil {
		return nil, nil, err
	}
	for range n.set.QPs {
		q, err := k.dev.NewQP(k.arena, k.cq, depth)
		if err != nil {
			return nil, nil, err
		}
		if err := q.Init(p.Num, *n.set.Service); err != nil {
			return nil, nil, err
		}
		k.qps = append(k.qps, q)
		me.QPs = append(me.QPs, Address{QPN: q.Num, LID: p.LID, GID: gid, MTU: p.MTU, Layer: p.Layer})
	}
	if k.own, err = k.dev.Register(k.arena.Bytes(), false); err != nil {
		return nil, nil, err
	}
	me.Addr, me.Rkey = uint64(address(mem)), k.own.Rkey
	for i := range k.reqs {
		k.reqs[i].c = k
	}
	if err := k.introduce(&me, first); err != nil {
		return nil, nil, err
	}
	return k, mem, k.join(n.gid[dev])
}

// introduce exchanges hellos; the dialer speaks first.
func (k *comm) introduce(me *hello, first bool) error {
	k.conn.SetDeadline(time.Now().Add(setupTime))
	defer k.conn.SetDeadline(time.Time{})
	k.peer = k.conn.RemoteAddr().String()
	if first {
		if err := writeHello(k.conn, me); err != nil {
			return err
		}
	}
	far, err := readHello(k.conn)
	if err != nil {
		if !first {
			return errStranger
		}
		return fmt.Errorf("set-up with %s: %w", k.peer, err)
	}
	if !bytes.Equal(far.Token[:], me.Token[:]) {
		return errStranger
	}
	k.far = *far
	if !first {
		return writeHello(k.conn, me)
	}
	return nil
}

func writeHello(w io.Writer, h *hello) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// readHello reads one line, byte by byte: nothing behind it may be swallowed.
func readHello(r io.Reader) (*hello, error) {
	var line []byte
	var b [1]byte
	for len(line) < 64<<10 {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			h := new(hello)
			return h, json.Unmarshal(line, h)
		}
		line = append(line, b[0])
	}
	return nil, errors.New("set-up message is too long")
}

// join connects the QPs pairwise and waits until both sides have.
func (k *comm) join(gidIndex int) error {
	if len(k.far.QPs) != len(k.qps) {
		return fmt.Errorf("%s has %d QPs per connection, %s has %d: set NCCL_IB_QPS_PER_CONNECTION alike", k.far.Dev, len(k.far.QPs), k.dev.Name, len(k.qps))
	}
	for i, q := range k.qps {
		to := k.far.QPs[i]
		if to.Layer != k.port.Layer {
			return fmt.Errorf("%s speaks another link layer than %s", k.far.Dev, k.dev.Name)
		}
		if err := q.Connect(k.port, gidIndex, to, *k.net.set.Service, k.peer+"/"+k.far.Dev); err != nil {
			return err
		}
	}
	// Both must be ready to receive before the first CTS or write goes out.
	k.conn.SetDeadline(time.Now().Add(setupTime))
	defer k.conn.SetDeadline(time.Time{})
	if _, err := k.conn.Write([]byte{'R'}); err != nil {
		return err
	}
	var b [1]byte
	if _, err := io.ReadFull(k.conn, b[:]); err != nil || b[0] != 'R' {
		return fmt.Errorf("set-up with %s: the peer did not become ready: %w", k.peer, err)
	}
	return nil
}

// take finds a free request.
func (k *comm) take(kind int) (*request, int) {
	for i := range k.reqs {
		if r := &k.reqs[i]; r.kind == free {
			*r = request{c: k, kind: kind}
			return r, i
		}
	}
	return nil, -1
}

func (k *comm) index(r *request) int {
	for i := range k.reqs {
		if &k.reqs[i] == r {
			return i
		}
	}
	return -1
}

// qpsPerOp is over how many QPs one operation goes.
func (k *comm) qpsPerOp() int {
	if k.net.set.SplitData {
		return len(k.qps)
	}
	return 1
}

// progress handles the completions that are there.
func (k *comm) progress() error {
	if k.err != nil {
		return k.err
	}
	wcs, err := k.cq.Poll()
	if err != nil {
		k.err = err
		return err
	}
	for i := range wcs {
		wc := &wcs[i]
		r := &k.reqs[wc.wrID%maxRequests]
		if wc.status != statusSuccess {
			k.err = k.qps[0].failure(verbs[r.kind], wc)
			return k.err
		}
		if wc.opcode != wcRecvRDMAImm {
			k.watch.completed(wc.qpNum, wc.wrID)
		}
		if wc.opcode == wcRecvRDMAImm && r.n == 1 {
			r.sizes[0] = int(swap32(wc.imm))
		}
		if r.kind != sending {
			r.events--
			continue
		}
		for _, g := range r.group {
			if g != nil {
				g.events--
			}
		}
	}
	if len(wcs) == 0 {
		k.dev.WatchAsync()
		k.err = k.dev.Err()
	}
	return k.err
}

var verbs = [...]string{free: "completion", sending: "RDMA write", receiving: "receive or CTS write", flushing: "RDMA read (flush)"}

// Register makes memory known to the connection's NIC.
func (k *comm) Register(mem []byte) (transport.Memory, error) {
	mr, err := k.dev.Register(mem, k.net.set.Relaxed)
	if err != nil {
		return nil, err
	}
	return &memory{mem: mem, mr: mr, dev: k.dev}, nil
}

type memory struct {
	mem []byte
	mr  *MR
	dev *Device
}

func (m *memory) Bytes() []byte  { return m.mem }
func (m *memory) Release() error { return m.dev.Release(m.mr) }

// at gives the local address and keys of a part of registered memory.
func at(b transport.Buf) (uintptr, *MR, error) {
	m, ok := b.Mem.(*memory)
	if !ok || b.Off < 0 || b.Size < 0 || b.Off+b.Size > len(m.mem) {
		return 0, nil, fmt.Errorf("buffer of %d bytes at %d is not inside registered memory of this transport", b.Size, b.Off)
	}
	return address(m.mem) + uintptr(b.Off), m.mr, nil
}

// close frees the connection; the other side's requests fail.
func (k *comm) close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	k.err = transport.ErrClosed
	for _, q := range k.qps {
		keep(q.Close())
	}
	keep(k.cq.Close())
	keep(k.dev.Release(k.own))
	keep(k.conn.Close())
	keep(k.arena.Close())
	return first
}
