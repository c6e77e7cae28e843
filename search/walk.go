package search

// gpuOrder is the rule by which a channel's GPUs are visited.
type gpuOrder uint8

const (
	orderFree   gpuOrder = iota // as pushNext ranks them
	orderPCI                    // by index
	orderReplay                 // as the previous channel
)

// nowhere means "no such place": no route back to a net, or to the first GPU.
const nowhere = -1

// spent reports that nothing that is left to try can have an effect: NCCL goes
// on, but reserves and gives back only.
func (e *engine) spent() bool { return e.quick && e.budget <= 0 }

// places returns at which place of a channel its GPU must reach a net again, or
// the first GPU (search.cc:777).
func (e *engine) places() (toNet, toFirst int) {
	switch {
	case !e.inter && e.cur.pattern == RingPattern:
		return nowhere, e.gpus - 1
	case !e.inter:
		return nowhere, nowhere
	case e.cur.pattern == RingPattern:
		return e.gpus - 1, nowhere
	case e.cur.pattern == SplitTree:
		return 1, nowhere
	}
	return 0, nowhere
}

// nextChannel searches one more channel (search.cc:791).
func (e *engine) nextChannel() {
	toNet, toFirst := e.places()
	c := e.cur.nChannels
	switch {
	case e.inter:
		e.fromNets(toNet, toFirst)
	case e.cur.pattern == NVLSPattern:
		e.start(c, toNet, toFirst, orderFree)
	default:
		if c == 0 {
			e.start(0, toNet, toFirst, orderPCI)
		} else {
			e.start(int(e.cur.order[(c-1)*e.gpus]), toNet, toFirst, orderReplay)
		}
		if c > 0 && e.cur.sameChannels {
			return
		}
		for g := 0; g < e.gpus && !e.spent(); g++ {
			e.start(g, toNet, toFirst, orderFree)
		}
	}
}

// start begins a channel at a GPU without reserving a route to it.
func (e *engine) start(g, toNet, toFirst int, order gpuOrder) {
	if e.spent() {
		return
	}
	flag := uint64(1) << e.cur.nChannels
	e.used[g] ^= flag
	e.visit(g, 0, toNet, toFirst, order)
	e.used[g] ^= flag
}

// arrive begins a channel at a GPU that a net reaches.
func (e *engine) arrive(net, g, toNet int, order gpuOrder) {
	if e.spent() {
		return
	}
	r := e.netGPU.at(net, g)
	if !e.allowed(r, e.cur.typeInter) || !e.take(r, &e.cross) {
		return
	}
	flag := uint64(1) << e.cur.nChannels
	e.used[g] ^= flag
	e.visit(g, 0, toNet, nowhere, order)
	e.used[g] ^= flag
	e.give(r, &e.cross)
}

// visit puts GPU g at a place of the present channel and continues from it
// (search.cc:574). One call is one step of the budget.
func (e *engine) visit(g, place, toNet, toFirst int, order gpuOrder) {
	if e.budget <= 0 || e.stopped != nil {
		return
	}
	e.budget--
	if e.steps++; e.steps%256 == 0 {
		e.poll()
	}
	if place == e.gpus {
		e.complete()
		return
	}
	e.cur.order[e.cur.nChannels*e.gpus+place] = int32(g)
	switch {
	case place == toNet:
		if e.inter {
			e.leave(g, place, toFirst, order)
		}
	case e.cur.pattern == NVLSPattern:
		e.headNVLS(g)
	case e.cur.pattern == CollNetDirect:
		e.headCollNet(g)
	case place < e.gpus-1:
		e.advance(g, place, toNet, toFirst, order)
	case place == toFirst:
		r := e.gpuGPU.at(g, int(e.cur.order[e.cur.nChannels*e.gpus]))
		if e.allowed(r, e.cur.typeIntra) && e.take(r, &e.intra) {
			e.visit(g, place+1, toNet, nowhere, order)
			e.give(r, &e.intra)
		}
	default:
		e.visit(g, e.gpus, nowhere, nowhere, order)
	}
}

// complete counts the channel just closed, keeps the result if it is the best,
// and searches the next channel.
func (e *engine) complete() {
	t := &e.cur
	t.nChannels++
	e.found = max(e.found, t.nChannels)
	if e.better(t, &e.best) {
		e.best.copyFrom(t, e.gpus)
		if t.nChannels == t.maxChannels {
			e.budget = -1
		}
	}
	if t.nChannels < t.maxChannels && !(e.spent() && e.evenNets) {
		e.nextChannel()
	}
	t.nChannels--
}

