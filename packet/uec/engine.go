package uec

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/rng"
)

// goal is a host, by its leaf and the port there.
type goal struct{ leaf, port uint16 }

// engine is one run: hosts, leaves, spines and cores are nodes 0, 1, … in this order.
type engine struct {
	net    *Network
	cfg    *Config
	flows  []Flow
	goals  []goal       // by flow: destination (2i) and source (2i+1), to which answers go
	ids    []uint32     // by flow: the number that switches hash
	nodes  []node       // hosts, then leaves, spines and cores
	spines int          // number of the first spine
	keys   [few]uint64  // scratch of runSparse
	links  []link       // by the node that they leave; hosts' links first
	up     [][]uint16   // by leaf: shuffled ports to spines; nil: not drawn yet
	over   [][][]uint16 // by spine and host of another pod: shuffled ports to cores
	// by goal and path: the egress port at the sender's leaf, from 1; 0: not hashed yet. nil: hashed each
	// time
	outs      []uint8
	salt      []uint32 // hash salts of leaves, then spines
	setup     *rng.MT19937
	hosts     []host
	snd       []sender
	rcv       []receiver
	res       Result
	deps      [][]int32
	missing   []int32
	pools     [][]int32 // flows of each pool that have not started
	ready     []int64
	live      int    // flows without an end
	waits     bool   // some flows depend on others
	lookahead int64  // least delay of a cable in ps: no effect reaches another node sooner
	span      int64  // length of a window in ps
	tables    int    // leaves whose table of uplinks is still to be drawn
	again     int64  // time of the last frame for a packet that had already come
	ports     []port // by node; hosts' ports first
	// bits of hosts that have arrivals or own events, and of switch ports with arrivals
	come          []uint64
	goes          []uint64 // bits of switch ports where frames wait
	acts          []int64  // by host: no event of its own before this time (ps)
	upTo          int64    // switches without hosts are simulated up to this time (ps)
	lead          int64    // leaves are simulated this much further (ps)
	arrived       []frame  // arrivals of the present switch and window
	batches       []batch  // arrived, by link
	stamps        stamps
	ranks         ranks
	from          int64 // start of the window of arrived
	parts         arrivals.Parts
	merged        []uint64
	peak          int32  // deepest queue so far, in bytes
	deep          int32  // id of the link with that queue
	lag, lagEqual uint32 // see harmlessLag
	ended         []int32
	nscc          cc.Ultra
	queue         int64 // bytes of a switch's queue
	ecnLow        int64
	ecnHigh       int64
	rto           int64
	mtu           int64
}

const never = int64(1<<63 - 1)

// Run simulates flows until all have ended. Errors: *InputError, those of Config.Poll.
//
// It tries windows of two delays first (turns.go), and begins anew with single ones where a result would
// depend on where windows end.
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

// peaks finds the deepest queue and counts the data frames that left queues.
func (e *engine) peaks() {
	most := &link{}
	for i := range e.links {
		l := &e.links[i]
		e.res.DataPacketHops += l.hops
		if free := e.ports[i].free; l.size != 0 && free >= e.until(l.from) {
			e.res.DataPacketHops-- // its transmission has not ended
		}
		if l.peak > most.peak || l.peak == most.peak && l.id < most.id {
			most = l
		}
	}
	if most.peak > 0 {
		e.res.PeakQueue, e.res.PeakLink = int64(most.peak), [2]int32{most.from, most.to}
	}
}

// until returns the time up to which a node is simulated.
func (e *engine) until(v int32) int64 {
	if e.isLeaf(v) {
		return e.upTo + e.lead
	}
	return e.upTo
}

// run simulates window after window; with turns it changes to windows of two delays once all tables are
// drawn. It returns false if a result depends on where windows end.
func (e *engine) run(turns bool) (bool, error) {
	for now := e.next(0); e.live > 0 && now != never; {
		if turns && e.tables == 0 {
			return e.runTurns(now)
		}
		if err := e.poll(); err != nil {
			return false, err
		}
		end := now + e.lookahead
		if e.window(end) {
			now = end
		} else {
			now = e.next(end)
		}
	}
	return true, nil
}

