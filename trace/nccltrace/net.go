package nccltrace

import (
	"fmt"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// nicTracks are the tracks of one NIC: a block of lanes for each queue pair.
type nicTracks struct {
	base trace.Track
	qps  []qpTracks
}

type qpTracks struct {
	peer  int
	lanes trace.Lanes
	ids   []trace.TrackID
}

const qpLanes = 100

// NIC declares a network port and returns its handle.
func (r *Recorder) NIC(name string, node int) int {
	n := len(r.nics)
	r.nics = append(r.nics, nicTracks{base: trace.Track{
		Process: NICPID + int64(n), ProcessSort: 100000 + int64(n),
		ProcessName: fmt.Sprintf("NIC %s · node %d", name, node)}})
	return n
}

// QP declares a queue pair of a NIC towards a rank and returns its handle.
func (r *Recorder) QP(nic, peer int) int {
	t := &r.nics[nic]
	t.qps = append(t.qps, qpTracks{peer: peer})
	return len(t.qps) - 1
}

// WorkRequest describes one work request from post to completion.
type WorkRequest struct {
	NIC, QP int
	Device  string
	QPNum   int64
	Opcode  string // RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ, …
	ID      int64
	Size    units.Bytes
}

// Work writes a work request on its queue pair's lanes.
func (r *Recorder) Work(start, end units.Time, w WorkRequest) {
	if !r.Wanted(DetailStep) || r.opt.Mask&MaskNetPlugin == 0 {
		return
	}
	t := &r.nics[w.NIC]
	q := &t.qps[w.QP]
	lane := q.lanes.Place(start, end)
	if lane >= len(q.ids) {
		tr := t.base
		tid := int64(qpLanes*(w.QP+1) + lane)
		if lane >= qpLanes {
			tid = int64(1<<20+(w.QP*4096)) + int64(lane)
			r.overflow++
		}
		tr.Thread, tr.ThreadSort = tid, tid
		tr.ThreadName = fmt.Sprintf("QP %d → rank %d", w.QP, q.peer)
		q.ids = append(q.ids, r.sink.Track(tr))
	}
	r.slice(q.ids[lane], start, end, "NET_IB", "Qp", append(r.args[:0], trace.Str("device", w.Device),
		trace.Int("qp_num", w.QPNum), trace.Str("opcode", w.Opcode), trace.Int("wr_id", w.ID), trace.Int("size", int64(w.Size))))
}

// linkTrack is one directed link: a counter of its rate and, at packet detail,
// lanes of its transfers.
type linkTrack struct {
	name, counter string
	id            trace.TrackID
	registered    bool
	last          float64
	lastAt        units.Time
	lanes         trace.Lanes
	ids           []trace.TrackID
}

// Link declares a directed link and returns its handle.
func (r *Recorder) Link(name string) int {
	r.links = append(r.links, linkTrack{name: name, counter: name + " GB/s"})
	return len(r.links) - 1
}

func (r *Recorder) linkTrack(link, lane int) trace.TrackID {
	tid := int64(link + 1)
	if lane > 0 {
		tid = int64(1000+len(r.links)) + int64(lane)*100000 + int64(link)
	}
	return r.sink.Track(trace.Track{Process: LinksPID, ProcessName: "links", ProcessSort: 200000,
		Thread: tid, ThreadSort: int64(link+1)*1000 + int64(lane), ThreadName: r.links[link].name})
}

// Rate writes the load of a link from at on; equal loads are written once.
func (r *Recorder) Rate(link int, at units.Time, gbps float64) {
	l := &r.links[link]
	if !r.Wanted(DetailStep) || gbps == l.last {
		return
	}
	if !l.registered {
		l.id, l.registered = r.linkTrack(link, 0), true
	}
	l.last, l.lastAt = gbps, at
	r.counter(l.id, at, l.counter, "GB/s", gbps)
}

func (r *Recorder) counter(track trace.TrackID, at units.Time, name, key string, v float64) {
	r.event = trace.Event{Phase: trace.Counter, Track: track, Start: at, Name: name, Args: append(r.args[:0], trace.Num(key, v))}
	r.sink.Emit(&r.event)
}

// Transfer writes one transfer's time on a link (packet detail).
func (r *Recorder) Transfer(link int, start, end units.Time, src, dst, channel int, bytes units.Bytes) {
	if !r.Wanted(DetailPacket) {
		return
	}
	l := &r.links[link]
	lane := l.lanes.Place(start, end)
	if lane >= len(l.ids) {
		l.ids = append(l.ids, r.linkTrack(link, lane))
	}
	r.slice(l.ids[lane], start, end, "link", "transfer", append(r.args[:0], trace.Int("src", int64(src)),
		trace.Int("dst", int64(dst)), trace.Int("Channel", int64(channel)), trace.Int("bytes", int64(bytes))))
}

// LinkEvent writes an instant of the network: retransmit, cnp, link down.
func (r *Recorder) LinkEvent(link int, at units.Time, name, reason string) {
	if !r.Wanted(DetailOp) {
		return
	}
	r.event = trace.Event{Phase: trace.Instant, Track: r.linkTrack(link, 0), Start: at, Cat: "sim", Name: name,
		Args: append(r.args[:0], trace.Str("reason", reason))}
	r.sink.Emit(&r.event)
}

// Critical writes one slice of the critical path: what the end of the run
// waited for. Slices follow each other without overlap.
func (r *Recorder) Critical(start, end units.Time, name string, rank, channel int) {
	if !r.Wanted(DetailChannel) || end <= start {
		return
	}
	id := r.sink.Track(trace.Track{Process: CriticalPID, ProcessName: "critical path", ProcessSort: -1,
		Thread: 1, ThreadName: "critical path"})
	r.slice(id, start, end, "critical", name, append(r.args[:0], trace.Int("Rank", int64(rank)), trace.Int("Channel", int64(channel))))
}

// Finish closes every counter with zero at the end of the run. It does not
// close the sink.
func (r *Recorder) Finish(end units.Time) {
	if r.off {
		return
	}
	for i := range r.links {
		l := &r.links[i]
		if l.last != 0 {
			r.Rate(i, max(end, l.lastAt), 0)
		}
	}
}
