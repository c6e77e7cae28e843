package sim

import (
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/units"
)

// fold is the quotient of a plan by its symmetry: nodes that are alike, and
// channels that differ only in where they enter a node. What remains is one
// node's stretch of one ring, whose last rank sends to its first; links carry
// as many flows of each place as real ones do.
//
// It holds because equal programs with equal neighbours on equally loaded
// links do the same at the same time. Loads are part of the symmetry: links
// are one only if every place of the ring crosses them equally often.
type fold struct {
	period   int32 // nodes that it takes to come round
	places   int32
	order    [][]int32 // channel of the split → rank of the period by place
	exact    bool      // bit for bit what all ranks would do
	channels int
	to       []int32 // the connection of each place
}

// ends gives an op its folded connections.
func (f *fold) ends(place int32, from, to int) ([]int32, []int32) {
	prev := place - 1
	if place == 0 {
		prev = f.places - 1
	}
	return f.to[prev : prev+int32(from)], f.to[place : place+int32(to)]
}

// foldRing returns the quotient of a ring plan, nil where it has none.
func foldRing(p *plan.Plan, systems []*topo.System) *fold {
	switch {
	case p.Req.Algo != coll.Ring || p.Req.Count == 0 || p.Comm.NRanks < 2:
		return nil
	case p.Req.Func != coll.AllReduce && p.Req.Func != coll.AllGather && p.Req.Func != coll.ReduceScatter:
		return nil // the others are chains with two ends
	}
	c := p.Comm
	for i := range systems {
		if systems[i] != systems[0] || len(c.NodeRanks[i]) != len(c.NodeRanks[0]) {
			return nil
		}
	}
	for period := 1; period <= min(2, c.NNodes); period++ {
		if c.NNodes%period == 0 {
			if f := foldBy(p, period); f != nil {
				return f
			}
		}
	}
	return nil
}

// foldBy tries the quotient by every period-th node: rings that change NICs
// run through odd nodes the other way round (connect.cc, crossNic).
func foldBy(p *plan.Plan, period int) *fold {
	c := p.Comm
	f := &fold{period: int32(period), places: int32(period * len(c.NodeRanks[0])), channels: p.Split.NChannels}
	for ch := p.Split.ChannelLo; ch <= p.Split.ChannelHi; ch++ {
		var o []int32
		if k := len(f.order); k > 0 && &c.Channels[ch].Ring[0] == &c.Channels[ch-1].Ring[0] {
			o = f.order[k-1]
		} else if o = quotientOrder(c, ch, int32(period)); o == nil {
			return nil
		}
		f.order = append(f.order, o)
	}
	s := &p.Split
	f.exact = s.Lo == s.Mid && (s.Mid == s.Hi || s.NChannels == 1) && f.balanced() && evenChunks(p)
	return f
}

// quotientOrder returns the order in which a channel's ring visits the ranks
// of a period of nodes, numbered node by node, from where it enters the first;
// nil where periods differ.
func quotientOrder(c *connect.Comm, ch int, period int32) []int32 {
	per := int32(len(c.NodeRanks[0]))
	n := per * period
	next := make([]int32, n)
	for i := range next {
		next[i] = -1
	}
	at := func(r int32) int32 { return c.NodeOf[r]%period*per + c.LocalRank[r] }
	entry := int32(-1)
	for r := range c.Channels[ch].Ring {
		to := c.Channels[ch].Ring[r].Next
		from, target := at(int32(r)), at(to)
		if next[from] >= 0 && next[from] != target {
			return nil
		}
		next[from] = target
		if c.NodeOf[r] == c.NodeOf[to] {
			continue
		}
		if target < per && entry >= 0 && entry != target {
			return nil
		} else if target < per {
			entry = target
		}
	}
	o := make([]int32, 0, n)
	seen := make([]bool, n)
	for i := max(0, entry); int32(len(o)) < n; i = next[i] {
		if i < 0 || seen[i] {
			return nil
		}
		seen[i] = true
		o = append(o, i)
	}
	return o
}

// rank returns the rank that stands at a place of a channel of the split.
func (f *fold) rank(c *connect.Comm, channel int, place int32) int32 {
	i := f.order[channel][place]
	per := f.places / f.period
	return c.NodeRanks[i/per][i%per]
}

// balanced reports whether every rank takes every place of its node on equally
// many channels.
func (f *fold) balanced() bool {
	per := f.places / f.period
	if len(f.order)%int(per) != 0 {
		return false
	}
	want := len(f.order) / int(per)
	count := make([]int, f.places*f.places)
	for _, o := range f.order {
		for place, i := range o {
			count[int32(place)*f.places+i]++
		}
	}
	for k, n := range count {
		if int32(k)/f.places/per == int32(k)%f.places/per && n != want {
			return false
		}
	}
	return true
}

// evenChunks reports whether all chunks of a turn are of one size, so that no
// rank has less to do than another.
func evenChunks(p *plan.Plan) bool {
	perTurn := int64(p.Comm.NRanks)
	if p.Req.Func == coll.AllReduce {
		perTurn = int64(2*p.Comm.NRanks - 1)
	}
	progs := p.Programs(0)
	if len(progs) == 0 {
		return false
	}
	cur := p.Open(&progs[0])
	var op plan.Op
	var size units.Bytes
	for i := int64(0); cur.Next(&op); i++ {
		if i%perTurn == 0 {
			size = op.Bytes
		}
		if op.Bytes != size {
			return false
		}
	}
	return true
}

