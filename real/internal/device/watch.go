package device

import (
	"cmp"
	"slices"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Watched is one run of a plan in which every slice recorded its times, for the local ranks. Times are
// nanoseconds since the first of them.
type Watched struct {
	s     *Session
	op    *Case
	wrong int64
	// Clocks relates each local GPU's clock to the host's.
	Clocks []cuda.Clock
	// Epoch is the host's time at the trace's time zero.
	Epoch time.Time
	sends [][]slice // by connection id
	recvs [][]slice
	lanes []lane
}

// slice is one message as a program recorded it: it waited from began to moving, and moved data until end.
type slice struct {
	began, moving, end int64
	bytes              units.Bytes
	chunk              int32
	first              bool // first of its op: it carries the arrow
}

// lane is a rank's channel in its kernel.
type lane struct {
	rank, channel int32
	from, to      int64
	terms         nccl.Terms // sum over its programs, which run at the same time
}

// Watch runs an operation once by its plan, recording times and checking data. All processes must call it
// with equal arguments.
func (s *Session) Watch(op *Case, seed uint32) (*Watched, error) {
	w := &Watched{s: s, op: op, Clocks: make([]cuda.Clock, len(s.ranks))}
	if err := s.load(op.Plan, true); err != nil {
		return nil, err
	}
	w.Epoch = time.Now()
	if err := s.each(func(r *rank) (err error) {
		w.Clocks[r.local], err = cuda.ReadClock(r.kernels, r.stream, s.stop, w.Epoch)
		return err
	}); err != nil {
		return nil, err
	}
	var err error
	for range 2 { // the first run includes one-time costs
		if w.wrong, _, err = s.check(op, Planned, seed); err != nil {
			return nil, err
		}
	}
	times := make([][]uint64, len(s.ranks))
	if err := s.each(func(r *rank) (err error) {
		times[r.local], err = r.planned.Times()
		return err
	}); err != nil {
		return nil, err
	}
	w.read(times)
	return w, nil
}

// read assigns the times of all slices to their connections and channels.
func (w *Watched) read(times [][]uint64) {
	p := w.op.Plan
	w.sends, w.recvs = make([][]slice, p.NumConns()), make([][]slice, p.NumConns())
	var cur plan.Cursor
	var op plan.Op
	for i, r := range w.s.ranks {
		t, clock := times[i], w.Clocks[i].Offset
		for _, pr := range p.Programs(int32(r.id)) {
			if n := len(w.lanes); n == 0 || w.lanes[n-1].rank != pr.Rank ||
				w.lanes[n-1].channel != pr.Channel {
				w.lanes = append(w.lanes, lane{rank: pr.Rank, channel: pr.Channel, from: 1<<63 - 1})
			}
			l := &w.lanes[len(w.lanes)-1]
			for p.OpenInto(&cur, &pr); cur.Next(&op); {
				n, size := p.Slices(&pr, op.Bytes)
				for k := range n {
					e := slice{began: int64(t[0]) + clock, moving: int64(t[1]) + clock, end: int64(t[2]) +
						clock, chunk: op.Chunk, first: k == 0,
						bytes: min(size, op.Bytes-min(units.Bytes(k)*size, op.Bytes))}
					t = t[3:]
					l.from, l.to = min(l.from, e.began), max(l.to, e.end)
					l.count(&op, &e)
					w.add(&op, e)
				}
			}
		}
	}
	w.agree()
}

// count adds a slice to the terms of its channel: waits for data if it receives any, else for room, and
// copying.
func (l *lane) count(op *plan.Op, e *slice) {
	wait := nccl.Room
	if len(op.From) > 0 {
		wait = nccl.Data
	}
	l.terms[wait] += since(max(e.moving-e.began, 0))
	l.terms[nccl.Copy] += since(max(e.end-e.moving, 0))
}

func (w *Watched) add(op *plan.Op, e slice) {
	if op.Do&plan.HoldRecv == 0 {
		for _, id := range op.From {
			w.recvs[id] = append(w.recvs[id], e)
		}
	}
	if op.Do&plan.HoldSend == 0 {
		for _, id := range op.To {
			w.sends[id] = append(w.sends[id], e)
		}
	}
}

// agree corrects the remaining differences of the clocks: no rank can receive a message before its sender
// began to move it. The corrections are below the clocks' errors. Then all times count from the first.
func (w *Watched) agree() {
	p := w.op.Plan
	late := make([]int64, p.Comm.NRanks)
	for range p.Comm.NRanks {
		for id := range w.sends {
			c := p.Conn(int32(id))
			for k := range min(len(w.sends[id]), len(w.recvs[id])) {
				if w.sends[id][k].bytes == 0 {
					continue // LL and LL128 do not wait for empty messages
				}
				gap := w.sends[id][k].moving + late[c.Src] - (w.recvs[id][k].end - shortest) - late[c.Dst]
				late[c.Dst] += max(gap, 0)
			}
		}
	}
	zero := int64(1<<63 - 1)
	for i := range w.lanes {
		l := &w.lanes[i]
		l.from, l.to = l.from+late[l.rank], l.to+late[l.rank]
		zero = min(zero, l.from)
	}
	if len(w.lanes) > 0 {
		w.Epoch = w.Epoch.Add(time.Duration(zero))
	}
	for i := range w.lanes {
		w.lanes[i].from, w.lanes[i].to = w.lanes[i].from-zero, w.lanes[i].to-zero
	}
	for id := range w.sends {
		c := p.Conn(int32(id))
		for _, side := range []struct {
			list []slice
			rank int32
		}{{w.sends[id], c.Src}, {w.recvs[id], c.Dst}} {
			for k := range side.list {
				e, by := &side.list[k], late[max(side.rank, 0)]-zero
				e.began, e.moving, e.end = e.began+by, e.moving+by, e.end+by
			}
		}
	}
}

// shortest is the least length in nanoseconds with which an event is drawn.
const shortest = 2

// finish returns when a rank's last channel ended.
func (w *Watched) finish(rank int) units.Time {
	last := int64(0)
	for _, l := range w.lanes {
		if int(l.rank) == rank {
			last = max(last, l.to, 1)
		}
	}
	return since(last)
}

// result returns the outcome of the run by the GPUs' clocks. Finish holds the local ranks only.
func (w *Watched) result() exec.Result {
	op := w.op
	res := exec.Result{Wrong: -1, Finish: make([]units.Time, w.s.cfg.Ranks)}
	if op.Plan.DataDefined() {
		res.Wrong = w.wrong
	}
	for r := range res.Finish {
		res.Finish[r] = w.finish(r)
		res.Elapsed = max(res.Elapsed, res.Finish[r])
	}
	res.AlgBW, res.BusBW = coll.Bandwidth(op.Func, op.Sizes.Count, op.Type, w.s.cfg.Ranks, res.Elapsed)
	return res
}

func since(ns int64) units.Time { return units.Time(ns) * units.Nanosecond }

// local reports whether a rank belongs to this process.
func (w *Watched) local(rank int32) bool {
	i := int(rank) - w.s.cfg.First
	return i >= 0 && i < len(w.s.ranks)
}

// WriteTrace writes the run to a sink: kernels, both ends of every message, the operation. Arrows have the
// same number in every process.
func (w *Watched) WriteTrace(sink trace.Sink, o nccl.Options) {
	rec := nccl.New(sink, o)
	p, res := w.op.Plan, w.result()
	for _, r := range w.s.ranks {
		rec.AddRank(nccl.Rank{Rank: r.id, Node: int(p.Comm.NodeOf[r.id]), GPU: r.dev.Index,
			BusID: r.dev.BusID, Host: "node0"})
	}
	for i := range w.lanes {
		l := &w.lanes[i]
		to := max(l.to, l.from+1)
		l.terms.Rest(nccl.Overhead, since(to-l.from))
		rec.Kernel(int(l.rank), 0, int(l.channel), since(l.from), since(to), &l.terms)
	}
	if rec.Wanted(nccl.DetailStep) {
		w.traceSteps(rec)
	}
	req := &p.Req
	for _, r := range w.s.ranks {
		op := nccl.Operation{Rank: r.id, End: res.Elapsed}
		if req.Func.IsP2P() {
			rec.PointToPoint(op, nccl.P2P{CommHash: "0x1", Peer: r.id, Count: req.Count,
				Datatype: req.Type.String(), NChannels: p.Comm.P2PChannels})
			continue
		}
		rec.Collective(op, nccl.Coll{Func: req.Func.String(), SeqNum: 1, CommHash: "0x1", Count: req.Count,
			Datatype:  req.Type.String(),
			Algorithm: req.Algo.LogName(), Protocol: req.Proto.LogName(), NChannels: p.Split.NChannels,
			Bytes: w.op.Sizes.Bytes(req.Type), AlgBW: res.AlgBW, BusBW: res.BusBW})
	}
	rec.Finish(res.Elapsed)
}

// traceSteps writes the messages in the order of their ends.
func (w *Watched) traceSteps(rec *nccl.Recorder) {
	type event struct {
		step  nccl.Step
		flow  int64
		phase nccl.Phase
	}
	var all []event
	for id := range w.sends {
		c := w.op.Plan.Conn(int32(id))
		both := w.local(c.Src) && w.local(c.Dst)
		for d, list := range [][]slice{nccl.Send: w.sends[id], nccl.Recv: w.recvs[id]} {
			for k, e := range list {
				x := event{step: nccl.Step{Rank: int(c.Src), Peer: int(c.Dst), Channel: int(c.Channel),
					Dir: nccl.Dir(d), Step: int64(k), Slot: k % plan.FIFOSteps,
					Bytes: e.bytes, Transport: transportWord(c.Route.Transport), Chunk: int64(e.chunk)}}
				x.phase = nccl.Phase{Wait: nccl.SendWait, Start: since(e.moving),
					End: since(max(e.end, e.moving+shortest))}
				if x.step.Dir == nccl.Recv {
					if e.bytes == 0 && both { // it may have arrived before it was sent
						e.end = max(e.end, w.sends[id][k].moving+shortest)
					}
					x.step.Rank, x.step.Peer = x.step.Peer, x.step.Rank
					x.phase = nccl.Phase{Wait: nccl.RecvWait, Start: since(min(e.began, e.end-shortest)),
						End: since(e.end)}
				}
				if e.first { // an arrow to another process gets both ends when traces are merged
					x.flow = int64(id)<<24 + int64(k) + 1
				}
				all = append(all, x)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.phase.End, b.phase.End) })
	for i := range all {
		rec.Steps(&all[i].step, all[i].flow, all[i].phase)
	}
}

// transportWord returns the trace's name of a connection's transport.
func transportWord(t connect.Transport) string {
	if t == connect.P2P {
		return "P2P/CUMEM"
	}
	return "SHM"
}
