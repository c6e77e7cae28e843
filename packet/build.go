package packet

import (
	"slices"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/packet/internal/qp"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/packet/internal/route"
	"github.com/simccl/simccl/packet/internal/tiebreak"
	"github.com/simccl/simccl/packet/spec"
)

// build lays a run out in memory. ordered: simultaneous events are processed in ns-3's order; inTurn: windows
// of two link delays are tried (takeTurns).
func build(n *Network, flows []Flow, cfg *Config, ordered, inTurn bool) (*engine, error) {
	e := &engine{cfg: cfg, net: n, flows: flows, unfinished: len(flows), lookahead: arrivals.Longest,
		crowd: crowd, paths: max(1, cfg.Paths), ordered: ordered,
		full: uint16(cfg.Frames.Payload + cfg.Frames.Header), ack: uint16(cfg.Frames.Ack)}
	if ordered {
		e.lookahead = tiebreak.Longest
	}
	e.onlyDeepestPeak, e.maxFrame = true, int64(max(e.full, e.ack))
	e.layOut()
	workers := cfg.Workers
	if cfg.CC.Kind == HPCC {
		workers = 1 // telemetry of all flows is stored in one place
	}
	e.divide(workers)
	if err := e.buildSwitches(); err != nil {
		return nil, err
	}
	if err := e.buildFlows(); err != nil {
		return nil, err
	}
	e.changes = spec.Changes(e.cfg.Faults, n)
	if ordered && cfg.Stream > 0 {
		e.streams = rng.NewFirsts(cfg.Stream, cfg.Seed)
	}
	if inTurn {
		e.takeTurns()
	}
	if ordered {
		e.openCalendars()
	}
	if ordered && cfg.LossStream > 0 {
		e.losses = port.AllLossDraws(spec.Lossy(n), cfg.LossStream, cfg.Seed)
	}
	return e, nil
}

// layOut creates the links, hosts and switches of the network, without flows.
func (e *engine) layOut() {
	if e.cfg.CC.Kind == HPCC {
		e.maxFrame = all
	}
	dcqcn, trims := e.cfg.CC.Kind == DCQCN, e.cfg.Buffer.Trim > 0
	e.noFastPath, e.rules = e.cfg.Plain(), qp.Rules{CC: &e.cfg.CC, Payload: e.cfg.Frames.Payload, Trim: trims,
		Gaps: e.cfg.Repair.Selective || trims, Timed: dcqcn && e.cfg.CC.VarWindow}
	e.classes, e.classOf = spec.Classes(e.flows)
	links, delay := port.Lay(e.net, e.cfg, e.classes, e.ordered)
	e.links, e.lookahead = links, min(e.lookahead, delay)
	e.buildNodes()
}

// takeTurns doubles the windows where the network is bipartite: switches with hosts on one side (late), all
// other nodes on the other. The late side runs one delay behind, so that each side sees all that the other
// sent:
//
//	other side   |--- window 1 ---|--- window 2 ---|
//	late side          |--- window 1 ---|--- window 2 ---|
//	             <-lag->
//
// Half as many windows remain. Draws from a shared stream must all come from one side (or change only counts
// of marks); a run in which frames are lost or sent again restarts without turns (errAgain). An ordered run
// with several workers does not take turns, because its workers exchange events only between windows.
func (e *engine) takeTurns() {
	heeded := e.streams != nil && !e.cfg.CC.Kind.Unmarked()
	late := spec.LateSide(e.net, e.cfg, e.lookahead, heeded)
	if late == nil || e.noFastPath || e.ordered && len(e.workers) > 1 || e.slot > 4 ||
		2*e.lookahead > tiebreak.Longest {
		return
	}
	for i := range e.switches {
		e.switches[i].late = late[e.switches[i].node]
	}
	e.ranker.Ahead, e.ranker.Wait = e.lookahead, !heeded
	e.lag, e.lookahead = e.lookahead, 2*e.lookahead
}

