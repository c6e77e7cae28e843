package uec

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/sim/wire/packet/cc"
	"github.com/simccl/simccl/sim/wire/packet/internal/parted"
)

// goal is a host by its leaf and the port there.
type goal struct{ leaf, port uint16 }

// engine is one run.
type engine struct {
	net     *Network
	cfg     *Config
	flows   []Flow
	goals   []goal   // of flows: of frames, then of their answers
	ids     []uint32 // of flows: what switches hash of them
	links   []link
	in      [][]int32    // links by node
	up      [][]uint16   // of leaves: ports to spines, in the order of their table; nil: not needed yet
	over    [][][]uint16 // of spines by host of another pod: to cores, in the same way
	outs    []uint8      // of goals by path: the port of the sender's leaf, from 1; 0: not known; nil: never is
	salt    []uint32     // of leaves, then of spines
	setup   *setup
	hosts   []host
	snd     []sender
	rcv     []receiver
	res     Result
	deps    [][]int32
	missing []int32
	pools   [][]int32 // what has not been started
	ready   []int64
	live    int
	waits   bool    // flows wait for others to end
	look    int64   // the least delay of a cable, in ps
	span    int64   // ps of a window
	tables  int     // of leaves, not yet drawn, that will be
	again   int64   // when a host last had a frame of a packet that it knew to have come
	due     []int64 // by link: when its first frame arrives
	ends    []int64 // by link: when the frame in transmission ends
	acts    []int64 // by host: it does nothing before
	arrived []frame
	parts   parted.Parts
	ended   []int32
	nscc    cc.Ultra
	queue   int64 // bytes of a switch's queue
	ecnLow  int64
	ecnHigh int64
	rto     int64
	mtu     int64
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
	for i := range e.links {
		e.res.DataPacketHops += e.links[i].hops
		if l := &e.links[i]; int64(l.peak) > e.res.PeakQueue {
			e.res.PeakQueue, e.res.PeakLink = int64(l.peak), [2]int32{l.from, l.to}
		}
	}
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
	return e.runHosts(end)+e.switches(e.net.Hosts(), len(e.in), end) > 0
}

// switches simulates those from first to before last up to end; it returns how many frames arrived.
func (e *engine) switches(first, last int, end int64) (busy int) {
	for v := first; v < last; v++ {
		busy += e.runSwitch(v, end)
	}
	return busy
}

// runHosts simulates all hosts up to end; it returns how many frames arrived.
func (e *engine) runHosts(end int64) (busy int) {
	if !e.waits {
		for i := range e.hosts {
			busy += e.runAlone(&e.hosts[i], end)
		}
		e.settle()
		return busy
	}
	for i := range e.hosts {
		if e.due[2*i+1] < end {
			e.foresee(&e.links[2*i+1], end)
			e.acts[i] = 0
		}
	}
	e.settle()
	for i := range e.hosts {
		if h := &e.hosts[i]; e.acts[i] < end {
			busy += e.runHost(h, end)
			e.acts[i] = h.nextEvent()
		}
	}
	return busy
}

// runAlone simulates a host up to end where no flow waits for the end of another.
func (e *engine) runAlone(h *host, end int64) int {
	if e.due[2*h.id+1] >= end && e.acts[h.id] >= end {
		return 0
	}
	busy := e.runHost(h, end)
	e.acts[h.id] = h.nextEvent()
	return busy
}

// settle starts what waited for the flows that ended.
func (e *engine) settle() {
	if len(e.pools) > 0 {
		slices.SortStableFunc(e.ended, func(a, b int32) int { return cmp.Compare(e.res.Flows[a].End, e.res.Flows[b].End) })
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
	for i := range e.links {
		t = min(t, e.due[i], e.ends[i])
	}
	for i := range e.hosts {
		t = min(t, e.hosts[i].nextEvent())
	}
	if t == never {
		return t
	}
	return max(t, now)
}

// take takes what arrives before end at a leaf or spine off the links, and puts it apart by the
// ports by which it leaves.
func (e *engine) take(v int, end int64) {
	n, p, in := e.net, &e.parts, e.in[v]
	h, from := n.Hosts(), end-e.span
	p.Begin(len(in))
	switch {
	case v < h+n.Leaves:
		above := e.pull(e.arrived[:0], in[:n.PerLeaf], end)
		e.arrived = e.pull(above, in[n.PerLeaf:], end)
		e.atLeaf(v-h, len(above), from)
	case n.Pods == 0:
		e.arrived = e.pull(e.arrived[:0], in, end)
		goals := e.goals
		for i := range e.arrived {
			f := &e.arrived[i]
			p.Add(goals[f.goal()].leaf, parted.Key(f.at-from, i))
		}
	default:
		e.arrived = e.pull(e.arrived[:0], in, end)
		for i := range e.arrived {
			f := &e.arrived[i]
			p.Add(e.route(v-h-n.Leaves, e.goals[f.goal()], f), parted.Key(f.at-from, i))
		}
	}
	p.End()
}

// pull takes what arrives before end off some links, to the end of a list.
func (e *engine) pull(arrived []frame, ids []int32, end int64) []frame {
	for _, id := range ids {
		if e.due[id] >= end {
			continue
		}
		l, low, hi := &e.links[id], never, never
		if l.low.head != l.low.tail {
			arrived, low = l.low.take(arrived, end)
		}
		if l.hi.head != l.hi.tail {
			arrived, hi = l.hi.take(arrived, end)
		}
		e.due[id] = min(low, hi)
	}
	return arrived
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
		p.Add(port-1, parted.Key(f.at-from, i))
	}
	for i := sent; i < len(arrived); i++ {
		f := &arrived[i]
		p.Add(goals[f.goal()].port, parted.Key(f.at-from, i))
	}
}

// runSwitch simulates a leaf or spine up to end, port by port: ports share nothing.
func (e *engine) runSwitch(v int, end int64) int {
	p := &e.parts
	e.take(v, end)
	for i, id := range e.in[v] {
		some := p.Used[i/64]>>(i%64)&1 != 0
		if !some && e.ends[id^1] >= end {
			continue
		}
		var keys []uint64
		if some {
			keys = p.LeavingMixed(i, e.span)
		}
		e.onto(&e.links[id^1], e.arrived, keys, end)
	}
	return len(e.arrived)
}
