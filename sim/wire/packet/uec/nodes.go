package uec

// node is a switch or a host: its links, one a port, follow each other.
type node struct {
	first int32 // of engine.links: that of port 0
	ports int32
	word  int32 // of engine.come and engine.goes: port 0 is the first bit there; for switches
}

// words is how many words of bits the ports have.
func (n *node) words() int32 { return (n.ports + 63) / 64 }

// exit is what each window asks of a link, by the link.
type exit struct {
	free  int64  // when its frame in transmission ends, or ended; negative: there was none
	back  int32  // the link that comes back; engine.due of it is when the first frame of this one arrives
	there uint32 // the bit of engine.come where it arrives
	own   uint32 // its bit of engine.goes
	waits bool   // that bit
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
	e.links, e.exits, e.due = make([]link, links), make([]exit, links), make([]int64, links)
	e.come, e.goes = make([]uint64, word), make([]uint64, word)
	for i := range cables {
		c := &cables[i]
		up, bitUp := e.port(c.low)
		down, bitDown := e.port(c.high)
		small := spell(control, c.rate)
		e.links[up] = link{id: int32(2 * i), from: c.low, to: c.high, rate: c.rate, delay: c.delay[0], small: small}
		e.links[down] = link{id: int32(2*i + 1), from: c.high, to: c.low, rate: c.rate, delay: c.delay[1], small: small, toHost: c.host}
		e.exits[up] = exit{free: -1, back: down, there: bitDown, own: bitUp}
		e.exits[down] = exit{free: -1, back: up, there: bitUp, own: bitDown}
		e.due[up], e.due[down] = never, never
	}
}

// port returns the link and the bit of the next port of a node.
func (e *engine) port(v int32) (link int32, bit uint32) {
	n := &e.nodes[v]
	link, bit = n.first+n.ports, uint32(64*n.word+n.ports)
	n.ports++
	if int(v) < e.net.Hosts() {
		bit = uint32(v)
	}
	return link, bit
}

// into is the link by which frames come to a node at a port.
func (e *engine) into(v, port int) *link { return &e.links[e.exits[int(e.nodes[v].first)+port].back] }

// await notes when the first frame of a link arrives, which is not known.
func (e *engine) await(x *exit, l *link) {
	if first := l.first(); first != never {
		e.due[x.back] = first
		e.come[x.there/64] |= 1 << (x.there % 64)
	}
}