// poll counts a window and calls Config.Poll once in 1024.
func (e *engine) poll() error {
	e.res.Windows++
	if e.res.Windows&1023 == 1 && e.cfg.Poll != nil {
		return e.cfg.Poll()
	}
	return nil
}

// window simulates all nodes up to end (ps), and reports whether frames arrived.
func (e *engine) window(end int64) bool {
	e.upTo = end
	return e.runHosts(end)+e.switches(e.net.Hosts(), len(e.nodes), end) > 0
}

// switches simulates the switch nodes [first, last) up to end (ps) and returns how many frames arrived.
func (e *engine) switches(first, last int, end int64) (busy int) {
	for v := first; v < last; v++ {
		if n := &e.nodes[v]; n.ports > 64 || e.come[n.word]|e.goes[n.word] != 0 {
			busy += e.runSwitch(v, end)
		}
	}
	return busy
}

// runHosts simulates all hosts up to end and returns how many frames arrived. Dependent flows that may start
// within the window are found first.
func (e *engine) runHosts(end int64) (busy int) {
	hosts := e.come[:(len(e.hosts)+63)/64]
	if e.waits {
		for w, some := range hosts {
			for ; some != 0; some &= some - 1 {
				if x := &e.ports[64*w+bits.TrailingZeros64(some)]; x.due < end {
					e.noteEndings(x.in, end)
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

// settle starts the flows whose dependencies ended in this window.
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

// release records that one of the flows that flow d waits for has ended.
func (e *engine) release(d, ended int32) {
	e.ready[d] = max(e.ready[d], int64(e.res.Flows[ended].End))
	if e.missing[d]--; e.missing[d] == 0 {
		e.begin(d, max(e.ready[d], int64(e.flows[d].Start)))
	}
}

// next returns the time of the first event at or after now; never: none.
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

// pull takes the frames that arrive at a switch before end off its links into arrived, by port. It returns
// how many arrived at the ports below some (a leaf's hosts).
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

// bucketFrames sorts arrivals into buckets by egress port and queue: 2·port for data, 2·port+1 for control.
func (e *engine) bucketFrames(v, sent int, from int64) {
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

// atLeaf is bucketFrames at a leaf: the first sent arrivals come from its hosts and go up or to another host
// of the leaf, the others come down.
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

// runSwitch simulates a switch up to end. Ports share no buffer, so each is simulated alone.
func (e *engine) runSwitch(v int, end int64) int {
	n := &e.nodes[v]
	if n.ports <= 64 && e.net.Pods == 0 {
		if busy, ok := e.runSparse(v, n, end); ok {
			return busy
		}
	}
	return e.runDense(v, n, end)
}

// runDense is runSwitch for many arrivals: they are bucketed by port, sorted, and each port is served over
// its whole window.
func (e *engine) runDense(v int, n *node, end int64) int {
	p := &e.parts
	sent := e.pull(n, int32(e.net.PerLeaf), end)
	p.Begin(2 * int(n.ports))
	e.bucketFrames(v, sent, end-e.span)
	p.End()
	for i := range int(n.ports) {
		x := &e.ports[int(n.first)+i]
		if p.Used[i/32]>>(2*i%64)&3 != 0 {
			hi := p.LeavingMixed(2*i+1, e.span)
			if len(hi) > 8 { // sorted in a second buffer, which holds the data keys next
				p.Instead(2*i+1, hi)
				hi = p.Added(2*i + 1)
			}
			e.serve(x, p.LeavingMixed(2*i, e.span), hi, end)
		} else if x.waits && x.free < end {
			e.serveUntil(x, nil, nil, end)
		}
	}
	e.arrivedLast()
	return len(e.arrived)
}
