package tap

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// netTrace is what the tracer keeps of proxies and ports.
type netTrace struct {
	ends  plan.PortEnds
	known bool       // ends are
	open  int        // steps posted and not acknowledged
	sides []sidePort // by side
	rails [][]reduction
	busy  []units.Time       // by rank: when its proxy thread was done; 0: never at work
	chain []nccl.WorkRequest // of the step that is written
}

// wireTrace is what the network did with a connection's steps.
type wireTrace struct {
	steps [window]wireStep
	ends  [2]wireEnd // by nccltrace.Dir
}

// wireEnd is a connection's place at one of its ports.
type wireEnd struct {
	declared bool
	nic      int
	first    int32    // number of its first queue pair or socket
	qps      []int    // handles; of a receiver over RDMA the last flushes
	ports    []string // of a fused net, which queue pairs use round-robin
	op       nccl.ProxyOp
	from, to units.Time
}

// step is what the network did with the k-th step.
func (w *wireTrace) step(k int64) *wireStep { return &w.steps[k%window] }

// wireStep is when a step was where.
type wireStep struct {
	since, ready    units.Time // its kernel waited from, the proxy could see it
	filled          nccl.Terms
	allowed         units.Time // the clear-to-send was there
	wired, begun    units.Time // posted; first bytes on the wire
	landed          units.Time // last bytes through
	offered         units.Time // the receive was posted
	arrived, polled units.Time // last bytes in memory; receiver's completion polled
	flushed         units.Time // read back
	reads           bool       // it is read back
}

// ctsBytes is the size of an entry of the clear-to-send FIFO (net_ib.cc:1027,
// struct ncclIbSendFifo).
const ctsBytes = 64

// waits reports whether completions are still to come that the trace shows.
func (t *Tracer) waits() bool { return t.net.open > 0 }

// wireOf returns a connection's network side and its k-th step.
func (t *Tracer) wireOf(id int32, k int64) (*connTrace, *wireStep) {
	ct := t.conn(t.e.Net.Conns[id].ID)
	return ct, ct.wire.step(k)
}

// shown reports whether a connection's k-th step is of the last operation.
func (ct *connTrace) shown(k int64) bool { return ct.open && k >= ct.base }

// fills notes that a kernel filled a step, which the proxy sees when it is
// ready.
func (t *Tracer) fills(ct *connTrace, k int64, since, ready units.Time, terms nccl.Terms) {
	s := ct.wire.step(k)
	s.since, s.ready, s.filled = since, ready, terms
}

// wires notes that the proxy has posted the k-th step.
func (t *Tracer) wires(id int32, k int64) {
	ct, s := t.wireOf(id, k)
	s.wired, s.allowed = t.e.Queue.Now, t.e.Net.Conns[id].Allowed(k)
	t.net.open++
	if !ct.shown(k) {
		return
	}
	end := t.end(ct, nccl.Send)
	chain := t.chain(id, ct, k)
	for i := range chain {
		t.rec.Posted(s.wired-t.shift, &chain[i])
	}
	t.rec.Settle(end.nic, t.e.Queue.Now-t.shift)
}

// leaves notes that the k-th step's bytes begin to go.
func (t *Tracer) leaves(id int32, k int64) {
	_, s := t.wireOf(id, k)
	s.begun = t.e.Queue.Now
}

// lands notes that the k-th step's bytes are through.
func (t *Tracer) lands(id int32, k int64) {
	_, s := t.wireOf(id, k)
	s.landed = t.e.Queue.Now
}

// crosses writes the transfer of a queue pair's share through the network.
func (t *Tracer) crosses(l *host.QueuePair) {
	if !t.open || t.depth < nccl.DetailPacket {
		return
	}
	ct, s := t.wireOf(l.Conn, l.Step)
	if ct.shown(l.Step) {
		n := t.e.Net.Conns[l.Conn].Part(l.Step, l.Part)
		t.transfer(l.Route, s.begun, ct.plan.Src, ct.plan.Dst, ct.plan.Channel, n)
	}
}

