package tap

import (
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// sidePort is the lane of a rail's queue pairs at a side's port.
type sidePort struct{ nic, qp, number int }

// reduction is when a collective of the network was where.
type reduction struct {
	last                 int32      // rank of the side that posted last
	whole, begun, landed units.Time // it had posted; first and last bytes on the wire
}

// collective is the n-th of a rail.
func (t *Tracer) collective(ri int32, n int64) *reduction {
	for len(t.net.rails) < len(t.e.Net.Rails) {
		t.net.rails = append(t.net.rails, make([]reduction, t.e.Net.Rails[len(t.net.rails)].Window()))
	}
	return &t.net.rails[ri][n%int64(len(t.net.rails[ri]))]
}

// sidePort declares the place of a rail's side at its port: queue pairs of one number
// for all channels.
func (t *Tracer) sidePort(s *host.Side) *sidePort {
	if t.net.sides == nil {
		t.net.sides = make([]sidePort, len(t.e.Net.Sides))
	}
	w := &t.net.sides[s.Index]
	if w.number > 0 {
		return w
	}
	system := t.e.Net.Table.Systems[s.Node]
	w.nic = t.rec.NIC(nccl.Port{Node: int(s.Node), Net: int(s.Net),
		Name: system.Nodes[system.Of(topo.NET)[s.Net]].Net.Name})
	w.number = 1
	for i := range t.e.Net.Sides[:s.Index] {
		if o := &t.e.Net.Sides[i]; o.Node == s.Node && o.Net == s.Net {
			w.number++
		}
	}
	w.qp = t.rec.NetQP(w.nic, w.number)
	return w
}

// request describes a batch's k-th collective at its port.
func (t *Tracer) request(bi int32, k int64, n units.Bytes) nccl.WorkRequest {
	s := &t.e.Net.Sides[t.e.Net.Batches[bi].Side]
	w, batches := t.sidePort(s), t.e.Net.Rails[s.Rail].Batches
	base := t.conn(t.e.Net.Conns[t.e.Net.Batches[bi].To[0]].ID).base
	return nccl.WorkRequest{NIC: w.nic, QP: w.qp, Rank: int(s.Rank), QPNum: int64(w.number),
		Opcode: "SHARP " + t.job.Plan.Req.Func.String(),
		ID:     (k-base)*batches + int64(bi-s.First), Size: n}
}

// sent is what a batch gives to the network with its k-th step.
func (t *Tracer) sent(bi int32, k int64) units.Bytes {
	s := &t.e.Net.Sides[t.e.Net.Batches[bi].Side]
	send, _ := t.job.Plan.NetBytes(t.e.Net.Rails[s.Rail].Group+bi-s.First, s.Node,
		k%int64(max(1, t.job.Plan.Split.Lo.NSteps)))
	return send
}

// contributes notes that a batch's next step was posted to the network.
func (t *Tracer) contributes(bi int32) {
	b := &t.e.Net.Batches[bi]
	s := &t.e.Net.Sides[b.Side]
	k := s.Posted / t.e.Net.Rails[s.Rail].Batches
	shown := false
	for _, id := range b.To {
		ct, x := t.wireOf(id, k)
		x.wired, x.allowed = t.e.Queue.Now, b.Opened(k)
		shown = shown || ct.shown(k)
	}
	if !shown || t.depth < nccl.DetailStep {
		return
	}
	r := t.request(bi, k, t.sent(bi, k))
	t.rec.Posted(t.e.Queue.Now-t.shift, &r)
	t.rec.Settle(t.sidePort(s).nic, t.e.Queue.Now-t.shift)
}

// whole notes that the last side has posted a rail's collective, which all
// others have waited for: arrows lead from its sends to everybody's receives.
func (t *Tracer) whole(last *host.Side) {
	r := &t.e.Net.Rails[last.Rail]
	n := last.Posted - 1
	*t.collective(last.Rail, n) = reduction{last: last.Rank, whole: t.e.Queue.Now}
	k, at := n/r.Batches, int32(n%r.Batches)
	for i := range t.e.Net.Batches[last.First+at].To {
		from, _ := t.wireOf(t.e.Net.Batches[last.First+at].To[i], k)
		if !from.shown(k) {
			continue
		}
		head := from.slot(k)
		for _, si := range r.Sides {
			b := &t.e.Net.Batches[t.e.Net.Sides[si].First+at]
			in, _ := t.wireOf(b.To[i], k)
			out, _ := t.wireOf(b.From[i], k)
			if !out.open {
				out.open, out.base = true, k
			}
			sent := in.slot(k)
			x := slot{bytes: sent.bytes, chunk: sent.chunk, last: last.Rank}
			if t.depth >= nccl.DetailStep {
				x.flow = t.rec.Flow()
				if head.more == nil {
					head.more = &arrows{}
				}
				head.more.fan = append(head.more.fan,
					nccl.Arrow{ID: x.flow, Rank: int(t.e.Net.Sides[si].Rank)})
			}
			*out.slot(k) = x
		}
	}
}

// leavesFor notes that a rail's next collective goes on the wire.
func (t *Tracer) leavesFor(ri int32) {
	t.collective(ri, t.e.Net.Rails[ri].Begun).begun = t.e.Queue.Now
}

// traceReduction writes the time of an in-network reduction on the network's tree.
func (t *Tracer) traceReduction(ri int32) {
	r := &t.e.Net.Rails[ri]
	x := t.collective(ri, r.Ended)
	x.landed = t.e.Queue.Now
	s := &t.e.Net.Sides[r.Sides[0]]
	k, bi := r.Ended/r.Batches, s.First+int32(r.Ended%r.Batches)
	ct, _ := t.wireOf(t.e.Net.Batches[bi].To[0], k)
	if !ct.shown(k) {
		return
	}
	send, recv := t.job.Plan.NetBytes(r.Group+int32(r.Ended%r.Batches), s.Node,
		k%int64(max(1, t.job.Plan.Split.Lo.NSteps)))
	n := max(send, recv)
	var terms nccl.Terms
	terms[nccl.NIC] = min(x.landed-x.begun, r.Alone(n))
	terms.Rest(nccl.Link, x.landed-x.begun)
	t.rec.Reduction(x.begun-t.shift, x.landed-t.shift, nccl.Reduction{Tree: int(ri), Root: r.Root,
		Func: t.job.Plan.Req.Func.String(),
		ID:   r.Ended - ct.base*r.Batches, Nodes: t.job.Plan.Comm.NNodes, Bytes: n, Last: int(x.last),
		Terms: terms})
	t.transfer(r.Route, x.begun, x.last, nccl.NoPeer, ct.plan.Channel, n)
}

// sums writes a batch's k-th sends, whose completion is polled at time at.
func (t *Tracer) sums(bi int32, k int64, at units.Time) {
	b := &t.e.Net.Batches[bi]
	s := &t.e.Net.Sides[b.Side]
	r := &t.e.Net.Rails[s.Rail]
	x := t.collective(s.Rail, k*r.Batches+int64(bi-s.First))
	ready := units.Time(0) // the last channel's
	for _, id := range b.To {
		_, w := t.wireOf(id, k)
		ready = max(ready, w.ready)
	}
	n := t.sent(bi, k)
	shown := false
	for _, id := range b.To {
		ct, w := t.wireOf(id, k)
		if !ct.shown(k) {
			continue
		}
		onWire := t.onTheTree(r, x, w.wired, at, n)
		if !shown && t.depth >= nccl.DetailStep {
			wr := t.request(bi, k, n)
			wr.Terms = onWire
			t.rec.Work(w.wired-t.shift, at-t.shift, &wr)
			shown = true
		}
		var peer nccl.Terms
		peer[nccl.Data] = ready - w.ready // the other channels'
		peer[nccl.CTS] = max(0, min(w.allowed, w.wired)-ready)
		peer.Rest(nccl.Proxy, w.wired-w.ready)
		step := ct.step(nccl.Send, k)
		step.Fan = ct.slot(k).arrows().fan
		t.rec.Steps(&step, 0,
			nccl.Phase{Wait: nccl.SendGPUWait, Start: w.since - t.shift, End: w.ready - t.shift,
				Terms: w.filled},
			nccl.Phase{Wait: nccl.SendPeerWait, Start: w.ready - t.shift, End: w.wired - t.shift,
				Terms: peer},
			nccl.Phase{Wait: nccl.SendWait, Start: w.wired - t.shift, End: at - t.shift, Terms: onWire})
		t.progress(ct, nccl.Send, k, w.since, at)
	}
}

// onTheTree says what the time from a post to its completion consists of: the
// wait for other nodes, for earlier collectives, the bytes, the latency.
func (t *Tracer) onTheTree(r *host.Rail, x *reduction, posted, at units.Time, n units.Bytes) (w nccl.Terms) {
	w[nccl.Data] = x.whole - posted
	w[nccl.Queue] = x.begun - x.whole
	w[nccl.NIC] = min(x.landed-x.begun, r.Alone(n))
	w[nccl.Link] = x.landed - x.begun - w[nccl.NIC]
	w[nccl.Wire] = min(at-x.landed, r.Later)
	w.Rest(nccl.Proxy, at-posted)
	return w
}

// takesFrom notes that the receiving proxy had a batch's k-th result at
// time at, and raised its tails at time raised.
func (t *Tracer) takesFrom(bi int32, k int64, at, raised units.Time) {
	b := &t.e.Net.Batches[bi]
	s := &t.e.Net.Sides[b.Side]
	r := &t.e.Net.Rails[s.Rail]
	landed := t.collective(s.Rail, k*r.Batches+int64(bi-s.First)).landed
	shown := false
	for _, id := range b.From {
		ct, w := t.wireOf(id, k)
		w.arrived, w.polled, w.flushed, w.reads = landed+r.Later, at, raised, t.e.Net.Conns[id].Flush
		shown = shown || ct.shown(k)
	}
	if flush := t.e.Net.Cost.Flush; shown && t.e.Net.Conns[b.From[0]].Flush && t.depth >= nccl.DetailStep {
		wr := t.request(bi, k, t.sent(bi, k))
		wr.Opcode, wr.Terms[nccl.Flush] = nccl.OpRead, flush
		t.rec.Posted(at-t.shift, &wr)
		t.rec.Work(at-t.shift, at+flush-t.shift, &wr)
	}
}

// makesRoom notes that a batch has room for its k-th result from time at on.
func (t *Tracer) makesRoom(bi int32, k int64, at units.Time) {
	for _, id := range t.e.Net.Batches[bi].From {
		_, w := t.wireOf(id, k)
		w.offered = at
	}
}
