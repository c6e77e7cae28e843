package fold

import (
	"slices"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/variates"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// A network between the hosts can be left out of a quotient where none of its
// cables can be saturated: where the ports that send over a cable, or those
// that receive, are together no faster than it. Then nothing is left of it but
// latency, which has to be the same for all that is merged.

// maxRoutes is the number of connections up to which routes are compared.
const maxRoutes = 1 << 22

// traffic is what meets on a cable: ports that send over it and that receive,
// and their rates.
type traffic struct{ from, to portSum }

type portSum struct {
	ports []host.Port
	rate  wire.Rate
}

func (m *portSum) add(p host.Port, r wire.Rate) {
	if !slices.Contains(m.ports, p) {
		m.ports = append(m.ports, p)
		m.rate += r
	}
}

// cables collects, over the routes of a plan's connections, which ports meet on each cable of the network.
type cables struct {
	n     *host.Network
	cross []traffic // by wire
	route []int32
}

// latencies returns the latency that the network adds to each of the engine's connections. ok is false where
// a cable may be a bottleneck, or where connections that are represented by one have routes of several
// latencies: the network cannot be left out then.
func (q *Quotient) latencies() (later []units.Time, ok bool, err error) {
	n, p := q.e.Net, q.plan
	if n.Fabric == nil {
		return nil, true, nil
	}
	if p.NumConns() > maxRoutes || p.Sharing() > 1 {
		return nil, false, nil
	}
	w := &cables{n: n, cross: make([]traffic, len(n.Fabric.Wires))}
	later = make([]units.Time, len(q.e.Conns))
	for i := range later {
		later[i] = -1
	}
	for id := range p.NumConns() {
		if id%(1<<12) == 0 {
			if err := q.e.Poll(); err != nil {
				return nil, false, err
			}
		}
		c := q.conn(id)
		if c < 0 {
			continue // no op uses it
		}
		pc := p.Conn(id)
		if host.Reduces(&pc) {
			return nil, false, nil
		}
		if !between(&pc) {
			continue
		}
		t, free, err := w.of(&pc)
		if err != nil || !free || later[c] >= 0 && later[c] != t {
			return nil, false, err
		}
		later[c] = t
	}
	return later, true, nil
}

// between reports whether a connection goes from host to host.
func between(pc *plan.Conn) bool {
	return pc.Src >= 0 && pc.Dst >= 0 && pc.Kind != connect.NVLSRoute && pc.Route.Transport == connect.NET
}

// of returns the latency of a connection's longest route over its queue pairs. free is false where a cable
// may also slow the messages down (the ports that meet there exceed its rate) or lose some.
func (w *cables) of(pc *plan.Conn) (later units.Time, free bool, err error) {
	src, dst := w.n.Ports(pc)
	comm := w.n.Table.Comm
	out, err := w.n.PortRate(comm.NodeOf[pc.Src], src.Net)
	if err != nil {
		return 0, false, err
	}
	in, err := w.n.PortRate(comm.NodeOf[pc.Dst], dst.Net)
	if err != nil {
		return 0, false, err
	}
	for q := range int32(max(1, w.n.Settings.QPs)) {
		w.route, err = w.n.Route(w.route[:0], src.Whole(), dst.Whole(), host.FlowOf(pc, q))
		if err != nil {
			return 0, false, err
		}
		t := w.n.Later(pc)
		for _, i := range w.route {
			cable, x := &w.n.Fabric.Wires[i], &w.cross[i]
			x.from.add(src, out)
			x.to.add(dst, in)
			if cable.Loss > 0 || min(x.from.rate, x.to.rate) > w.n.CableRate(i) {
				return 0, false, nil
			}
			t += cable.Latency
		}
		later = max(later, t)
	}
	return later, true, nil
}

// period returns after how many nodes the routes between hosts repeat; 0: never. Example: with 4 hosts a
// leaf switch a ring's routes repeat after 4 nodes, 3 within a leaf and a longer one to the next.
func (x *Config) period(p *plan.Plan) int32 {
	r, c := x.Fabric.Router(), p.Comm
	marks := make([]variates.Multiset, c.NNodes)
	var route []int32
	for id := range min(maxRoutes, p.NumConns()) {
		pc := p.Conn(id)
		if !between(&pc) {
			continue
		}
		var err error
		src, dst := host.Port{Host: c.HostOf[pc.Src], Net: pc.Route.SrcNet}, host.Port{Host: c.HostOf[pc.Dst],
			Net: pc.Route.DstNet}
		if route, err = r.Route(route[:0], src.Whole(), dst.Whole(), host.FlowOf(&pc, 0)); err != nil {
			return 0
		}
		var t units.Time
		for _, i := range route {
			t += x.Fabric.Wires[i].Latency
		}
		marks[c.NodeOf[pc.Src]].Add(variates.Mix(uint64(pc.Channel)<<32|uint64(c.LocalRank[pc.Src]))^uint64(
			t), 1)
	}
	for d := 1; d < c.NNodes; d++ {
		repeats := func(i int, m variates.Multiset) bool { return m == marks[i%d] }
		if c.NNodes%d == 0 && all(marks, repeats) {
			return int32(d)
		}
	}
	return 0
}

func all[T any](list []T, is func(int, T) bool) bool {
	for i, v := range list {
		if !is(i, v) {
			return false
		}
	}
	return true
}

// foldable reports whether a network may be left out at all: where routes do not
// depend on those given before, and every net has one.
func (c *Config) foldable() bool {
	if c.Fabric == nil {
		return true
	}
	fused := func(s *topo.System) bool {
		return slices.ContainsFunc(s.Of(topo.NET), func(id topo.NodeID) bool {
			return len(s.Nodes[id].Net.Fused) > 1
		})
	}
	return c.Fabric.Network.Routing != fabric.Adaptive && !slices.ContainsFunc(c.Systems, fused)
}