// arrives notes that the receiver's proxy has polled the k-th step's completion
// at time at, and the tail was raised at time raised.
func (t *Tracer) arrives(id int32, k int64, at, raised units.Time) {
	c := &t.e.Net.Conns[id]
	ct, s := t.wireOf(id, k)
	s.arrived, s.polled, s.flushed = s.landed+t.e.Net.Behind(c)+t.e.Net.LastCopy(c, k), at, raised
	s.reads = t.e.Net.Flushes(c, k)
	if !ct.shown(k) {
		return
	}
	end := t.end(ct, nccl.Recv)
	if c.TCP() {
		t.reads(ct, c, k)
		return
	}
	for q := range c.Parts(k) {
		w := t.work(ct, end, nccl.Recv, c.PairOf(k, q), k, 0)
		t.rec.Arrival(at-t.shift, &w)
	}
	if s.reads {
		w := t.work(ct, end, nccl.Recv, int32(len(end.qps)-1), k, 1)
		w.Opcode, w.Terms[nccl.Flush] = nccl.OpRead, t.e.Net.Cost.Flush
		t.rec.Posted(at-t.shift, &w)
		t.rec.Work(at-t.shift, at+t.e.Net.Cost.Flush-t.shift, &w)
	}
	t.rec.Settle(end.nic, t.e.Queue.Now-t.shift)
}

// acks writes the k-th step's send, whose completion is polled at time at.
func (t *Tracer) acks(id int32, k int64, at units.Time) {
	t.net.open--
	ct, s := t.wireOf(id, k)
	if !ct.shown(k) {
		return
	}
	var peer, onWire nccl.Terms
	peer[nccl.CTS] = max(0, min(s.allowed, s.wired)-s.ready)
	peer.Rest(nccl.Proxy, s.wired-s.ready)
	c := &t.e.Net.Conns[id]
	onWire[nccl.Queue] = s.begun - s.wired
	onWire[nccl.NIC] = min(s.landed-s.begun, t.e.Net.Alone(c, k))
	onWire[nccl.Link] = s.landed - s.begun - onWire[nccl.NIC]
	onWire[nccl.Wire] = min(at-s.landed, t.e.Net.Ack(c))
	onWire.Rest(nccl.Proxy, at-s.wired)
	from, to, terms := s.wired, at, onWire
	if c.TCP() { // a socket is busy while it is written to
		from, to = s.begun, max(s.landed, s.begun+2*trace.Tick)
		terms[nccl.Queue], terms[nccl.Wire], terms[nccl.Proxy] = 0, 0, 0
		terms.Rest(nccl.Proxy, to-from)
	}
	chain := t.chain(id, ct, k)
	for i := range chain {
		chain[i].Terms = terms
		t.rec.Work(from-t.shift, to-t.shift, &chain[i])
	}
	step := ct.step(nccl.Send, k)
	t.rec.Steps(&step, ct.slot(k).flow,
		nccl.Phase{Wait: nccl.SendGPUWait, Start: s.since - t.shift, End: s.ready - t.shift, Terms: s.filled},
		nccl.Phase{Wait: nccl.SendPeerWait, Start: s.ready - t.shift, End: s.wired - t.shift, Terms: peer},
		nccl.Phase{Wait: nccl.SendWait, Start: s.wired - t.shift, End: max(at, s.wired+2*trace.Tick) -
			t.shift, Terms: onWire})
	t.progress(ct, nccl.Send, k, s.since, at)
}

// offers notes that the receiver's proxy posted the k-th receive and its
// clear-to-send at time at.
func (t *Tracer) offers(id int32, k int64, at units.Time) {
	ct, s := t.wireOf(id, k)
	s.offered = at
	c := &t.e.Net.Conns[id]
	if post := t.e.Net.Cost.Post; ct.open && at-post >= t.shift && !c.TCP() {
		// The ports of a fused net send it round-robin (net_ib.cc:2295).
		w := t.work(ct, t.end(ct, nccl.Recv), nccl.Recv, int32(k%int64(c.DstPorts())), k, ctsBytes)
		w.Opcode, w.Terms[nccl.Proxy] = nccl.OpCTS, post
		t.rec.Work(at-post-t.shift, at-t.shift, &w)
	}
}

