package host

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// log stores the times of one run until it ends; the part for a connection's end is used only by the one
// goroutine that uses the end. Events are written after the run, so that a viewer's lanes fill in the order
// of time and the sink does not delay the run.
type log struct {
	began time.Time
	sends [][]piece // by connection id
	recvs [][]piece
	mu    sync.Mutex
	lanes []span
}

// now returns nanoseconds since the run began; 0 without a trace.
func (l *log) now() int64 {
	if l == nil {
		return 0
	}
	return time.Since(l.began).Nanoseconds()
}

// piece is one message as a program recorded it: it waited from began for data until came and for room until
// moving, and ended at end.
type piece struct {
	began, came, moving, end int64
	bytes                    int64
	chunk                    int32
	first                    bool // first message of its op: it carries the arrow
}

// terms returns the terms of a message's time that a program can record.
func (p *piece) terms() (t nccl.Terms) {
	t[nccl.Data], t[nccl.Room], t[nccl.Copy] = at(p.came-p.began), at(p.moving-p.came), at(p.end-p.moving)
	return t
}

// hop is one message as the network recorded it: first polled by the proxy, passed to the net, completed,
// flushed.
type hop struct{ tried, from, to, flushed int64 }

// span is a rank's channel in its kernel, with the terms of the last program of each phase.
type span struct {
	rank, channel int32
	from, to      int64
	terms         nccl.Terms
}

func (l *log) kernel(n *lane, began int64, terms *nccl.Terms) {
	to := l.now()
	l.mu.Lock()
	l.lanes = append(l.lanes, span{n.rank, n.channel, began, to, *terms})
	l.mu.Unlock()
}

// note records a slice for each connection whose message it completes.
func (r *runner) note(p piece) {
	l, op := r.x.log, &r.op
	t := p.terms()
	r.sum.Add(&t)
	r.end = p.end
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

// last returns the terms of the program that ended last.
func last(rs []*runner) (terms nccl.Terms) {
	end := int64(-1)
	for _, r := range rs {
		if r.end > end {
			end, terms = r.end, r.sum
		}
	}
	return terms
}

// watch prepares recording for a sink.
func (s *Session) watch(sink trace.Sink) {
	s.x.log = nil
	if sink != trace.Discard {
		n := s.x.p.NumConns()
		s.x.log = &log{began: time.Now(), sends: make([][]piece, n), recvs: make([][]piece, n)}
	}
	for _, q := range s.pumps {
		q.log, q.idle, q.still = s.x.log, q.idle[:0], 0
		for _, o := range q.sends {
			o.hops, o.tried = o.hops[:0], 0
			s.watchWork(o.comm, &o.works)
		}
		for _, i := range q.recvs {
			i.hops, i.posted = i.hops[:0], [plan.FIFOSteps]int64{}
			s.watchWork(i.comm, &i.works)
		}
	}
}

// watchWork lets a connection report its work requests, if it can.
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
	step   nccl.Step
	flow   int64
	phases []nccl.Phase
}

func (e *stepEvent) end() units.Time { return e.phases[len(e.phases)-1].End }

// trace writes the recorded events of the run.
func (s *Session) trace(sink trace.Sink, res *exec.Result) {
	l := s.x.log
	if l == nil {
		return
	}
	rec := nccl.New(sink, s.e.cfg.Trace)
	for _, r := range s.ranks {
		rec.AddRank(nccl.Rank{Rank: int(r), Node: int(s.x.p.Comm.NodeOf[r]),
			GPU: int(s.x.p.Comm.LocalRank[r]), Host: fmt.Sprintf("node%d", s.x.p.Comm.NodeOf[r])})
	}
	slices.SortFunc(l.lanes, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.channel, b.channel))
	})
	for _, k := range l.lanes {
		to := max(k.to, k.from+1)
		k.terms.Rest(nccl.Overhead, at(to-k.from))
		rec.Kernel(int(k.rank), 0, int(k.channel), at(k.from), at(to), &k.terms)
	}
	s.traceProxies(rec)
	if rec.Wanted(nccl.DetailStep) {
		s.traceSteps(rec)
		s.traceWork(rec)
	}
	s.traceOperation(rec, res)
	rec.Finish(res.Elapsed)
}

func at(ns int64) units.Time { return units.Time(ns) * units.Nanosecond }