// layFolded lays out the quotient.
func (e *engine) layFolded(w *wiring, f *fold) error {
	e.fold = f
	e.devs = make([]device, 1)
	w.period = f.period
	lo := int32(e.plan.Split.ChannelLo)
	for place := range f.places {
		rank := f.rank(e.plan.Comm, 0, place)
		for _, pr := range e.plan.Programs(rank) {
			if pr.Channel != lo {
				continue
			}
			e.sms = append(e.sms, multiprocessor{first: int32(len(e.groups)), n: 1})
			e.gap = units.FromMicros(e.class.KernelGap[pr.Proto])
			e.groups = append(e.groups, group{pr: pr, sm: int32(len(e.sms) - 1), wake: -1, joint: -1, spread: 1, pos: place})
		}
		f.to = append(f.to, place)
	}
	e.devs[0].n = int32(len(e.sms))
	return e.foldConns(w, f)
}

// real lists the connections that stand at a place: one a channel.
func (e *engine) real(f *fold, place int32) []plan.Conn {
	var out []plan.Conn
	for i := range f.order {
		ch := int32(e.plan.Split.ChannelLo + i)
		rank := f.rank(e.plan.Comm, i, place)
		for _, pr := range e.plan.Programs(rank) {
			if pr.Channel != ch {
				continue
			}
			var op plan.Op
			for cur := e.plan.Open(&pr); cur.Next(&op); {
				if len(op.To) > 0 {
					out = append(out, e.plan.Conn(op.To[0]))
					break
				}
			}
		}
	}
	return out
}

// crossing is how often one real link is crossed by each kind of traffic: the
// kernel's stores of each place, and its network messages.
type crossing struct {
	link  simnet.LinkID
	count []int32
}

// foldConns declares the folded connections over links that stand for all
// links crossed alike.
func (e *engine) foldConns(w *wiring, f *fold) error {
	// First every link by itself, in a model that never runs.
	scratch := new(simnet.Fluid)
	sw, err := newWiring(e.plan.Comm, w.systems, e.class, scratch)
	if err != nil {
		return err
	}
	sw.period = f.period
	sn := newNetwork(e, sw)
	kinds := 2 * int(f.places)
	var cross []crossing
	note := func(kind int) {
		for _, u := range sw.uses {
			for int(u.Link) >= len(cross) {
				cross = append(cross, crossing{simnet.LinkID(len(cross)), make([]int32, kinds)})
			}
			cross[u.Link].count[kind] += u.Count
		}
	}
	conns := make([][]plan.Conn, f.places)
	for place := range f.places {
		conns[place] = e.real(f, place)
		for i := range conns[place] {
			c := &conns[place][i]
			sw.uses = sw.uses[:0]
			if err := sw.stores(c); err != nil {
				return err
			}
			note(int(place))
			if c.Route.Transport == connect.NET {
				sw.uses = sw.uses[:0]
				if err := sn.gather(c); err != nil {
					return err
				}
				note(int(place + f.places))
			}
		}
	}
	routes := foldRoutes(w, scratch, cross, kinds)
	return e.joinFolded(w, f, conns, routes)
}

// foldRoutes declares one link for all that are crossed alike, and the route
// of every kind of traffic.
func foldRoutes(w *wiring, scratch *simnet.Fluid, cross []crossing, kinds int) []simnet.RouteID {
	var classes []crossing
	var of []simnet.LinkID
	for _, x := range cross {
		same := func(y crossing) bool {
			return scratch.Capacity(x.link) == scratch.Capacity(y.link) && slices.Equal(x.count, y.count)
		}
		if !slices.ContainsFunc(classes, same) {
			classes = append(classes, x)
			of = append(of, w.net.AddLink(scratch.Name(x.link), scratch.Capacity(x.link)))
		}
	}
	routes := make([]simnet.RouteID, kinds)
	for k := range routes {
		w.uses = w.uses[:0]
		for i, x := range classes {
			if x.count[k] > 0 {
				w.uses = append(w.uses, simnet.Use{Link: of[i], Count: x.count[k]})
			}
		}
		routes[k] = w.intern()
	}
	return routes
}

// joinFolded declares the connection of every place.
func (e *engine) joinFolded(w *wiring, f *fold, real [][]plan.Conn, routes []simnet.RouteID) error {
	e.conns = make([]conn, f.places)
	for place := range f.places {
		pr := &e.groups[place].pr
		pc := &real[place][0]
		e.conns[place] = conn{snd: place, rcv: (place + 1) % f.places, route: routes[place], net: -1,
			depth: plan.FIFOSteps / int64(max(1, pr.SliceSteps)), far: e.farOf(pc)}
		if pc.Route.Transport != connect.NET {
			continue
		}
		net, err := e.nw.join(pc, place, pr, routes[place+f.places])
		if err != nil {
			return err
		}
		// One proxy thread stands for all of its kind.
		proxies := map[int32]bool{}
		for i := range real[place] {
			proxies[real[place][i].Route.SrcProxy] = true
		}
		nc := &e.nw.conns[net]
		nc.srcProxy, nc.dstProxy = e.plan.Comm.NodeOf[pc.Src]%f.period, e.plan.Comm.NodeOf[pc.Dst]%f.period
		nc.load = int32((len(real[place]) + len(proxies) - 1) / len(proxies))
		f.exact = f.exact && len(real[place])%len(proxies) == 0
		e.conns[place].net = net
	}
	return nil
}