// takes writes the k-th step's receive, which the kernel is through with; it
// could see the data when it was shown.
func (t *Tracer) takes(ct *connTrace, k int64, shown units.Time, deps []int64) {
	s := ct.wire.step(k)
	to := max(t.e.Queue.Now, s.flushed)
	from := min(max(s.offered, t.shift), s.polled-2*trace.Tick)
	var come, back, gpu nccl.Terms
	come[nccl.Proxy] = max(0, s.polled-max(s.arrived, from))
	come.Rest(nccl.Data, s.polled-from)
	if s.reads {
		back[nccl.Flush] = t.e.Net.Cost.Flush
	}
	back.Rest(nccl.Proxy, s.flushed-s.polled)
	gpu[nccl.Flag] = max(0, min(shown, to)-s.flushed)
	gpu.Rest(nccl.GPU, to-s.flushed)
	step := ct.step(nccl.Recv, k)
	step.Deps = deps
	t.rec.Steps(&step, ct.slot(k).flow,
		nccl.Phase{Wait: nccl.RecvWait, Start: from - t.shift, End: s.polled - t.shift, Terms: come},
		nccl.Phase{Wait: nccl.RecvFlushWait, Start: s.polled - t.shift, End: s.flushed - t.shift,
			Terms: back},
		nccl.Phase{Wait: nccl.RecvGPUWait, Start: s.flushed - t.shift, End: to - t.shift, Terms: gpu})
	t.progress(ct, nccl.Recv, k, from, to)
}

// progress counts a step of a proxy operation.
func (t *Tracer) progress(ct *connTrace, d nccl.Dir, k int64, from, to units.Time) {
	w := &ct.wire.ends[d]
	n := ct.slot(k).bytes
	if w.op.Steps == 0 || from < w.from {
		w.from = from
	}
	w.to = max(w.to, to)
	w.op.Steps++
	w.op.TransSize += n
	w.op.ChunkSize = max(w.op.ChunkSize, n)
}

// proxyOps writes the proxy operations of all connections.
func (t *Tracer) proxyOps() {
	for _, ct := range t.conns {
		if ct == nil || ct.wire == nil {
			continue
		}
		for d := range ct.wire.ends {
			w := &ct.wire.ends[d]
			if w.op.Steps == 0 {
				continue
			}
			w.op.Dir, w.op.Channel, w.op.Rank, w.op.Peer = nccl.Dir(d), int(ct.plan.Channel),
				int(ct.plan.Src), int(ct.plan.Dst)
			if w.op.Dir == nccl.Recv {
				w.op.Rank, w.op.Peer = w.op.Peer, w.op.Rank
			}
			if host.Reduces(&ct.plan) {
				w.op.Peer = nccl.NoPeer
			}
			t.rec.ProxyOperation(0, w.from-t.shift, w.to-t.shift, w.op)
		}
	}
}

// faults writes what is not as it should be, at the operation's start.
func (t *Tracer) faults() {
	c := t.job.Plan.Comm
	for _, f := range t.e.Net.Faults {
		why := fmt.Sprintf("%g times slower", f.Slow)
		if f.Later > 0 {
			why += fmt.Sprintf(", %v us later", f.Later)
		}
		if f.Rank >= 0 {
			t.rec.RankEvent(f.Rank, 0, "straggler", why)
			continue
		}
		r := slices.Index(c.HostOf, int32(f.Host))
		if r < 0 {
			continue
		}
		node := c.NodeOf[r]
		if nets := t.e.Net.Table.Systems[node].Of(topo.NET); f.Net < len(nets) {
			t.rec.PortEvent(t.rec.NIC(nccl.Port{Node: int(node), Net: f.Net,
				Name: t.e.Net.Table.Systems[node].Nodes[nets[f.Net]].Net.Name}), 0, "slow port", why)
		}
	}
}

