package tap

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Tracer is the Observer that writes the last simulated operation to a sink,
// shifted to begin at zero.
type Tracer struct {
	ports   map[wire.LinkID]nccl.PortTrace // frame by frame; else nil
	pairs   map[wire.QueueID]string
	e       *engine.Engine
	job     *engine.Job
	ends    plan.Conn // of a transfer
	rec     *nccl.Recorder
	shift   units.Time // when the first device turned to the last operation
	open    bool       // it has
	depth   nccl.Detail
	deps    bool         // wanted: arrows inside a rank
	groups  []groupTrace // by group of the engine
	blocks  []nccl.Terms // by multiprocessor
	conns   []*connTrace // by connection, nil until it is used
	links   []int        // link of the model → handle + 1
	loads   []wire.Rate  // by link of the model: its load as it was written last, -1 before
	backlog []backlog    // messages of the last operation that waited
	net     netTrace

	stretch *stretched // where periods are counted, else nil
	kept    kept
	rates   []linkRate // by handle of the recorder
	before  units.Time // counted before the operation that is shown
	through units.Time // and in it
}

// groupTrace is what is known of a thread group's pieces.
type groupTrace struct {
	piece piece      // in progress
	held  piece      // of the group's held slice
	round []piece    // of the pieces of its round
	sum   nccl.Terms // of all of the operation
}

// window is how many pieces of a connection may be in progress between the kernel
// that sent them and the one that has not read them yet. Over the network that
// is a FIFO at each end: the sender's slot is free for piece 8 as soon as piece
// 0 is acknowledged, though the receiver's kernel has read none of the first
// eight.
const window = 2 * plan.FIFOSteps

// connTrace is what both ends of a connection share: the pieces in progress, and
// what the network did with them.
type connTrace struct {
	open      bool
	plan      plan.Conn
	transport string
	link      string // narrowest of its route
	base      int64  // first piece of the last operation
	slots     [window]slot
	wire      *wireTrace // of connections over the network
}

// slot is what is known of a piece in progress.
type slot struct {
	flow  int64
	bytes units.Bytes
	chunk int32
	last  int32 // of what the network reduced: the rank that sent last, or nccltrace.NoPeer
	more  *arrows
}

// arrows are further arrows of a piece, which few pieces have: to it from pieces that its op received, and
// from it to several receivers.
type arrows struct {
	deps []int64 // from what the piece's op received
	fan  []nccl.Arrow
}

// arrows returns the further arrows of the piece; none are allocated for one without.
func (s *slot) arrows() arrows {
	if s.more == nil {
		return arrows{}
	}
	return *s.more
}

// New makes a Tracer of an engine that has not started, and has it observed; nil
// where the sink discards all.
func New(e *engine.Engine, sink trace.Sink, opt nccl.Options) *Tracer {
	if sink == trace.Discard {
		return nil
	}
	var stretch *stretched
	if opt.Periods && opt.Detail >= nccl.DetailStep {
		stretch = &stretched{Sink: sink}
		sink = stretch
	}
	t := &Tracer{e: e, stretch: stretch, job: e.Jobs[0], rec: nccl.New(sink, opt), depth: opt.Detail,
		deps: opt.Deps && opt.Detail >= nccl.DetailStep, conns: make([]*connTrace, len(e.Conns)),
		groups: make([]groupTrace, len(e.Groups)),
		blocks: make([]nccl.Terms, len(e.SMs))}
	c := t.job.Plan.Comm
	for r := range int32(c.NRanks) {
		if !t.rec.On(nccl.DetailOp, int(r)) {
			continue
		}
		node, g := t.e.Net.Table.GPU(r)
		info := t.e.Net.Table.Systems[node].Nodes[g].GPU
		t.rec.AddRank(nccl.Rank{Rank: int(r), Node: int(node), GPU: info.Dev, BusID: info.BusID,
			Host: fmt.Sprintf("node%d", node)})
	}
	if t.depth >= nccl.DetailStep {
		t.e.Wire.Watch(t.rate)
		if m, ok := t.e.Wire.(wire.Messages); ok {
			m.Observe(t.port)
			t.ports = map[wire.LinkID]nccl.PortTrace{}
		}
	}
	e.Observer, e.Net.Observer = t, t
	return t
}

