package uec

import (
	"math"
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/rng"
	"github.com/simccl/simccl/units"
)

// build lays a run out. Link 2i goes up, link 2i+1 down; hosts' links come first, then leaf to spine, leaf by
// leaf, then spine to core.
func build(n *Network, flows []Flow, c *Config) *engine {
	e := &engine{net: n, cfg: c, flows: flows, live: len(flows)}
	h := n.Hosts()
	e.spines = h + n.Leaves
	e.nodes = make([]node, h+n.Leaves+n.AllSpines()+n.Cores)
	cables := make([]cable, 0, h+n.Leaves*n.Spines+n.AllSpines()*n.Uplinks())
	join := func(low, high int, rate int64, delay, lowLatency, highLatency units.Time, host bool) {
		cables = append(cables, cable{int32(low), int32(high), rate, [2]int64{int64(delay + highLatency),
			int64(delay + lowLatency)}, host})
	}
	for i := range h {
		join(i, h+i/n.PerLeaf, n.HostRate, n.HostDelay, 0, n.LeafLatency, true)
	}
	for l := range n.Leaves {
		for s := range n.Spines {
			join(h+l, h+n.Leaves+n.Pod(l)*n.Spines+s, n.SpineRate, n.SpineDelay, n.LeafLatency,
				n.SpineLatency, false)
		}
	}
	for s := range n.AllSpines() {
		for u := range n.Uplinks() {
			join(h+n.Leaves+s, h+n.Leaves+n.AllSpines()+u*n.Spines+s%n.Spines, n.CoreRate, n.CoreDelay,
				n.SpineLatency, n.CoreLatency, false)
		}
	}
	e.layOut(cables)
	e.lookahead = arrivals.Longest
	for i := range e.links {
		e.lookahead = min(e.lookahead, e.links[i].delay)
	}
	rateOf := func(link int) (int32, int64) { return e.links[link].to, e.links[link].rate }
	e.lookahead = arrivals.Window(e.lookahead, len(e.nodes), len(e.links), control, rateOf)
	e.span = e.lookahead
	e.parameters()
	e.buildFlows()
	e.tables = e.undrawnTables()
	return e
}

// roundTrip returns the base round trip between two leaves in ps, with full frames of mtu bytes.
func (n *Network) roundTrip(mtu int) int64 {
	gbps := float64(n.HostRate) / 1e9
	links, oneWay := 4.0, 2*(n.HostDelay+n.SpineDelay)+2*n.LeafLatency+n.SpineLatency
	if n.Pods > 0 {
		links, oneWay = 6, oneWay+2*n.CoreDelay+n.SpineLatency+n.CoreLatency
	}
	return 2*int64(oneWay) + int64(float64(mtu*8)/gbps*links*1000) + int64(float64(control*8)/gbps*links*1000)
}

// room returns the bandwidth-delay product in full frames of mtu bytes: the size of a switch's queue.
func (n *Network) room(mtu int) float64 {
	return math.Ceil(float64(n.roundTrip(mtu)) / 1e12 * float64(n.HostRate/8) / float64(mtu))
}

// parameters derives queue size, ECN thresholds, timeout and NSCC's constants from the base round trip
// (sim/datacenter/main_uec.cpp).
func (e *engine) parameters() {
	n := e.net
	rtt, packets := n.roundTrip(e.cfg.MTU), n.room(e.cfg.MTU)
	bdp := float64(rtt) / 1e12 * float64(n.HostRate/8)
	mtu := int64(e.cfg.MTU)
	e.mtu, e.queue = mtu, int64(packets)*mtu
	e.ecnLow, e.ecnHigh = int64(math.Ceil(packets*0.2))*mtu, int64(math.Ceil(packets*0.8))*mtu
	e.rto = int64((15 + float64(e.queue)*6*8*1e6/float64(n.HostRate)) * 1e6)
	e.nscc = cc.NewUltra(rtt, n.HostRate, e.cfg.MTU, Header)
	e.res.BaseRTT, e.res.BandwidthDelay, e.res.QueueBytes, e.res.MaxWind = units.Time(rtt), int64(bdp),
		e.queue, int64(1.5*float64(int64(bdp)))
}

