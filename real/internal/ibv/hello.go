package ibv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/real/internal/verbs"
)

// A connection is set up over TCP, in NCCL's order (net_ib.cc:1354): both sides send their number of NICs, so
// that both make the same number of QPs; the dialer sends its QPs; the other side connects its own to them
// and sends those; the dialer connects and signals that it is ready.

// greeting is the first message of both sides.
type greeting struct {
	NICs int
	QPs  int // per NIC
}

// hello describes one side's QPs and memory.
type hello struct {
	NICs []verbs.Address
	QPs  []farQP
	// Addr is the address of the sender's CTS FIFO, or of the receiver's array of message sizes.
	Addr   uint64
	SL, TC uint8
}

// farQP is a QP as its owner describes it.
type farQP struct {
	Num uint32
	NIC int
	ECE *verbs.ECE `json:",omitempty"`
}

func writeLine(w io.Writer, what any) error {
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// maxLine bounds the bytes of a line from a peer: 128 QPs of four NICs.
const maxLine = 64 << 10

// readLine reads one line of JSON byte by byte, so that nothing after it is consumed.
func readLine(r io.Reader, what any) error {
	var line []byte
	var b [1]byte
	for len(line) < maxLine {
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return err
		}
		if b[0] == '\n' {
			return json.Unmarshal(line, what)
		}
		line = append(line, b[0])
	}
	return errors.New("set-up message is too long")
}

// greet exchanges greetings and returns the number of QPs of the connection. The dialer sends first; far is
// the greeting that the other side has already received.
func (k *comm) greet(far *greeting) (qps int, err error) {
	me := greeting{NICs: len(k.nics), QPs: k.net.set.QPsPerPort()}
	dials := far == nil
	if err := writeLine(k.conn, &me); err != nil {
		return 0, err
	}
	if dials {
		far = new(greeting)
		if err := readLine(k.conn, far); err != nil {
			return 0, err
		}
	}
	switch {
	case far.QPs != me.QPs:
		return 0, fmt.Errorf("the peer has %d QPs per connection, this side %d: set "+
			"NCCL_IB_QPS_PER_CONNECTION to one value on both", far.QPs, me.QPs)
	case far.NICs < 1 || far.NICs > maxNICs:
		return 0, fmt.Errorf("the peer has %d NICs, not 1 to %d", far.NICs, maxNICs)
	}
	k.perOp = max(far.NICs, me.NICs)
	return me.QPs * k.perOp, nil
}

// meet exchanges hellos and connects the QPs.
func (k *comm) meet(me *hello, dials bool) error {
	set := &k.net.set
	if dials {
		me.SL, me.TC = set.Service.SL, set.Service.TC
		if err := k.offerECE(me); err != nil {
			return err
		}
		if err := writeLine(k.conn, me); err != nil {
			return err
		}
	}
	if err := readLine(k.conn, &k.far); err != nil {
		return err
	}
	if err := k.fits(); err != nil {
		return err
	}
	s := *set.Service
	// The receiver's packets carry only clear-to-sends.
	if s.SL, s.TC = k.far.SL, k.far.TC; !dials && set.FifoTC.Or(-1) != -1 {
		s.TC = uint8(set.FifoTC.Value)
	}
	for i, q := range k.qps {
		to := &k.far.QPs[i]
		q.far = to.NIC
		if err := k.connect(q, to, s, me, i, dials); err != nil {
			return err
		}
	}
	if !dials {
		me.SL, me.TC = k.far.SL, k.far.TC
		return writeLine(k.conn, me)
	}
	return nil
}

// connect brings one QP up. Extensions are those of the dialer's NIC that the other NIC has too
// (net_ib.cc:1802).
func (k *comm) connect(q *queuePair, to *farQP, s netcfg.Service, me *hello, i int, dials bool) error {
	known := false
	if to.ECE != nil {
		var err error
		if known, err = q.SetExtensions(to.ECE); err != nil {
			return err
		}
	}
	if err := q.Connect(&k.nics[q.nic].near, &k.far.NICs[to.NIC], to.Num, s, k.peer+"/"+
		k.far.NICs[to.NIC].Device); err != nil {
		return err
	}
	if dials || !known {
		return nil
	}
	both, err := q.Extensions()
	me.QPs[i].ECE = both
	return err
}

func (k *comm) offerECE(me *hello) (err error) {
	for i, q := range k.qps {
		if k.net.set.ECEOff {
			break
		}
		if me.QPs[i].ECE, err = q.Extensions(); err != nil {
			return err
		}
	}
	return nil
}

// fits checks the peer's hello.
func (k *comm) fits() error {
	far := &k.far
	if len(far.QPs) != len(k.qps) || len(far.NICs) < 1 || len(far.NICs) > maxNICs {
		return fmt.Errorf("the peer shows %d QPs of %d NICs, %d QPs are to be connected", len(far.QPs),
			len(far.NICs), len(k.qps))
	}
	for _, n := range far.NICs {
		if near := k.nics[0].near.Port; n.Layer != near.Layer {
			return fmt.Errorf("%s has another link layer (%v) than %s (%v): choose NICs of one link layer "+
				"with NCCL_IB_HCA", n.Device, n.Layer, near.Device, near.Layer)
		}
	}
	for _, q := range far.QPs {
		if q.NIC < 0 || q.NIC >= len(far.NICs) {
			return fmt.Errorf("the peer shows a QP of NIC %d of %d", q.NIC, len(far.NICs))
		}
	}
	return nil
}

// ready ends the setup: the dialer, whose QPs are connected last, sends a byte.
func (k *comm) ready(dials bool) error {
	if dials {
		_, err := k.conn.Write([]byte{'R'})
		return err
	}
	var b [1]byte
	if _, err := io.ReadFull(k.conn, b[:]); err != nil {
		return fmt.Errorf("the peer did not become ready: %w", err)
	}
	if b[0] != 'R' {
		return fmt.Errorf("the peer did not become ready: it says %q", b)
	}
	return nil
}

// setup runs the whole exchange within setupTime.
func (k *comm) setup(o *opening) error {
	_ = k.conn.SetDeadline(time.Now().Add(setupTime))
	defer func() { _ = k.conn.SetDeadline(time.Time{}) }()
	n, err := k.greet(o.far)
	if err != nil {
		return err
	}
	if err := k.room(n, o); err != nil {
		return err
	}
	me, err := k.queues(n, o)
	if err != nil {
		return err
	}
	dials := o.far == nil
	if err := k.meet(me, dials); err != nil {
		return err
	}
	return k.ready(dials)
}