// begins notes that a device starts its k-th operation.
func (t *Tracer) begins(k int32, at units.Time) {
	if !t.open && k == t.job.Kernels-1 {
		t.open, t.shift = true, at
	}
}

// follows reports whether a rank's last operation is followed at that depth.
func (t *Tracer) follows(rank int32, d nccl.Detail) bool {
	return t.open && d <= t.depth && t.e.Devices[rank].Done == t.job.Kernels-1
}

func (t *Tracer) link(l wire.LinkID) int {
	for int(l) >= len(t.links) {
		t.links = append(t.links, 0)
	}
	if t.links[l] == 0 {
		t.links[l] = t.rec.Link(t.e.Wire.Name(l), gbps(t.e.Wire.Capacity(l))) + 1
	}
	return t.links[l] - 1
}

// rate writes the load of a link since at, unless that is as it was written last.
func (t *Tracer) rate(l wire.LinkID, at units.Time, rate wire.Rate) {
	if !t.open || at < t.shift {
		return
	}
	if t.stretch != nil { // means are written too, and every report counts for them
		h := t.link(l)
		for h >= len(t.rates) {
			t.rates = append(t.rates, linkRate{at: at})
		}
		t.rates[h].flow(at, gbps(rate))
		t.rec.Rate(h, at-t.shift, gbps(rate))
		return
	}
	for int(l) >= len(t.loads) {
		t.loads = append(t.loads, -1)
	}
	if t.loads[l] != rate {
		t.loads[l] = rate
		t.rec.Rate(t.link(l), at-t.shift, gbps(rate))
	}
}

// port writes a change of a port's queue, marks and pauses, or of a queue pair's rate.
func (t *Tracer) port(s wire.PortState) {
	shown := t.open && s.At >= t.shift
	if s.Queue >= 0 {
		if shown {
			t.rec.Pace(t.queuePair(s.Queue), s.At-t.shift, gbps(s.Rate))
		}
		return
	}
	p := t.ports[s.Link]
	now := nccl.PortState{At: s.At, Queued: s.Queued, Marks: s.Marks, Paused: s.Paused, Credits: s.Credits}
	if shown {
		t.rec.PortChanges(t.link(s.Link), &p, &now, t.shift)
	}
	p.Note(&now)
	t.ports[s.Link] = p
}

// queuePair is a name for a queue pair of the network.
func (t *Tracer) queuePair(q wire.QueueID) string {
	if t.pairs == nil {
		t.pairs = map[wire.QueueID]string{}
		number := int32(0)
		for i := range t.e.Net.Pairs {
			l := &t.e.Net.Pairs[i]
			if number++; i == 0 || t.e.Net.Pairs[i-1].Conn != l.Conn {
				number = 0
			}
			if id, ok := l.Queue(); ok {
				c := &t.e.Net.Conns[l.Conn]
				t.pairs[id] = nccl.QueuePair(fmt.Sprint(c.Src), fmt.Sprint(c.Dst), c.Channel, number, "")
			}
		}
	}
	return t.pairs[q]
}

// clock is the engine's time when a kernel ended, which has what was skipped.
func (t *Tracer) clock(end units.Time) units.Time {
	if t.stretch == nil {
		return end
	}
	return t.stretch.clock(end-t.before-t.shift) + t.shift
}

// gbps is a rate in GB/s.
func gbps(r wire.Rate) float64 { return float64(r) * 1e-6 }

// transfer writes what crossed the links of a route.
func (t *Tracer) transfer(r wire.RouteID, from units.Time, src, dst, channel int32, n units.Bytes) {
	if t.depth < nccl.DetailPacket || !t.rec.On(nccl.DetailPacket, int(src)) {
		return
	}
	for _, u := range t.e.Wire.Uses(r) {
		t.rec.Transfer(t.link(u.Link), from-t.shift, t.e.Queue.Now-t.shift, int(src), int(dst), int(channel),
			n)
	}
}

