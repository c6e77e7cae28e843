package uec

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/rng"
)

// goal is a host by its leaf and the port there.
type goal struct{ leaf, port uint16 }

// engine is one run.
type engine struct {
	net    *Network
	cfg    *Config
	flows  []Flow
	goals  []goal   // of flows: of frames, then of their answers
	ids    []uint32 // of flows: what switches hash of them
	nodes  []node   // hosts, then leaves, spines and cores
	spines int      // the first spine
	keys   [few]uint64
	links  []link       // by the node that they leave; the first are of hosts
	up     [][]uint16   // of leaves: ports to spines, in the order of their table; nil: not needed yet
	over   [][][]uint16 // of spines by host of another pod: to cores, in the same way
	// of goals by path: the port of the sender's leaf, from 1; 0: not known; nil: never is
	outs    []uint8
	salt    []uint32 // of leaves, then of spines
	setup   *rng.MT19937
	hosts   []host
	snd     []sender
	rcv     []receiver
	res     Result
	deps    [][]int32
	missing []int32
	pools   [][]int32 // what has not been started
	ready   []int64
	live    int
	waits   bool   // flows wait for others to end
	look    int64  // the least delay of a cable, in ps
	span    int64  // ps of a window
	tables  int    // of leaves, not yet drawn, that will be
	again   int64  // when a host last had a frame of a packet that it knew to have come
	ports   []port // by node; the first are of hosts, each of the link that leaves there
	// bits of hosts for which that is known, or acts; of ports of switches for which that is known
	come          []uint64
	goes          []uint64 // bits of ports of switches where frames wait
	acts          []int64  // by host: it does nothing before
	upTo          int64    // switches without hosts were simulated up to
	lead          int64    // and leaves this much further
	arrived       []frame
	batches       []batch // of arrived
	stamps        stamps
	ranks         ranks
	from          int64 // when the window of arrived began
	parts         arrivals.Parts
	merged        []uint64
	peak          int32  // the deepest queue that was seen
	deep          int32  // the name of its link
	lag, lagEqual uint32 // see unseen
	ended         []int32
	nscc          cc.Ultra
	queue         int64 // bytes of a switch's queue
	ecnLow        int64
	ecnHigh       int64
	rto           int64
	mtu           int64
}

const never = int64(1<<63 - 1)

// Run simulates the flows on the network.
func Run(n *Network, flows []Flow, c *Config) (*Result, error) {
	if err := Check(n, flows, c); err != nil {
		return nil, err
	}
	e := build(n, flows, c)
	done, err := e.run(e.mayTurn())
	if err == nil && !done {
		e = build(n, flows, c)
		_, err = e.run(false)
	}
	if err != nil {
		return nil, err
	}
	e.peaks()
	return &e.res, nil
}

// peaks notes the deepest queue, and counts what left queues.
func (e *engine) peaks() {
	most := &link{}
	for i := range e.links {
		l := &e.links[i]
		e.res.DataPacketHops += l.hops
		if free := e.ports[i].free; l.size != 0 && free >= e.until(l.from) {
			e.res.DataPacketHops-- // its transmission did not end
		}
		if l.peak > most.peak || l.peak == most.peak && l.id < most.id {
			most = l
		}
	}
	if most.peak > 0 {
		e.res.PeakQueue, e.res.PeakLink = int64(most.peak), [2]int32{most.from, most.to}
	}
}

// until is when the simulation of a switch ended.
func (e *engine) until(v int32) int64 {
	if e.isLeaf(v) {
		return e.upTo + e.lead
	}
	return e.upTo
}

// run simulates all, in turns if it may. It reports false where the end of a window would show in
// what is counted.
func (e *engine) run(turns bool) (bool, error) {
	for now := e.next(0); e.live > 0 && now != never; {
		if turns && e.tables == 0 {
			return e.turns(now)
		}
		if err := e.poll(); err != nil {
			return false, err
		}
		end := now + e.look
		if e.window(end) {
			now = end
		} else {
			now = e.next(end)
		}
	}
	return true, nil
}

// poll counts a window, and asks, each 1024 of them, whether to go on.
func (e *engine) poll() error {
	e.res.Windows++
	if e.res.Windows&1023 == 1 && e.cfg.Poll != nil {
		return e.cfg.Poll()
	}
	return nil
}

// window simulates up to end; it reports whether frames arrived.
func (e *engine) window(end int64) bool {
	e.upTo = end
	return e.runHosts(end)+e.switches(e.net.Hosts(), len(e.nodes), end) > 0
}

// switches simulates those from first to before last up to end; it returns how many frames arrived.
func (e *engine) switches(first, last int, end int64) (busy int) {
	for v := first; v < last; v++ {
		if n := &e.nodes[v]; n.ports > 64 || e.come[n.word]|e.goes[n.word] != 0 {
			busy += e.runSwitch(v, end)
		}
	}
	return busy
}

// runHosts simulates all hosts up to end; it returns how many frames arrived.
func (e *engine) runHosts(end int64) (busy int) {
	hosts := e.come[:(len(e.hosts)+63)/64]
	if e.waits {
		for w, some := range hosts {
			for ; some != 0; some &= some - 1 {
				if x := &e.ports[64*w+bits.TrailingZeros64(some)]; x.due < end {
					e.foresee(x.in, end)
				}
			}
		}
		e.settle()
	}
	for w, some := range hosts {
		for ; some != 0; some &= some - 1 {
			if i := 64*w + bits.TrailingZeros64(some); e.ports[i].due < end || e.acts[i] < end {
				busy += e.runHost(&e.hosts[i], end)
			}
		}
	}
	if !e.waits {
		e.settle()
	}
	return busy
}

