package uec

// node is a host or switch; its ports are contiguous in engine.ports, as are its links in engine.links.
type node struct {
	first int32 // its first port and link
	ports int32
	word  int32 // engine.come and engine.goes: word of port 0's bit (switches)
}

// words returns how many words the ports' bits take.
func (n *node) words() int32 { return (n.ports + 63) / 64 }

// port is one end of a cable: the state that each window reads, apart from the link itself.
type port struct {
	free    int64 // end of the present or last transmission; negative: none yet
	due     int64 // arrival of the first frame; never: none
	last    int64 // arrival of the last frame; 0: none yet
	in, out *link
	peer    *port  // other end of the cable
	bit     uint32 // its bit of engine.come and engine.goes
	place   uint16 // order among ports of the switch with equal last
	waits   bool   // frames are queued: its bit of engine.goes is set
}

// cable joins two nodes: index 0 of its pairs is the direction up (from low to high), 1 is down.
type cable struct {
	low, high int32
	rate      int64
	delay     [2]int64 // up, down: includes the latency of the switch at the end
	host      bool
}

// layOut creates links and ports in the order of cables. The bits of hosts are contiguous; each switch's bits
// begin a new word.
func (e *engine) layOut(cables []cable) {
	n := e.nodes
	for _, c := range cables {
		n[c.low].ports++
		n[c.high].ports++
	}
	links, word := int32(0), int32(e.net.Hosts()+63)/64
	for v := range n {
		n[v].first = links
		links += n[v].ports
		if v >= e.net.Hosts() {
			n[v].word = word
			word += n[v].words()
		}
		n[v].ports = 0
	}
	e.links, e.ports = make([]link, links), make([]port, links)
	e.come, e.goes = make([]uint64, word), make([]uint64, word)
	for i := range cables {
		c := &cables[i]
		up, down := e.plug(c.low), e.plug(c.high)
		small := transmission(control, c.rate)
		e.links[up] = link{id: int32(2 * i), from: c.low, to: c.high, rate: c.rate, delay: c.delay[0],
			small: small}
		e.links[down] = link{id: int32(2*i + 1), from: c.high, to: c.low, rate: c.rate, delay: c.delay[1],
			small: small, toHost: c.host}
		e.ports[up].join(&e.ports[down], &e.links[down], &e.links[up])
		e.ports[down].join(&e.ports[up], &e.links[up], &e.links[down])
	}
}

// plug returns the index of a node's next port.
func (e *engine) plug(v int32) int32 {
	n := &e.nodes[v]
	k := n.first + n.ports
	e.ports[k].bit, e.ports[k].place = uint32(64*n.word+n.ports), uint16(n.ports)
	if int(v) < e.net.Hosts() {
		e.ports[k].bit = uint32(v)
	}
	n.ports++
	return k
}

// join connects a port to its peer, as one end of a cable; bit and place must be set.
func (x *port) join(peer *port, in, out *link) {
	*x = port{free: -1, due: never, in: in, out: out, peer: peer, bit: x.bit, place: x.place}
}

// await sets the peer's due to the arrival of the first frame that port x sent.
func (e *engine) await(x *port) {
	if first := x.out.first(); first != never {
		e.arrives(x.peer, first)
	}
}

// arrives sets the arrival of the first frame at a port that had none.
func (e *engine) arrives(x *port, at int64) {
	x.due = at
	e.come[x.bit/64] |= 1 << (x.bit % 64)
}
