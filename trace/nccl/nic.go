package nccl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// overflowNIC is the first process number of ports beyond the reserved ones.
const overflowNIC int64 = 5000000

const (
	nicsPerNode = 128
	qpLanes     = 100
	// Thread numbers below the process numbers suffice for this many queue pairs; further ones, and further
	// lanes of links, start high.
	lowQPs  = 9999
	highTID = 1 << 28
	portTID = 1
)

// Port is a network port. Node and Net (its number on the node) determine its process number, so every
// process of a run and every simulation uses the same.
type Port struct {
	Node, Net int
	Name      string
	Sockets   bool // TCP: its lanes are sockets
}

// nicTracks are the tracks of one port: a block of lanes for each queue pair, and counters of requests in
// flight.
type nicTracks struct {
	port    Port
	base    trace.Track
	qps     []qpTracks
	whole   trace.TrackID
	known   bool
	bytes   units.Bytes // posted and not yet completed
	depth   int64
	pending []change // by time
	last    units.Time
}

// change is the effect of a post or completion on a port's counters.
type change struct {
	at    units.Time
	bytes units.Bytes
	wrs   int64
}

type qpTracks struct {
	number int
	name   string
	lanes  trace.Lanes
	ids    []trace.TrackID
}

// NIC declares a port and returns its handle.
func (r *Recorder) NIC(p Port) int {
	for i := range r.nics {
		if q := &r.nics[i].port; q.Node == p.Node && q.Net == p.Net {
			return i
		}
	}
	n := len(r.nics)
	pid := NICPID + int64(p.Node)*nicsPerNode + int64(p.Net)
	if p.Net < 0 || p.Net >= nicsPerNode || pid >= LinksPID {
		pid = overflowNIC + int64(n)
	}
	r.nics = append(r.nics, nicTracks{port: p, base: trace.Track{
		Process: pid, ProcessSort: pid - NICPID + 100000,
		ProcessName: fmt.Sprintf("NIC %s · node %d", p.Name, p.Node)}})
	return n
}

// QPRole is the traffic of a queue pair as seen from its port: data out, data in, or flush reads.
type QPRole uint8

// Roles: a connection's outgoing data; its incoming data (and outgoing clear-to-sends); the reads that flush
// received data.
const (
	QPOut QPRole = iota
	QPIn
	QPFlush
)

var qpWord = [...]string{"→ rank", "← rank", "flush ← rank"}

// QP declares a queue pair (or socket) of a port, numbered there from 1, and returns its handle.
func (r *Recorder) QP(nic, number, peer, channel int, role QPRole) int {
	t := &r.nics[nic]
	word := "QP"
	if t.port.Sockets {
		word = "socket"
	}
	t.qps = append(t.qps, qpTracks{number: number, name: fmt.Sprintf("%s %d %s %d · ch %02d", word, number,
		qpWord[role], peer, channel)})
	return len(t.qps) - 1
}

// FirstQP returns the number of the first queue pair of the n-th connection end of a port (n from 1), where
// each end has qps queue pairs for data and one for flushes.
func FirstQP(n, qps int32) int32 { return (n-1)*(qps+1) + 1 }

// Opcodes of work requests, as verbs names them.
const (
	OpCTS      = "CTS RDMA_WRITE" // inline, without a completion of its own
	OpWrite    = "RDMA_WRITE"
	OpWriteImm = "RDMA_WRITE_WITH_IMM"
	OpRead     = "RDMA_READ"
	OpSend     = "send" // of sockets
	OpRecv     = "recv"
)

// WorkRequest describes a work request from post to completion.
type WorkRequest struct {
	NIC, QP int    // handles
	Rank    int    // rank of the connection
	Device  string // empty: the port's name
	QPNum   int64
	Opcode  string
	ID      int64
	Size    units.Bytes
	Terms   Terms
}

// sends reports whether the request is data, or a read, in flight from the port. A clear-to-send is not: it
// has no completion.
func (w *WorkRequest) sends() bool { return w.Opcode != OpCTS && w.Opcode != OpRecv }

// Posted counts a work request as outstanding from at on, until the end of its Work.
func (r *Recorder) Posted(at units.Time, w *WorkRequest) {
	if r.on(DetailStep, MaskNetPlugin, w.Rank) && w.sends() {
		r.nics[w.NIC].note(change{at, w.Size, 1})
	}
}

// Settle writes a port's counters up to a time; no earlier event may follow.
func (r *Recorder) Settle(nic int, to units.Time) { r.nics[nic].settle(r, to) }