// conn returns what is known of a connection.
func (t *Tracer) conn(id int32) *connTrace {
	if ct := t.conns[id]; ct != nil {
		return ct
	}
	ct := &connTrace{plan: t.job.Plan.Conn(id), transport: "P2P/CUMEM"}
	t.conns[id] = ct
	route := t.e.Conns[id].Route
	switch {
	case ct.plan.Kind == connect.NVLSRoute:
		ct.transport = "NVLS"
	case host.Reduces(&ct.plan):
		ct.transport, ct.wire = "COLLNET/SHARP", new(wireTrace)
		route = t.e.Net.RouteOf(t.e.Conns[id].Net)
	case t.e.Conns[id].Net >= 0:
		ct.transport, ct.wire = "NET/IB", new(wireTrace)
		if t.e.Net.Conns[t.e.Conns[id].Net].TCP() {
			ct.transport = "NET/Socket"
		}
		route = t.e.Net.RouteOf(t.e.Conns[id].Net)
	case ct.plan.Route.Transport == connect.SHM:
		ct.transport = "SHM"
	}
	narrow := wire.Rate(0)
	for _, u := range t.e.Wire.Uses(route) {
		if c := t.e.Wire.Capacity(u.Link) / wire.Rate(max(1, u.Count)); narrow == 0 || c < narrow {
			narrow, ct.link = c, t.e.Wire.Name(u.Link)
		}
	}
	return ct
}

// sends notes the k-th piece of a connection, which its sender is through with
// and whose data is readable at time end. A send over the network is written
// when it is acknowledged. first: of its op, whose arrow it carries.
func (t *Tracer) sends(gi, id int32, k int64, p *piece, first bool, n units.Bytes, chunk int32,
	end units.Time) {
	g := &t.e.Groups[gi]
	if !t.follows(g.Rank, nccl.DetailChannel) {
		return
	}
	ct := t.conn(id)
	if !ct.open {
		ct.open, ct.base = true, k
	}
	s := ct.slot(k)
	*s = slot{bytes: n, chunk: chunk, last: nccl.NoPeer}
	if first && t.depth >= nccl.DetailStep && !host.Reduces(&ct.plan) {
		s.flow = t.rec.Flow() // one arrow an op: its first slice
	}
	if p.deps.recvs > 0 {
		s.more = &arrows{deps: p.deps.of(nccl.Send, p.deps.used)}
		p.deps.used++
	}
	terms := p.terms()
	flag := t.e.Cost.Hop[g.Program.Proto]
	if ct.wire != nil {
		ready := t.e.Net.Conns[t.e.Conns[id].Net].Ready(k)
		if flag += t.e.Net.Cost.Flag; g.Program.Proto != coll.Simple {
			flag = t.e.Net.Cost.Flag // the proxy sees the data itself
		}
		t.fills(ct, k, p.since, ready, withFlag(terms, g.Program.Proto, flag, ready-p.since))
		return
	}
	terms[nccl.Data], terms[nccl.Room] = 0, 0
	end = max(end, p.start+2*trace.Tick)
	step := ct.step(nccl.Send, k)
	t.rec.Steps(&step, s.flow, nccl.Phase{Wait: nccl.SendWait, Start: p.start - t.shift, End: end - t.shift,
		Terms: withFlag(terms, g.Program.Proto, flag+t.e.Extra(&t.e.Conns[id]), end-p.start)})
}

// slot is what is known of the k-th piece, from its sending until it was read.
func (ct *connTrace) slot(k int64) *slot { return &ct.slots[k%window] }

