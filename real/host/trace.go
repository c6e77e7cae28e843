package host

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/transport"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// log keeps the times of one run until it is over; what it keeps of a
// connection's end belongs to the one goroutine that uses the end. Only then
// are events written, so that a viewer's lanes fill in the order of time and
// the run is not held up by a sink.
type log struct {
	began time.Time
	sends [][]piece // by connection id
	recvs [][]piece
	mu    sync.Mutex
	lanes []span
}

// now is nanoseconds since the run began; 0 where nobody watches.
func (l *log) now() int64 {
	if l == nil {
		return 0
	}
	return time.Since(l.began).Nanoseconds()
}

// piece is one message as a program saw it: it waited from began, moved data
// from moving on, and was done at end.
type piece struct {
	began, moving, end int64
	bytes              int64
	chunk              int32
	first              bool // message of its op: it carries the arrow
}

// hop is one message as the network saw it.
type hop struct{ from, to, flushed int64 }

// span is a rank's channel in its kernel.
type span struct {
	rank, channel int32
	from, to      int64
}

func (l *log) kernel(n *lane, began int64) {
	to := l.now()
	l.mu.Lock()
	l.lanes = append(l.lanes, span{n.rank, n.channel, began, to})
	l.mu.Unlock()
}

// note keeps a slice for each connection whose message it ends.
func (r *runner) note(p piece) {
	l, op := r.x.log, &r.op
	if op.Do&plan.HoldRecv == 0 {
		for _, id := range op.From {
			l.recvs[id] = append(l.recvs[id], p)
		}
	}
	if op.Do&plan.HoldSend == 0 {
		for _, id := range op.To {
			l.sends[id] = append(l.sends[id], p)
		}
	}
}

// watch prepares the run for a sink.
func (s *Session) watch(sink trace.Sink) {
	s.x.log = nil
	if sink != trace.Discard {
		n := s.x.p.NumConns()
		s.x.log = &log{began: time.Now(), sends: make([][]piece, n), recvs: make([][]piece, n)}
	}
	for _, q := range s.pumps {
		q.log = s.x.log
		for _, o := range q.sends {
			o.hops = o.hops[:0]
			s.watchWork(o.comm, &o.works)
		}
		for _, i := range q.recvs {
			i.hops, i.asked = i.hops[:0], [plan.FIFOSteps]int64{}
			s.watchWork(i.comm, &i.works)
		}
	}
}

// watchWork has a connection report its work requests, where it can.
func (s *Session) watchWork(c any, to *[]transport.Work) {
	*to = (*to)[:0]
	w, can := c.(transport.Watched)
	switch {
	case !can:
	case s.x.log == nil:
		w.Watch(nil)
	default:
		w.Watch(func(k transport.Work) { *to = append(*to, k) })
	}
}

// stepEvent is a step ready to be written.
type stepEvent struct {
	step   nccltrace.Step
	flow   int64
	phases []nccltrace.Phase
}

func (e *stepEvent) end() units.Time { return e.phases[len(e.phases)-1].End }

// tell writes what was kept of the run.
func (s *Session) tell(sink trace.Sink, res *exec.Result) {
	l := s.x.log
	if l == nil {
		return
	}
	rec := nccltrace.New(sink, s.e.cfg.Trace)
	for _, r := range s.ranks {
		rec.AddRank(nccltrace.Rank{Rank: int(r), Node: int(s.x.p.Comm.NodeOf[r]), GPU: int(s.x.p.Comm.LocalRank[r]), Host: fmt.Sprintf("node%d", s.x.p.Comm.NodeOf[r])})
	}
	slices.SortFunc(l.lanes, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.channel, b.channel))
	})
	for _, k := range l.lanes {
		rec.Kernel(int(k.rank), 0, int(k.channel), at(k.from), at(max(k.to, k.from+1)), &nccltrace.Terms{})
	}
	if rec.Wanted(nccltrace.DetailStep) {
		s.tellSteps(rec)
		s.tellWork(rec)
	}
	s.tellOperation(rec, res)
	rec.Finish(res.Elapsed)
}

func at(ns int64) units.Time { return units.Time(ns) * units.Nanosecond }

// tellSteps writes both ends of every message, in the order of their ends.
func (s *Session) tellSteps(rec *nccltrace.Recorder) {
	out, in := map[int32]*outgoing{}, map[int32]*incoming{}
	for _, q := range s.pumps {
		for _, o := range q.sends {
			out[o.conn.ID] = o
		}
		for _, i := range q.recvs {
			in[i.conn.ID] = i
		}
	}
	var all []stepEvent
	for id := range s.x.log.sends {
		c := s.x.p.Conn(int32(id))
		for k, p := range s.x.log.sends[id] {
			e := s.event(&c, nccltrace.Send, k, &p)
			e.sent(&p, out[c.ID], k)
			all = append(all, e)
		}
		for k, p := range s.x.log.recvs[id] {
			e := s.event(&c, nccltrace.Recv, k, &p)
			e.received(&p, in[c.ID], k)
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b stepEvent) int { return cmp.Compare(a.end(), b.end()) })
	for i := range all {
		rec.Steps(&all[i].step, all[i].flow, all[i].phases...)
	}
}