// settle starts what waited for the flows that ended.
func (e *engine) settle() {
	if len(e.pools) > 0 {
		slices.SortStableFunc(e.ended, func(a, b int32) int {
			return cmp.Compare(e.res.Flows[a].End, e.res.Flows[b].End)
		})
	}
	for _, f := range e.ended {
		e.live--
		if k := e.flows[f].Pool - 1; k >= 0 && len(e.pools[k]) > 0 {
			e.release(e.pools[k][0], f)
			e.pools[k] = e.pools[k][1:]
		}
		for _, d := range e.deps[f] {
			e.release(d, f)
		}
	}
	e.ended = e.ended[:0]
}

// release notes that a flow no longer waits for another, which ended.
func (e *engine) release(d, ended int32) {
	e.ready[d] = max(e.ready[d], int64(e.res.Flows[ended].End))
	if e.missing[d]--; e.missing[d] == 0 {
		e.begin(d, max(e.ready[d], int64(e.flows[d].Start)))
	}
}

// next returns when something happens at or after now.
func (e *engine) next(now int64) int64 {
	t := never
	for i := range e.ports {
		x := &e.ports[i]
		if t = min(t, x.due); x.free >= now {
			t = min(t, x.free)
		}
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent())
	}
	if t == never {
		return t
	}
	return max(t, now)
}

// pull takes what arrives before end at a switch off the links, in the order of its ports. It returns how
// many frames come by those before port some.
func (e *engine) pull(n *node, some int32, end int64) (before int) {
	arrived := e.arrived[:0]
	e.batches, e.from = e.batches[:0], end-e.span
	e.ranks.steps, e.ranks.known = 0, false
	for w := range n.words() {
		first := n.first + 64*w
		for busy := e.come[n.word+w]; busy != 0; busy &= busy - 1 {
			k := first + int32(bits.TrailingZeros64(busy))
			x := &e.ports[k]
			if x.due >= end {
				continue
			}
			l, low, hi := x.in, never, never
			b := batch{port: x, low: int32(len(arrived))}
			if l.low.head != l.low.tail {
				arrived, low = l.low.take(arrived, end)
			}
			data := len(arrived)
			if l.hi.head != l.hi.tail {
				arrived, hi = l.hi.take(arrived, end)
			}
			if b.frames(arrived, data); b.end > b.low {
				e.batches = append(e.batches, b)
			}
			if x.due = min(low, hi); x.due == never {
				e.come[n.word+w] &^= busy & -busy
			}
			if k < n.first+some {
				before = len(arrived)
			}
		}
	}
	e.arrived = arrived
	return before
}

// part puts what arrived apart by the ports by which it leaves, and by the queues there: data, then control.
func (e *engine) part(v, sent int, from int64) {
	n, p := e.net, &e.parts
	h := n.Hosts()
	switch {
	case v < h+n.Leaves:
		e.atLeaf(v-h, sent, from)
	case n.Pods == 0:
		goals := e.goals
		for i := range e.arrived {
			f := &e.arrived[i]
			p.Add(goals[f.goal()].leaf<<1|f.ahead(), arrivals.Key(f.at-from, i))
		}
	default:
		for i := range e.arrived {
			f := &e.arrived[i]
			p.Add(e.route(v-h-n.Leaves, e.goals[f.goal()], f)<<1|f.ahead(), arrivals.Key(f.at-from, i))
		}
	}
}

// atLeaf puts apart what arrived at a leaf: first what its hosts sent, then what comes down to them.
func (e *engine) atLeaf(at, sent int, from int64) {
	p, goals, arrived := &e.parts, e.goals, e.arrived
	outs, paths := e.outs, e.cfg.Paths
	for i := range arrived[:sent] {
		f := &arrived[i]
		port := uint16(0)
		if k := int(f.goal())*paths + int(f.path())&(paths-1); k < len(outs) {
			port = uint16(outs[k])
		}
		if port == 0 {
			port = e.leaving(at, f)
		}
		p.Add((port-1)<<1|f.ahead(), arrivals.Key(f.at-from, i))
	}
	for i := sent; i < len(arrived); i++ {
		f := &arrived[i]
		p.Add(goals[f.goal()].port<<1|f.ahead(), arrivals.Key(f.at-from, i))
	}
}

// runSwitch simulates a leaf or spine up to end, port by port: ports share nothing.
func (e *engine) runSwitch(v int, end int64) int {
	n := &e.nodes[v]
	if n.ports <= 64 && e.net.Pods == 0 {
		if busy, ok := e.runCalm(v, n, end); ok {
			return busy
		}
	}
	return e.runBusy(v, n, end)
}

// runBusy is runSwitch where many frames arrive.
func (e *engine) runBusy(v int, n *node, end int64) int {
	p := &e.parts
	sent := e.pull(n, int32(e.net.PerLeaf), end)
	p.Begin(2 * int(n.ports))
	e.part(v, sent, end-e.span)
	p.End()
	for i := range int(n.ports) {
		x := &e.ports[int(n.first)+i]
		if p.Used[i/32]>>(2*i%64)&3 != 0 {
			hi := p.LeavingMixed(2*i+1, e.span)
			if len(hi) > 8 { // sorted elsewhere, where data is next
				p.Instead(2*i+1, hi)
				hi = p.Added(2*i + 1)
			}
			e.serve(x, p.LeavingMixed(2*i, e.span), hi, end)
		} else if x.waits && x.free < end {
			e.onto(x, nil, nil, end)
		}
	}
	e.arrivedLast()
	return len(e.arrived)
}
