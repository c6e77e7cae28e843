package uec

// node is a switch or a host: its links, one a port, follow each other.
type node struct {
	first int32 // of engine.ports, and of engine.links
	ports int32
	word  int32 // of engine.come and engine.goes: port 0 is the first bit there; for switches
}

// words is how many words of bits the ports have.
func (n *node) words() int32 { return (n.ports + 63) / 64 }

// port is where a cable is plugged in: what each window asks of it.
type port struct {
	free    int64 // when the frame in transmission ends, or ended; negative: there was none
	due     int64 // when the first frame arrives here
	last    int64 // when the last frame arrived here; 0: none did
	in, out *link
	peer    *port  // at the other end of the cable
	bit     uint32 // of engine.come and engine.goes
	place   uint16 // among ports of the switch whose last is equal
	waits   bool   // frames wait here to be sent: the bit of engine.goes
}

// cable joins two nodes: up from low to high, and down.
type cable struct {
	low, high int32
	rate      int64
	delay     [2]int64 // up, down, with the latency of the switch there
	host      bool
}

// lay lays links out by the node that they leave, in the order of cables. Bits of hosts are one
// after the other, those of a switch begin a word.
func (e *engine) lay(cables []cable) {
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
		small := spell(control, c.rate)
		e.links[up] = link{id: int32(2 * i), from: c.low, to: c.high, rate: c.rate, delay: c.delay[0],
			small: small}
		e.links[down] = link{id: int32(2*i + 1), from: c.high, to: c.low, rate: c.rate, delay: c.delay[1],
			small: small, toHost: c.host}
		e.ports[up].join(&e.ports[down], &e.links[down], &e.links[up])
		e.ports[down].join(&e.ports[up], &e.links[up], &e.links[down])
	}
}

// plug returns the place of the next port of a node.
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

// join joins a port, whose bit and place are known, to another.
func (x *port) join(peer *port, in, out *link) {
	*x = port{free: -1, due: never, in: in, out: out, peer: peer, bit: x.bit, place: x.place}
}

// await notes when the first frame that a port sent arrives, which is not known.
func (e *engine) await(x *port) {
	if first := x.out.first(); first != never {
		e.arrives(x.peer, first)
	}
}

// arrives notes when the first frame arrives at a port.
func (e *engine) arrives(x *port, at int64) {
	x.due = at
	e.come[x.bit/64] |= 1 << (x.bit % 64)
}