// event describes a connection's k-th message. It gets an arrow where both of
// its ends are of this process: the trace of another one is another file.
func (s *Session) event(c *plan.Conn, d nccltrace.Dir, k int, p *piece) stepEvent {
	e := stepEvent{step: nccltrace.Step{Rank: int(c.Src), Peer: int(c.Dst), Channel: int(c.Channel), Dir: d, Step: int64(k),
		Slot: k % plan.FIFOSteps, Bytes: units.Bytes(p.bytes), Transport: s.word(c), Chunk: int64(p.chunk)}}
	if d == nccltrace.Recv {
		e.step.Rank, e.step.Peer = e.step.Peer, e.step.Rank
	}
	if p.first && s.x.mem[c.Src] != nil && s.x.mem[c.Dst] != nil {
		e.flow = int64(c.ID)<<24 + int64(k) + 1
	}
	return e
}

// word names the transport: the net's, or the one that the FIFO stands for.
func (s *Session) word(c *plan.Conn) string {
	if w := s.e.cfg.Wire; w != nil {
		return "NET/" + w.Net.Name()
	}
	switch {
	case c.Kind == connect.NVLSRoute:
		return "NVLS"
	case c.Route.Transport == connect.SHM:
		return "SHM"
	}
	return "P2P/CUMEM"
}

// sent fills the phases of a send; without a net the copy is all.
func (e *stepEvent) sent(p *piece, o *outgoing, k int) {
	if o == nil || k >= len(o.hops) {
		e.phases = []nccltrace.Phase{phase(nccltrace.SendWait, p.moving, max(p.end, p.moving+2))}
		return
	}
	h := o.hops[k]
	from := max(h.from, p.end)
	e.phases = []nccltrace.Phase{phase(nccltrace.SendGPUWait, p.began, p.end), phase(nccltrace.SendPeerWait, p.end, from),
		phase(nccltrace.SendWait, from, max(h.to, from+2))}
}

// received fills the phases of a receive.
func (e *stepEvent) received(p *piece, i *incoming, k int) {
	if i == nil || k >= len(i.hops) {
		to := max(p.end, 2)
		e.phases = []nccltrace.Phase{phase(nccltrace.RecvWait, min(p.began, to-2), to)}
		return
	}
	h := i.hops[k]
	came := max(h.to, 2)
	flushed := max(h.flushed, came)
	e.phases = []nccltrace.Phase{phase(nccltrace.RecvWait, min(h.from, came-2), came), phase(nccltrace.RecvFlushWait, came, flushed),
		phase(nccltrace.RecvGPUWait, flushed, max(p.end, flushed))}
}

func phase(w nccltrace.Wait, from, to int64) nccltrace.Phase {
	return nccltrace.Phase{Wait: w, Start: at(from), End: at(to)}
}

// tellWork writes the work requests of every NIC, a queue pair a lane.
func (s *Session) tellWork(rec *nccltrace.Recorder) {
	type item struct {
		rank, peer int32
		w          transport.Work
	}
	var all []item
	for _, q := range s.pumps {
		for _, o := range q.sends {
			for _, w := range o.works {
				all = append(all, item{q.rank, o.conn.Dst, w})
			}
		}
		for _, i := range q.recvs {
			for _, w := range i.works {
				all = append(all, item{q.rank, i.conn.Src, w})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b item) int { return a.w.Done.Compare(b.w.Done) })
	nics := map[string]int{}
	qps := map[string]int{}
	for _, it := range all {
		dev := it.w.Device
		nic, known := nics[dev]
		if !known {
			nic = rec.NIC(nccltrace.Port{Node: int(s.x.p.Comm.NodeOf[it.rank]), Net: len(nics), Name: dev})
			nics[dev] = nic
		}
		key := fmt.Sprint(dev, "/", it.w.QP)
		qp, known := qps[key]
		if !known {
			qp = rec.QP(nic, len(qps)+1, int(it.peer), 0, nccltrace.QPOut)
			qps[key] = qp
		}
		from := max(it.w.Posted.Sub(s.x.log.began).Nanoseconds(), 0)
		to := max(it.w.Done.Sub(s.x.log.began).Nanoseconds(), from+1)
		rec.Work(at(from), at(to), nccltrace.WorkRequest{NIC: nic, QP: qp, Rank: int(it.rank), QPNum: int64(it.w.QP), Opcode: it.w.Opcode, ID: int64(it.w.ID), Size: units.Bytes(it.w.Size)})
	}
}

// tellOperation writes the operation of every local rank.
func (s *Session) tellOperation(rec *nccltrace.Recorder, res *exec.Result) {
	req := &s.x.p.Req
	for _, r := range s.ranks {
		if req.Func >= coll.NumCollFuncs {
			rec.PointToPoint(nccltrace.Operation{Rank: int(r), End: res.Elapsed}, nccltrace.P2P{CommHash: "0x1", Peer: int(r), Count: req.Count, Datatype: req.Type.String(), NChannels: s.x.p.Comm.P2PChannels})
			continue
		}
		l := s.x.p.Layout(r)
		rec.Collective(nccltrace.Operation{Rank: int(r), End: res.Elapsed}, nccltrace.Coll{Func: req.Func.String(), SeqNum: 1, CommHash: "0x1", Count: req.Count,
			Datatype: req.Type.String(), Algorithm: req.Algo.LogName(), Protocol: req.Proto.LogName(), NChannels: s.x.p.Split.NChannels,
			Bytes: max(l.Input, l.Output), AlgBW: res.AlgBW, BusBW: res.BusBW})
	}
}