// outsRoom bounds the cache of egress ports by goal and path: a larger cache misses the CPU's cache, and
// hashing again is faster.
const outsRoom = 1 << 17

func (e *engine) buildFlows() {
	n := len(e.flows)
	e.snd, e.rcv, e.res.Flows = make([]sender, n), make([]receiver, n), make([]FlowResult, n)
	e.deps, e.missing, e.ready = make([][]int32, n), make([]int32, n), make([]int64, n)
	e.hosts, e.acts = make([]host, e.net.Hosts()), make([]int64, e.net.Hosts())
	for i := range e.hosts {
		h, l := &e.hosts[i], &e.links[i]
		h.id, h.free, h.opens = int32(i), never, never
		h.rate, h.small, h.little, h.delay = l.rate, nicTransmission(control, l.rate), l.small, l.delay
	}
	if most := 2 * n * e.cfg.Paths; most <= outsRoom && e.net.PerLeaf+e.net.Spines < 255 {
		e.outs = make([]uint8, most)
	}
	e.seed()
	e.goals, e.ids = make([]goal, 2*n), make([]uint32, n)
	for i := range e.flows {
		e.goals[2*i], e.goals[2*i+1], e.ids[i] = e.net.goal(e.flows[i].Dst), e.net.goal(e.flows[i].Src),
			e.flows[i].ID
		e.missing[i] = int32(len(e.flows[i].Deps))
		for _, d := range e.flows[i].Deps {
			e.deps[d] = append(e.deps[d], int32(i))
		}
	}
	e.pools = slices.Clone(e.cfg.Pools)
	for _, p := range e.pools {
		for _, f := range p {
			e.missing[f]++
		}
	}
	for i := range e.flows {
		e.waits = e.waits || e.missing[i] > 0
		if e.missing[i] == 0 {
			e.begin(int32(i), int64(e.flows[i].Start))
		}
	}
}

// seed draws, in htsim's order, the salts of switches and the first paths of flows. The shuffled tables of
// uplinks follow when a switch first needs them.
func (e *engine) seed() {
	n := e.net
	c := rng.NewMT19937(e.cfg.Seed)
	e.salt = make([]uint32, n.Leaves+n.AllSpines())
	for i := range e.salt {
		e.salt[i] = c.Next()
	}
	for range n.Cores + n.Hosts() { // salts of cores, and first ports of the hosts' NICs
		c.Next()
	}
	for i := range e.flows {
		e.snd[i].paths = newPaths(e.cfg, c)
	}
	if e.cfg.Balance == Bitmap || e.cfg.Balance == Mixed {
		k := e.cfg.Paths
		words := (k + 63) / 64
		skip, held := make([]uint8, len(e.flows)*k), make([]uint64, len(e.flows)*words)
		for i := range e.flows {
			e.snd[i].paths.penalties(skip[i*k:(i+1)*k:(i+1)*k], held[i*words:(i+1)*words:(i+1)*words])
		}
	}
	e.up, e.setup = make([][]uint16, n.Leaves), c
	if n.Pods > 0 {
		e.over = make([][][]uint16, n.AllSpines())
	}
}

// goal returns a host's leaf and its port there.
func (n *Network) goal(host int32) goal {
	return goal{uint16(int(host) / n.PerLeaf), uint16(int(host) % n.PerLeaf)}
}

// spineTable returns a leaf's shuffled table of ports to spines.
func (e *engine) spineTable(leaf int, c *rng.MT19937) []uint16 {
	return rng.Shuffled(e.net.PerLeaf, e.net.Spines, c)
}

// coreTable returns a spine's shuffled table of ports to cores for a host of another pod, drawn when first
// needed.
func (e *engine) coreTable(spine, host int) []uint16 {
	n := e.net
	if e.over[spine] == nil {
		e.over[spine] = make([][]uint16, n.Hosts())
	}
	to := &e.over[spine][host]
	if *to == nil {
		*to = rng.Shuffled(n.Leaves/n.Pods, n.Uplinks(), e.setup)
	}
	return *to
}