// serves notes that a proxy thread, idle until now, is busy until at.
func (t *Tracer) serves(thread int32, at units.Time) {
	if t.net.busy == nil {
		t.net.busy = make([]units.Time, t.e.Net.Threads())
	}
	if last := t.net.busy[thread]; last > 0 && t.open && last >= t.shift && t.e.Queue.Now-last >= trace.Tick {
		t.rec.Proxy(int(thread), last-t.shift, t.e.Queue.Now-t.shift, "Idle")
	}
	t.net.busy[thread] = at
}

// end returns a connection's place at its port.
func (t *Tracer) end(ct *connTrace, d nccl.Dir) *wireEnd {
	w := &ct.wire.ends[d]
	if w.declared {
		return w
	}
	if !t.net.known {
		t.net.ends, t.net.known = t.job.Plan.PortEnds(), true
	}
	c := &ct.plan
	of, rank, peer, net, role := t.net.ends.Src, c.Src, c.Dst, c.Route.SrcNet, nccl.QPOut
	if d == nccl.Recv {
		of, rank, peer, net, role = t.net.ends.Dst, c.Dst, c.Src, c.Route.DstNet, nccl.QPIn
	}
	node := t.e.Net.Table.Comm.NodeOf[rank]
	s := t.e.Net.Table.Systems[node]
	w.declared = true
	nc := &t.e.Net.Conns[t.e.Conns[c.ID].Net]
	info := s.Nodes[s.Of(topo.NET)[net]].Net
	w.nic, w.ports = t.rec.NIC(nccl.Port{Node: int(node), Net: int(net), Name: info.Name, Sockets: nc.TCP()}),
		info.Fused
	n := nc.Shown()
	w.first = nccl.FirstQP(of[c.ID], n)
	for q := range n {
		w.qps = append(w.qps, t.rec.QP(w.nic, int(w.first+q), int(peer), int(c.Channel), role))
	}
	if d == nccl.Recv && !nc.TCP() {
		w.qps = append(w.qps, t.rec.QP(w.nic, int(w.first+n), int(peer), int(c.Channel), nccl.QPFlush))
	}
	return w
}

// work describes a request on a connection's q-th queue pair.
func (t *Tracer) work(ct *connTrace, w *wireEnd, d nccl.Dir, q int32, k int64,
	n units.Bytes) nccl.WorkRequest {
	rank := ct.plan.Src
	if d == nccl.Recv {
		rank = ct.plan.Dst
	}
	r := nccl.WorkRequest{NIC: w.nic, QP: w.qps[q], Rank: int(rank), QPNum: int64(w.first + q),
		ID: k - ct.base, Size: n}
	if len(w.ports) > 0 {
		r.Device = w.ports[int(q)%len(w.ports)]
	}
	return r
}

// chain lists the requests of the k-th step: on each of its queue pairs a write
// with an immediate, or a write and an empty one with the immediate. The list is valid
// until the next one.
func (t *Tracer) chain(id int32, ct *connTrace, k int64) []nccl.WorkRequest {
	c := &t.e.Net.Conns[id]
	end := t.end(ct, nccl.Send)
	if c.TCP() {
		return t.messages(ct, c, nccl.Send, k)
	}
	size, out := ct.slot(k).bytes, t.net.chain[:0]
	for q := range c.Parts(k) {
		w := t.work(ct, end, nccl.Send, c.PairOf(k, q), k, c.Part(k, q))
		if t.e.Net.TwoWrites >= 0 && size > t.e.Net.TwoWrites {
			w.Opcode = nccl.OpWrite
			out = append(out, w)
			w.Size = 0
		}
		w.Opcode = nccl.OpWriteImm
		out = append(out, w)
	}
	t.net.chain = out
	return out
}