// Work writes a work request on its queue pair's lanes.
func (r *Recorder) Work(start, end units.Time, w *WorkRequest) {
	if !r.on(DetailStep, MaskNetPlugin, w.Rank) {
		return
	}
	t := &r.nics[w.NIC]
	if w.sends() {
		t.note(change{end, -w.Size, -1})
	}
	q := &t.qps[w.QP]
	track := r.qpTrack(t, q, q.lanes.Place(start, end))
	cat, name, a := "NET_IB", "Qp", r.args[:0]
	if t.port.Sockets {
		cat, name = "NET_SOCK", "Sock"
		a = append(a, trace.Int("sock", w.QPNum), trace.Str("op", w.Opcode), trace.Int("size", int64(w.Size)))
	} else {
		a = t.args(a, w, w.Opcode)
	}
	r.slice(track, start, end, cat, name, w.Terms.args(a))
}

// Arrival writes the instant of the completion that notifies a receiver of its data.
func (r *Recorder) Arrival(at units.Time, w *WorkRequest) {
	if !r.on(DetailStep, MaskNetPlugin, w.Rank) {
		return
	}
	t := &r.nics[w.NIC]
	r.event = trace.Event{Phase: trace.Instant, Track: r.qpTrack(t, &t.qps[w.QP], 0), Start: at,
		Cat: "NET_IB", Name: "CQE",
		Args: t.args(r.args[:0], w, "RECV_"+OpWriteImm)}
	r.sink.Emit(&r.event)
}

// args appends a request's arguments, in NCCL's order.
func (t *nicTracks) args(a []trace.Arg, w *WorkRequest, opcode string) []trace.Arg {
	device := cmp.Or(w.Device, t.port.Name)
	return append(a, trace.Str("device", device), trace.Int("qp_num", w.QPNum), trace.Str("opcode", opcode),
		trace.Int("wr_id", w.ID), trace.Int("size", int64(w.Size)))
}

// PortEvent writes an instant on a port's track with a reason, for example that it is slow.
func (r *Recorder) PortEvent(nic int, at units.Time, name, reason string) {
	if r.Wanted(DetailOp) {
		r.note(r.nics[nic].portTrack(r), at, name, reason)
	}
}

// RankEvent writes an instant on a rank's track with a reason.
func (r *Recorder) RankEvent(rank int, at units.Time, name, reason string) {
	if r.On(DetailOp, rank) {
		r.note(r.thread(r.rank(rank), collTID, func() string { return "collectives 0" }), at, name, reason)
	}
}

func (r *Recorder) note(track trace.TrackID, at units.Time, name, reason string) {
	r.event = trace.Event{Phase: trace.Instant, Track: track, Start: at, Cat: "sim", Name: name,
		Args: append(r.args[:0], trace.Str("reason", reason))}
	r.sink.Emit(&r.event)
}

func (r *Recorder) qpTrack(t *nicTracks, q *qpTracks, lane int) trace.TrackID {
	for n := len(q.ids); n <= lane; n++ {
		tid := int64(qpLanes*q.number + n)
		if n >= qpLanes || q.number >= lowQPs {
			tid = int64(highTID + 4096*q.number + n)
		}
		tr := t.base
		tr.Thread, tr.ThreadSort, tr.ThreadName = tid, tid, q.name
		q.ids = append(q.ids, r.sink.Track(tr))
	}
	return q.ids[lane]
}

func (t *nicTracks) note(c change) {
	i, _ := slices.BinarySearchFunc(t.pending, c, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -1) // after equal ones
	})
	t.pending = slices.Insert(t.pending, i, c)
}

func (t *nicTracks) settle(r *Recorder, to units.Time) {
	n := 0
	for n < len(t.pending) && t.pending[n].at <= to {
		t.count(r, t.pending[n])
		n++
	}
	t.pending = append(t.pending[:0], t.pending[n:]...)
}

func (t *nicTracks) count(r *Recorder, c change) {
	track := t.portTrack(r)
	at := max(c.at, t.last)
	t.last = at
	t.depth += c.wrs
	if c.bytes != 0 {
		t.bytes += c.bytes
		r.counter(track, at, t.port.Name+" in-flight B", "B", float64(t.bytes))
	}
	r.counter(track, at, t.port.Name+" SQ depth", "WRs", float64(t.depth))
}

// portTrack returns the track for events of the port as a whole.
func (t *nicTracks) portTrack(r *Recorder) trace.TrackID {
	if !t.known {
		tr := t.base
		tr.Thread, tr.ThreadSort, tr.ThreadName = portTID, portTID, "port"
		t.whole, t.known = r.sink.Track(tr), true
	}
	return t.whole
}

// drain applies a port's remaining changes, and ends its counters at the end of the run.
func (t *nicTracks) drain(r *Recorder, end units.Time) {
	for _, c := range t.pending {
		t.count(r, c)
	}
	t.pending = nil
	if t.depth != 0 {
		t.count(r, change{end, -t.bytes, -t.depth})
	}
}