// traceSteps writes both ends of every message, in the order of their ends.
func (s *Session) traceSteps(rec *nccl.Recorder) {
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
			e := s.event(&c, nccl.Send, k, &p)
			e.sent(&p, out[c.ID], k)
			all = append(all, e)
		}
		for k, p := range s.x.log.recvs[id] {
			e := s.event(&c, nccl.Recv, k, &p)
			e.received(&p, in[c.ID], k)
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b stepEvent) int { return cmp.Compare(a.end(), b.end()) })
	for i := range all {
		rec.Steps(&all[i].step, all[i].flow, all[i].phases...)
	}
}

// event returns the event of a connection's k-th message. Its arrow's number is the same in every process, so
// that arrows between them join when traces are merged.
func (s *Session) event(c *plan.Conn, d nccl.Dir, k int, p *piece) stepEvent {
	e := stepEvent{step: nccl.Step{Rank: int(c.Src), Peer: int(c.Dst), Channel: int(c.Channel), Dir: d,
		Step: int64(k),
		Slot: k % plan.FIFOSteps, Bytes: units.Bytes(p.bytes), Transport: s.word(c), Chunk: int64(p.chunk)}}
	if d == nccl.Recv {
		e.step.Rank, e.step.Peer = e.step.Peer, e.step.Rank
	}
	if p.first {
		e.flow = int64(c.ID)<<24 + int64(k) + 1
	}
	return e
}

// word returns the name of the transport: the net's, or the one that the FIFO represents.
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

// sent sets the phases of a send; without a net it consists of the copy only.
func (e *stepEvent) sent(p *piece, o *outgoing, k int) {
	terms := p.terms()
	if o == nil || k >= len(o.hops) {
		terms[nccl.Data], terms[nccl.Room] = 0, 0
		e.phases = []nccl.Phase{phase(nccl.SendWait, p.moving, max(p.end, p.moving+2), terms)}
		return
	}
	h := o.hops[k]
	from := max(h.from, p.end)
	var peer nccl.Terms
	peer[nccl.Proxy] = at(min(max(h.tried, p.end), from) - p.end)
	peer.Rest(nccl.CTS, at(from-p.end))
	e.phases = []nccl.Phase{phase(nccl.SendGPUWait, p.began, p.end, terms), phase(nccl.SendPeerWait, p.end,
		from, peer),
		phase(nccl.SendWait, from, max(h.to, from+2), nccl.Terms{})}
}

func (e *stepEvent) received(p *piece, i *incoming, k int) {
	if i == nil || k >= len(i.hops) {
		to := max(p.end, 2)
		e.phases = []nccl.Phase{phase(nccl.RecvWait, min(p.began, to-2), to, p.terms())}
		return
	}
	h := i.hops[k]
	came := max(h.to, 2)
	// NCCL reports this wait even if nothing is flushed (net.cc:1522).
	from, flushed := min(h.from, came-2), max(h.flushed, came+1)
	to := max(p.end, flushed)
	one := func(t nccl.Term, d int64) (terms nccl.Terms) {
		terms[t] = at(d)
		return terms
	}
	e.phases = []nccl.Phase{phase(nccl.RecvWait, from, came, one(nccl.Data, came-from)),
		phase(nccl.RecvFlushWait, came, flushed, one(nccl.Flush, flushed-came)),
		phase(nccl.RecvGPUWait, flushed, to, one(nccl.GPU, to-flushed))}
}

func phase(w nccl.Wait, from, to int64, t nccl.Terms) nccl.Phase {
	return nccl.Phase{Wait: w, Start: at(from), End: at(to), Terms: t}
}

// traceOperation writes the operation of every local rank.
func (s *Session) traceOperation(rec *nccl.Recorder, res *exec.Result) {
	req := &s.x.p.Req
	for _, r := range s.ranks {
		if req.Func.IsP2P() {
			rec.PointToPoint(nccl.Operation{Rank: int(r), End: res.Elapsed},
				nccl.P2P{CommHash: "0x1", Peer: int(r), Count: req.Count, Datatype: req.Type.String(),
					NChannels: s.x.p.Comm.P2PChannels})
			continue
		}
		l := s.x.p.Layout(r)
		rec.Collective(nccl.Operation{Rank: int(r), End: res.Elapsed}, nccl.Coll{Func: req.Func.String(),
			SeqNum: 1, CommHash: "0x1", Count: req.Count,
			Datatype: req.Type.String(), Algorithm: req.Algo.LogName(), Protocol: req.Proto.LogName(),
			NChannels: s.x.p.Split.NChannels,
			Bytes:     max(l.Input, l.Output), AlgBW: res.AlgBW, BusBW: res.BusBW})
	}
}