// advance tries the GPUs after g.
func (e *engine) advance(g, place, toNet, toFirst int, order gpuOrder) {
	base := len(e.stack)
	n := 1
	switch order {
	case orderPCI:
		e.stack = append(e.stack, int32(place+1))
	case orderReplay:
		e.stack = append(e.stack, e.cur.order[(e.cur.nChannels-1)*e.gpus+place+1])
	default:
		w := netIgnored
		if toNet == place+1 {
			w = netNext
		} else if toNet != nowhere {
			w = netLater
		}
		n = e.pushNext(g, w)
	}
	flag := uint64(1) << e.cur.nChannels
	for i := 0; i < n && !e.spent(); i++ {
		to := int(e.stack[base+i])
		r := e.gpuGPU.at(g, to)
		if !e.allowed(r, e.cur.typeIntra) || !e.take(r, &e.intra) {
			continue
		}
		e.used[to] ^= flag
		e.visit(to, place+1, toNet, toFirst, order)
		e.used[to] ^= flag
		e.give(r, &e.intra)
	}
	e.stack = e.stack[:base]
}

// leave routes from GPU g back to a net. A balanced tree does so from its first
// two GPUs, with half of the bandwidth each.
func (e *engine) leave(g, place, toFirst int, order gpuOrder) {
	t := &e.cur
	start := t.in[t.nChannels]
	after, q := nowhere, &e.cross
	if t.pattern == BalancedTree {
		q = &e.half
		if place == 0 {
			after = 1
		}
	}
	for _, n := range e.nets.returns(t.typeInter, g) {
		if e.spent() {
			return
		}
		if !e.mayReturn(start, n, place) {
			continue
		}
		r := e.gpuNet.at(g, int(n))
		if !e.allowed(r, t.typeInter) || !e.take(r, q) {
			continue
		}
		t.out[t.nChannels] = e.nets.first[n]
		e.visit(g, place, after, toFirst, order)
		e.give(r, q)
	}
}

// mayReturn reports whether a channel that started at a net may end at net n
// (search.cc:559).
func (e *engine) mayReturn(start, n int32, place int) bool {
	t, nets := &e.cur, e.nets
	id := nets.first[n]
	if e.rules.Topo.NetRails && differ(nets.plane[n], nets.plane[start]) {
		return false
	}
	if t.pattern == TreePattern && id != start {
		return false // both directions of a plain tree use one net
	}
	switch {
	case e.rules.Search.CrossAny: // search.cc:491 of v2.22.3
		if t.crossNIC != 1 && nets.rail[n] != nets.rail[start] ||
			e.mirrors() && t.nChannels&1 == 1 && id != t.in[t.nChannels-1] {
			return false
		}
	case e.mirrors():
		if t.nChannels&1 == 1 && id != t.in[t.nChannels-1] {
			return false // odd channels mirror the even ones before them
		}
	case t.crossNIC == 0:
		if e.rules.Topo.NetRails && nets.rails[n] >= 0 && nets.rails[start] >= 0 {
			if nets.rails[n] != nets.rails[start] {
				return false
			}
		} else if e.perHost && nets.host[n] != nets.host[start] {
			if nets.slot[n] != nets.slot[start] {
				return false
			}
		} else if nets.rail[n] != nets.rail[start] {
			return false
		}
	}
	return t.pattern != BalancedTree || place == 0 || id == t.out[t.nChannels]
}

// mirrors reports whether odd channels go the way of the even ones before them back.
func (e *engine) mirrors() bool {
	if e.rules.Search.CrossAny {
		return e.cur.crossNIC != 0
	}
	return e.cur.pattern == RingPattern && e.cur.crossNIC == 2
}

// differ reports whether two nets have a plane each, and not the same.
func differ(a, b int) bool { return a >= 0 && b >= 0 && a != b }

// countXGMI counts the steps of all channels over one link of XGMI (graph/search.cc:356 of RCCL 2.30.4).
func (e *engine) countXGMI(t *trial) (count int) {
	for i := range t.nChannels * e.gpus {
		next := i/e.gpus*e.gpus + (i%e.gpus+1)%e.gpus
		if e.xgmi[int(t.order[i])*e.gpus+int(t.order[next])] {
			count++
		}
	}
	return count
}

// better reports whether a is a better result than b (search.cc:420). For NVLS
// the head counts: more heads, or more bandwidth over all heads.
func (e *engine) better(a, b *trial) bool {
	if a.nChannels < a.minChannels {
		return false
	}
	if a.pattern == NVLSPattern {
		return a.nChannels > b.nChannels && a.nChannels <= e.gpus ||
			float32(a.nChannels)*a.bwInter > float32(b.nChannels)*b.bwInter
	}
	total, rival := float32(a.nChannels)*a.bwIntra, float32(b.nChannels)*b.bwIntra
	if total != rival {
		return total > rival
	}
	if a.pattern == b.pattern && a.crossNIC == b.crossNIC && a.nHops < b.nHops {
		return true
	}
	return e.xgmi != nil && a.nChannels == b.nChannels && e.countXGMI(b) < e.countXGMI(a)
}