// buildNodes creates hosts and switches; ports are numbered in the order of cables.
func (e *engine) buildNodes() {
	ports, ends, exits := port.Number(e.links, e.net.Nodes)
	e.exits, e.due = exits, slices.Repeat([]int64{never}, len(e.links))
	hostOf, places := make([]int32, e.net.Nodes), make([]int32, len(e.flows))
	for v, out := range ports {
		hostOf[v] = ^int32(len(e.switches))
		if e.net.Switch[v] {
			e.switches = append(e.switches, switchNode{node: int32(v), out: out})
			continue
		}
		hostOf[v] = int32(len(e.hosts))
		h := host{node: int32(v), out: -1, in: -1, table: qp.NewReadyTable(places),
			sports: map[int32]uint16{}, HostPort: port.HostPort{First: never, Timer: never,
				Pacing: port.PacingPlan{Number: tiebreak.None}}}
		acts := never // a host without a cable
		if len(out) > 0 {
			acts, h.out, h.in = 0, out[0], e.links[out[0]].Peer
			if e.hostRate == 0 {
				e.hostRate = e.links[h.out].Rate
			}
		}
		e.hosts, e.acts = append(e.hosts, h), append(e.acts, acts)
		e.doors = append(e.doors, h.in)
	}
	e.routes, e.hostOf = route.New(e.net.Switch, ends), hostOf
	if e.live != nil {
		e.routes = route.All(e.net.Switch, ends)
	}
}

// buildSwitches divides each switch's buffer. Error: *InputError if headroom and reserves exceed it.
func (e *engine) buildSwitches() error {
	b := &e.cfg.Buffer
	for i := range e.switches {
		s := &e.switches[i]
		n := len(s.out)
		s.in = make([]int32, n)
		s.busy, s.control = make([]uint64, (n+63)/64), make([]uint64, (n+63)/64)
		ports := make([]port.IngressPort, n)
		for p, id := range s.out {
			s.in[p], ports[p] = e.links[id].Peer, port.IngressPort{Rate: e.links[id].Rate,
				Delay: e.links[id].Delay}
		}
		s.SharedBuffer = port.NewSharedBuffer(b, e.classes, ports, e.hostRate)
		if s.Shared() <= 0 && b.Credits == 0 && b.Trim == 0 {
			return wrong("switch %d: a buffer of %d bytes holds less than the headroom and reserve of its "+
				"%d ports, %d: write a larger buffer",
				s.node, b.Bytes, n, b.Bytes-s.Shared())
		}
	}
	return nil
}

// buildFlows allocates queue pairs and routes, and schedules the flows that wait for no other. Error:
// *InputError for a flow without a path.
func (e *engine) buildFlows() error {
	n := len(e.flows)
	e.snd, e.rcv, e.result = make([]sender, n), make([]receiver, n), make([]FlowResult, n)
	for i := range e.flows {
		f := &e.flows[i]
		if !e.routes.Both(f.Src, f.Dst) {
			return wrong("flow %d: no path from node %d to node %d", i, f.Src, f.Dst)
		}
		e.frames += (f.Bytes + int64(e.cfg.Frames.Payload) - 1) / int64(e.cfg.Frames.Payload)
	}
	e.slot = spec.Longest(e.flows, e.routes.Longest())
	e.hops, e.outs = make([]int32, (1+e.paths)*e.slot*n), make([]uint16, (1+e.paths)*e.slot*n)
	if e.cfg.Routing.Balance != Hashed {
		e.buildTables()
	}
	e.egressPerFrame = e.tables != nil || e.cfg.Watchdog.After > 0
	e.ccBuild()
	e.waits = qp.NewFlowDeps(n, func(i int) []int32 { return e.flows[i].Deps })
	order := make([]int32, 0, n)
	for i := range e.flows {
		if e.waits.Free(i) {
			order = append(order, int32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return int(e.flows[a].Start - e.flows[b].Start) })
	for _, i := range order {
		e.begin(i, int64(e.flows[i].Start))
	}
	if e.ordered && len(order) < n {
		e.starts = qp.NewStartOrder(n, order)
	}
	return nil
}