func (ct *connTrace) step(d nccl.Dir, k int64) nccl.Step {
	x := ct.slot(k)
	s := nccl.Step{Rank: int(ct.plan.Src), Peer: int(ct.plan.Dst), Channel: int(ct.plan.Channel), Dir: d,
		Step: k - ct.base,
		Slot: int(k % plan.FIFOSteps), Bytes: x.bytes, Transport: ct.transport, GDR: ct.plan.Route.SrcGDR,
		Chunk: int64(x.chunk), Link: ct.link, Deps: x.arrows().deps}
	if d == nccl.Recv {
		s.Rank, s.Peer, s.GDR, s.Deps = s.Peer, s.Rank, ct.plan.Route.DstGDR, nil
	}
	if host.Reduces(&ct.plan) {
		s.Peer = int(x.last)
	}
	return s
}

// received writes the receives of the piece that ends now.
func (t *Tracer) received(gi int32) {
	g := &t.e.Groups[gi]
	if !t.follows(g.Rank, nccl.DetailChannel) || g.Op.Do&plan.HoldRecv != 0 {
		return
	}
	p := &t.groups[gi].piece
	for i, id := range g.Op.From {
		ct, c := t.conn(id), &t.e.Conns[id]
		if !ct.open || c.Taken < ct.base {
			continue
		}
		if ct.wire != nil {
			t.takes(ct, c.Taken, c.Slots[c.Taken%plan.FIFOSteps].Head, p.deps.of(nccl.Recv, i))
			continue
		}
		step := ct.step(nccl.Recv, c.Taken)
		step.Deps = p.deps.of(nccl.Recv, i)
		to := max(t.e.Queue.Now-t.shift, 2*trace.Tick)
		from := max(0, min(p.since-t.shift, to-2*trace.Tick))
		terms := p.terms()
		terms.Rest(nccl.Data, t.e.Queue.Now-p.since) // cut-through: the last data
		t.rec.Steps(&step, ct.slot(c.Taken).flow, nccl.Phase{Wait: nccl.RecvWait, Start: from, End: to,
			Terms: terms})
	}
}

// Cut closes the counters of a run that ends before its operation does.
func (t *Tracer) Cut() {
	if t.open {
		t.rec.Finish(t.e.Queue.Now - t.shift)
	}
}

// Finish writes the operation of every rank and closes the counters.
func (t *Tracer) Finish(res *exec.Result) {
	req := &t.job.Plan.Req
	l := t.job.Plan.Layout(0)
	var end units.Time
	for i := range t.e.Devices {
		d := &t.e.Devices[i]
		at := t.clock(d.Ends[len(d.Ends)-1])
		end = max(end, at)
		// For graph replay as for eager launches the operation is there when the
		// one before it ends.
		op := nccl.Operation{Rank: i, Start: d.Begin - t.job.Gap - t.shift, End: at - t.shift,
			Launch: t.job.Gap}
		algo, proto := req.Algo.LogName(), req.Proto.LogName()
		one := t.job.Plan.OneRank()
		if one != plan.NotOneRank {
			algo, proto = "-", "-" // nothing was chosen
		}
		if req.Func == coll.SendRecv || req.Func.IsP2P() && one == plan.NotOneRank {
			t.rec.PointToPoint(op, nccl.P2P{CommHash: "0x1", Peer: i, Count: req.Count,
				Datatype: req.Type.String(), NChannels: t.job.Plan.Comm.P2PChannels})
			continue
		}
		t.rec.Collective(op, nccl.Coll{Func: req.Func.String(), SeqNum: 1, CommHash: "0x1", Count: req.Count,
			Datatype: req.Type.String(), Algorithm: algo, Protocol: proto,
			NChannels: t.job.Plan.Split.NChannels,
			Bytes:     max(l.Input, l.Output), AlgBW: res.AlgBW, BusBW: res.BusBW,
			LimitingLink: limiting(res)})
	}
	t.proxyOps()
	t.faults()
	t.queues(res)
	t.rec.Finish(end - t.shift)
}

// limiting names the link that needs most of the time for its bytes.
func limiting(res *exec.Result) (name string) {
	var most units.Time
	for i := range res.Links {
		if n := res.Links[i].Ideal(); n > most {
			most, name = n, res.Links[i].Name
		}
	}
	return name
}
