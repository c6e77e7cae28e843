package sim

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// tracer reports the last simulated operation, shifted to begin at zero. A nil
// tracer is silent; no time depends on it.
type tracer struct {
	rec   *nccltrace.Recorder
	shift units.Time // when the first device turned to the last operation
	open  bool       // it has
	conns []connTrace
	links []int // link of the model → handle + 1
}

// connTrace is what both ends of a connection tell each other: the arrows of
// the pieces under way, and when the network let them go.
type connTrace struct {
	told, open bool
	plan       plan.Conn
	word       string
	base       int64 // first piece of the last operation
	flow       [plan.FIFOSteps]int64
	chunk      [plan.FIFOSteps]int64
	bytes      [plan.FIFOSteps]units.Bytes
	begun      [plan.FIFOSteps]units.Time // the piece's start in the kernel
	wired      [plan.FIFOSteps]units.Time
	arrived    [plan.FIFOSteps]units.Time
}

func newTracer(e *engine, sink trace.Sink, opt nccltrace.Options) *tracer {
	if sink == trace.Discard {
		return nil
	}
	t := &tracer{rec: nccltrace.New(sink, opt), conns: make([]connTrace, len(e.conns))}
	c := e.plan.Comm
	for r := range int32(c.NRanks) {
		if !t.rec.On(nccltrace.DetailOp, int(r)) {
			continue
		}
		node, g := e.nw.w.gpu(r)
		info := e.nw.w.systems[node].Nodes[g].GPU
		t.rec.AddRank(nccltrace.Rank{Rank: int(r), Node: int(node), GPU: info.Dev, BusID: info.BusID, Host: fmt.Sprintf("node%d", node)})
	}
	if t.rec.Wanted(nccltrace.DetailStep) {
		e.net.Watch = func(l simnet.LinkID, at units.Time, rate simnet.Rate) { t.rate(e, l, at, rate) }
	}
	return t
}

// begins notes that a device starts its k-th operation.
func (t *tracer) begins(e *engine, k int32, at units.Time) {
	if t != nil && !t.open && k == e.kernels-1 {
		t.open, t.shift = true, at
	}
}

// last tells whether a rank is in its last operation.
func (t *tracer) last(e *engine, rank int32) bool {
	return t != nil && t.open && e.devs[rank].done == e.kernels-1
}

func (t *tracer) rate(e *engine, l simnet.LinkID, at units.Time, rate simnet.Rate) {
	if !t.open || at < t.shift {
		return
	}
	for int(l) >= len(t.links) {
		t.links = append(t.links, 0)
	}
	if t.links[l] == 0 {
		t.links[l] = t.rec.Link(e.net.Name(l)) + 1
	}
	t.rec.Rate(t.links[l]-1, at-t.shift, float64(rate)*1e-6)
}

// kernel writes the slice of one channel's thread block.
func (t *tracer) kernel(e *engine, rank, channel int32, at units.Time) {
	if t.last(e, rank) {
		t.rec.Kernel(int(rank), 0, int(channel), e.devs[rank].begin-t.shift, at-t.shift, 0, 0)
	}
}

// conn returns what is known of a connection.
func (t *tracer) conn(e *engine, id int32) *connTrace {
	ct := &t.conns[id]
	if ct.told {
		return ct
	}
	ct.told = true
	ct.plan = e.plan.Conn(id)
	switch {
	case ct.plan.Kind == connect.NVLSRoute:
		ct.word = "NVLS"
	case ct.plan.Route.Transport == connect.NET:
		ct.word = "NET/IB"
	case ct.plan.Route.Transport == connect.SHM:
		ct.word = "SHM"
	default:
		ct.word = "P2P/CUMEM"
	}
	return ct
}

// sends writes the send of a connection's k-th piece from its start until its
// data is readable at time end. Network sends are written when they arrive.
func (t *tracer) sends(e *engine, g *group, id int32, k int64, start, end units.Time, first bool, n units.Bytes, chunk int32) {
	if !t.last(e, g.rank) || !t.rec.Wanted(nccltrace.DetailStep) {
		return
	}
	ct := t.conn(e, id)
	if !ct.open {
		ct.open, ct.base = true, k
	}
	slot := k % plan.FIFOSteps
	ct.flow[slot] = 0
	if first {
		ct.flow[slot] = t.rec.Flow() // one arrow an op: its first slice
	}
	ct.begun[slot], ct.bytes[slot], ct.chunk[slot] = start, n, int64(chunk)
	if e.conns[id].net >= 0 {
		return
	}
	s := t.step(ct, nccltrace.Send, k)
	t.rec.Steps(&s, ct.flow[slot], nccltrace.Phase{Wait: nccltrace.SendWait, Start: start - t.shift, End: max(end, start+2*trace.Tick) - t.shift})
}

