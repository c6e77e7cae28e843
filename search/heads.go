package search

import (
	"math"

	"github.com/simccl/simccl/rules"
)

// fromNets looks for a channel from each net, one after the other (search.cc:676).
func (e *engine) fromNets(toNet, toFirst int) {
	t := &e.cur
	list := e.nets.list(t.typeInter, 0)
	heads := t.pattern == NVLSPattern || t.pattern == CollNetDirect
	whole := float32(int32(t.bwInter)) // NCCL keeps it in an int: 17.5 counts as 17
	headTried := false
	for i := range list {
		// The first channel's PCI try has its own budget: it continues when the
		// common budget is spent.
		probes := t.nChannels == 0 && !e.hasNVS && !heads
		if heads && (headTried || i > 0 && e.rules.Search.FirstNetHeads) || e.spent() && e.evenNets &&
			!probes {
			return
		}
		n := list[(t.nChannels+i)%len(list)]
		info := e.nets.info[n]
		if e.collNet && !info.Coll || e.netBW[n] < whole {
			continue
		}
		if e.mirrors() && t.nChannels&1 == 1 &&
			e.nets.first[n] != t.out[t.nChannels-1] {
			continue
		}
		t.in[t.nChannels] = e.nets.first[n]
		t.latency = info.LatencyUs
		for _, o := range e.nets.peers[n] {
			e.netBW[o] -= whole
		}
		switch {
		case heads && t.nChannels < len(list):
			g := e.nets.own[n]
			again := g >= 0 && e.isHead(g) && !e.rules.Search.FirstNetHeads
			if again && e.rules.Search.HeadsKeepBW {
				continue
			}
			if g >= 0 && !again {
				e.arrive(int(n), int(g), toNet, orderFree)
			}
			headTried = g >= 0 && !again || e.rules.Search.HeadsKeepBW
		case heads:
		case !e.throughNet(n, toNet):
			continue // NCCL does not give the net's bandwidth back here
		}
		for _, o := range e.nets.peers[n] {
			e.netBW[o] += whole
		}
	}
}

// throughNet looks for channels that enter by net n; false where no GPU is
// connected to it.
func (e *engine) throughNet(n int32, toNet int) bool {
	t := &e.cur
	way := e.rules.Search.FirstGPUs
	if t.nChannels > 0 && (t.sameChannels || way != rules.OwnerFirst) {
		e.arrive(int(n), int(t.order[(t.nChannels-1)*e.gpus]), toNet, orderReplay)
		if t.sameChannels {
			return true
		}
	}
	if t.nChannels == 0 && !e.hasNVS {
		// The PCI order goes first, on a budget of its own.
		left := e.budget
		e.budget = budgetPCI
		e.arrive(int(n), 0, toNet, orderPCI)
		if e.budget == -1 {
			left = -1
		}
		e.budget = left
	}
	if way == rules.FewestHops {
		e.fewestHops(n, toNet)
		return true
	}
	if g := e.nets.own[n]; g >= 0 && way == rules.OwnerFirst {
		e.arrive(int(n), int(g), toNet, orderFree)
	}
	if e.nets.cut[n] {
		return false
	}
	list := e.nets.near[n]
	if way == rules.NearestGPUs {
		list = e.nets.all[n]
	}
	for _, g := range list {
		e.arrive(int(n), int(g), toNet, orderFree)
	}
	return true
}

// fewestHops starts at the GPUs of the widest path from net n, of these at those in
// fewest hops, by index from the number of the channel on (search.cc:612 of v2.26.6).
func (e *engine) fewestHops(n int32, toNet int) {
	var widest float32
	least := math.MaxInt
	for g := range e.gpus {
		switch r := e.netGPU.at(int(n), g); {
		case r.bw > widest:
			widest, least = r.bw, len(r.hops)
		case r.bw == widest && len(r.hops) > 0:
			least = min(least, len(r.hops))
		}
	}
	if widest < float32(int32(e.cur.bwInter)) {
		return
	}
	for i := range e.gpus {
		g := (e.cur.nChannels + i) % e.gpus
		if r := e.netGPU.at(int(n), g); r.bw == widest && len(r.hops) == least {
			e.arrive(int(n), g, toNet, orderFree)
		}
	}
}

// isHead reports whether GPU g already heads a channel.
func (e *engine) isHead(g int32) bool {
	for c := 0; c < e.cur.nChannels; c++ {
		if e.cur.order[c*e.gpus] == g {
			return true
		}
	}
	return false
}

// headNVLS makes GPU g the head of a channel: the switch must carry the rate to
// and from every GPU, and twice the rate to and from the head (search.cc:388).
func (e *engine) headNVLS(g int) {
	rateOf := func(d int) *rate {
		if d == g {
			return &e.double
		}
		return &e.intra
	}
	permit := func(r *route, d int) bool { return d == g || e.allowed(r, e.cur.typeIntra) }
	down, up := 0, 0
	for ; down < e.gpus; down++ {
		if r := e.nvsGPU.at(0, down); !permit(r, down) || !e.take(r, rateOf(down)) {
			break
		}
	}
	if down == e.gpus {
		for ; up < e.gpus; up++ {
			if r := e.gpuNVS.at(up, 0); !permit(r, up) || !e.take(r, rateOf(up)) {
				break
			}
		}
		if up == e.gpus {
			e.visit(nowhere, e.gpus, nowhere, nowhere, orderFree)
		}
	}
	for up--; up >= 0; up-- {
		e.give(e.gpuNVS.at(up, 0), rateOf(up))
	}
	for down--; down >= 0; down-- {
		e.give(e.nvsGPU.at(0, down), rateOf(down))
	}
}

// headCollNet makes GPU g the head of a channel: it exchanges its share with
// every GPU directly (search.cc:357).
func (e *engine) headCollNet(g int) {
	share := float32(1) / float32(e.gpus-1)
	q := e.newRate(float32(e.cur.bwIntra*share), share)
	permit := func(r *route) bool { return share != 1 || e.allowed(r, e.cur.typeIntra) }
	out, in := 0, 0
	for ; out < e.gpus; out++ {
		if r := e.gpuGPU.at(g, out); !permit(r) || !e.take(r, &q) {
			break
		}
	}
	if out == e.gpus {
		for ; in < e.gpus; in++ {
			if r := e.gpuGPU.at(in, g); !permit(r) || !e.take(r, &q) {
				break
			}
		}
		if in == e.gpus {
			at := e.cur.order[e.cur.nChannels*e.gpus+1 : (e.cur.nChannels+1)*e.gpus]
			for i := range at {
				at[i] = int32(i)
				if i >= g {
					at[i]++
				}
			}
			e.visit(nowhere, e.gpus, nowhere, nowhere, orderFree)
		}
	}
	for in--; in >= 0; in-- {
		e.give(e.gpuGPU.at(in, g), &q)
	}
	for out--; out >= 0; out-- {
		e.give(e.gpuGPU.at(g, out), &q)
	}
}