func (t *tracer) step(ct *connTrace, d nccltrace.Dir, k int64) nccltrace.Step {
	slot := k % plan.FIFOSteps
	s := nccltrace.Step{Rank: int(ct.plan.Src), Peer: int(ct.plan.Dst), Channel: int(ct.plan.Channel), Dir: d, Step: k - ct.base,
		Slot: int(slot), Bytes: ct.bytes[slot], Transport: ct.word, GDR: ct.plan.Route.SrcGDR, Chunk: ct.chunk[slot]}
	if d == nccltrace.Recv {
		s.Rank, s.Peer, s.GDR = s.Peer, s.Rank, ct.plan.Route.DstGDR
	}
	return s
}

// received writes the receives of the piece that ends now.
func (t *tracer) received(e *engine, g *group) {
	if !t.last(e, g.rank) || !t.rec.Wanted(nccltrace.DetailStep) || g.op.Do&plan.HoldRecv != 0 {
		return
	}
	for _, id := range g.op.From {
		ct, c := t.conn(e, id), &e.conns[id]
		if !ct.open || c.taken < ct.base {
			continue
		}
		slot := c.taken % plan.FIFOSteps
		s := t.step(ct, nccltrace.Recv, c.taken)
		to := max(e.now-t.shift, 2*trace.Tick)
		from := max(0, min(g.since-t.shift, to-2*trace.Tick))
		if c.net < 0 {
			t.rec.Steps(&s, ct.flow[slot], nccltrace.Phase{Wait: nccltrace.RecvWait, Start: from, End: to})
			continue
		}
		// The network's part comes first; the kernel's wait is the step's last.
		arrived := min(max(ct.arrived[slot]-t.shift, from+2*trace.Tick), to)
		flushed := min(max(c.head[slot]-t.shift, arrived), to)
		t.rec.Steps(&s, ct.flow[slot], nccltrace.Phase{Wait: nccltrace.RecvWait, Start: from, End: arrived},
			nccltrace.Phase{Wait: nccltrace.RecvFlushWait, Start: arrived, End: flushed},
			nccltrace.Phase{Wait: nccltrace.RecvGPUWait, Start: flushed, End: to})
	}
}

// wire notes that the k-th step of a connection leaves for the network.
func (t *tracer) wire(e *engine, id int32, k int64) {
	if t == nil || !t.open || !t.conn(e, id).open {
		return
	}
	t.conns[id].wired[k%plan.FIFOSteps] = e.now
}

// arrive writes a network send, whose k-th step has arrived.
func (t *tracer) arrive(e *engine, id int32, k int64) {
	if t == nil || !t.open {
		return
	}
	ct := t.conn(e, id)
	if !ct.open || k < ct.base {
		return
	}
	slot := k % plan.FIFOSteps
	ct.arrived[slot] = e.now
	s := t.step(ct, nccltrace.Send, k)
	t.rec.Steps(&s, ct.flow[slot],
		nccltrace.Phase{Wait: nccltrace.SendPeerWait, Start: ct.begun[slot] - t.shift, End: ct.wired[slot] - t.shift},
		nccltrace.Phase{Wait: nccltrace.SendWait, Start: ct.wired[slot] - t.shift, End: max(e.now, ct.wired[slot]+2*trace.Tick) - t.shift})
}

// cut closes the counters of a run that ends before its operation does.
func (t *tracer) cut(e *engine) {
	if t != nil && t.open {
		t.rec.Finish(e.now - t.shift)
	}
}

// finish writes the operation of every rank and closes the counters.
func (t *tracer) finish(e *engine) {
	if t == nil {
		return
	}
	req := &e.plan.Req
	l := e.plan.Layout(0)
	var end units.Time
	for i := range e.devs {
		d := &e.devs[i]
		at := d.ends[len(d.ends)-1]
		end = max(end, at)
		// Graph replay and eager launches alike: the operation is there when the
		// one before it ends.
		start := d.begin - e.gap
		if req.Func >= coll.NumCollFuncs {
			t.rec.PointToPoint(i, start-t.shift, at-t.shift, nccltrace.P2P{CommHash: "0x1", Peer: i, Count: req.Count, Datatype: req.Type.String(), NChannels: e.plan.Comm.P2PChannels})
			continue
		}
		t.rec.Collective(i, start-t.shift, at-t.shift, nccltrace.Coll{Func: req.Func.String(), SeqNum: 1, CommHash: "0x1", Count: req.Count,
			Datatype: req.Type.String(), Algorithm: req.Algo.LogName(), Protocol: req.Proto.LogName(), NChannels: e.plan.Split.NChannels,
			Bytes: max(l.Input, l.Output)})
	}
	t.rec.Finish(end - t.shift)
}
