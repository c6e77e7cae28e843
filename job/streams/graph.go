package streams

import (
	"github.com/simccl/simccl/workload"
)

// A list is a graph: its steps are the nodes, and what a step waits for are edges:
// the step before it on its stream, its Deps, of Wait the Record of its event, and
// of a call the one before it on the same communicator's resources. So a rank's
// progress is a count of missing predecessors by step.
//
// A group is a launch of all its calls: its first step waits for what all calls
// wait for, and its last one ends when all have. Sends and receives of a group are
// one kernel for each communicator.

// nodeKind is what happens at a node.
type nodeKind uint8

const (
	instant nodeKind = iota // nothing
	compute                 // a compute step
	host                    // a compute step on a thread of the host
	kernel                  // a collective
	message                 // a kernel of sends and receives
)

// node is a step of a list.
type node struct {
	kind     nodeKind
	first    bool  // of what is ready at time zero
	in       int32 // predecessors
	from, to int32 // its successors, in graph.edges
	seq      int32 // of a collective: its number on the communicator
	// halves of a message, in graph.halves
	half, halves int32
}

// half is one side of a message in a list: the k-th to the peer, or from it.
type half struct {
	call int32
	k    int32
}

// graph is a list made ready.
type graph struct {
	nodes  []node
	edges  []int32
	halves []half
	alias  []int32 // node → node whose kernel it is part of, -1: none; nil where none is
}

// builder makes a graph.
type builder struct {
	p      *workload.Program
	steps  []workload.Step
	g      *graph
	pairs  [][2]int32
	stream map[int32]int32 // last node on it
	order  map[int32]int32 // last kernel on a communicator's resources
	event  map[int32]int32
	seq    map[int32]int32  // collectives of a communicator so far
	sent   map[[3]int32]int // halves so far by communicator, peer, direction
	part   []int32          // see Input.Part; nil: none
}

func newGraph(p *workload.Program, list int, part [][]int32) *graph {
	b := builder{p: p, steps: p.Lists[list].Steps, g: &graph{}, stream: map[int32]int32{},
		order: map[int32]int32{}, event: map[int32]int32{},
		seq: map[int32]int32{}, sent: map[[3]int32]int{}}
	if part != nil {
		b.part = part[list]
	}
	b.g.nodes = make([]node, len(b.steps))
	for i := 0; i < len(b.steps); i++ {
		i = b.step(i)
	}
	b.link()
	return b.g
}

// step adds a step, or a whole group, and returns the last that it added.
func (b *builder) step(i int) int {
	s, n := &b.steps[i], int32(i)
	if s.Kind == workload.GroupStart {
		return b.group(i)
	}
	b.before(s.Deps, n)
	b.behind(b.stream, s.Stream, n)
	switch s.Kind {
	case workload.Compute:
		b.g.nodes[n].kind = compute
		if workload.OnHost(s.Stream) {
			b.g.nodes[n].kind = host
		}
	case workload.Record:
		b.event[s.Event] = n
	case workload.Wait:
		b.edge(b.event[s.Event], n)
	case workload.Issue:
		b.call(i, int32(len(b.g.halves)))
	}
	return i
}

// call makes a node of a call's kernel; halves is where its halves begin.
func (b *builder) call(i int, halves int32) {
	c := &b.p.Calls[b.steps[i].Call]
	x := &b.g.nodes[i]
	b.behind(b.order, b.p.Resources(c.Comm), int32(i))
	if messageHalf(c.Func) {
		x.kind, x.half = message, halves
		b.half(i)
		x.halves = int32(len(b.g.halves)) - halves
		return
	}
	x.kind, x.seq = kernel, b.seq[c.Comm]
	b.seq[c.Comm]++
}

// half adds one side of a message.
func (b *builder) half(i int) {
	c := &b.p.Calls[b.steps[i].Call]
	key := [3]int32{c.Comm, c.Peer, int32(c.Func)}
	b.g.halves = append(b.g.halves, half{b.steps[i].Call, int32(b.sent[key])})
	b.sent[key]++
}

// group adds the steps of a group.
func (b *builder) group(i int) int {
	end := i
	for depth := 0; ; end++ {
		switch b.steps[end].Kind {
		case workload.GroupStart:
			depth++
		case workload.GroupEnd:
			depth--
		}
		if depth == 0 {
			break
		}
	}
	first, last := int32(i), int32(end)
	for k := i; k <= end; k++ {
		b.before(b.steps[k].Deps, first)
	}
	streams := map[int32]bool{}
	var used []int32
	messages := map[int32]int{} // by communicator: the first step of its kernel
	for k := i + 1; k < end; k++ {
		s := &b.steps[k]
		part := b.part != nil && b.part[k] >= 0
		if s.Kind != workload.Issue && !part {
			b.edge(first, int32(k))
			b.edge(int32(k), last)
			continue
		}
		if !streams[s.Stream] {
			streams[s.Stream] = true
			used = append(used, s.Stream)
			b.behind(b.stream, s.Stream, first)
		}
		if part {
			b.alias(k, b.part[k], last)
			continue
		}
		b.grouped(k, first, last, messages)
	}
	b.gather(messages, i, end)
	for _, s := range used {
		b.stream[s] = last
	}
	return end
}

// grouped adds a call of a group. Sends and receives but the first of a
// communicator belong to its kernel.
func (b *builder) grouped(k int, first, last int32, messages map[int32]int) {
	c := &b.p.Calls[b.steps[k].Call]
	if messageHalf(c.Func) {
		if at, ok := messages[c.Comm]; ok {
			b.alias(k, int32(at), last)
			return
		}
		messages[c.Comm] = k
		b.behind(b.order, b.p.Resources(c.Comm), int32(k))
		b.g.nodes[k].kind = message
	} else {
		b.call(k, 0)
	}
	b.edge(first, int32(k))
	b.edge(int32(k), last)
}

// alias makes a step part of the kernel of another one.
func (b *builder) alias(k int, at, last int32) {
	if b.g.alias == nil {
		b.g.alias = make([]int32, len(b.steps))
		for i := range b.g.alias {
			b.g.alias[i] = -1
		}
	}
	b.g.alias[k] = at
	b.edge(at, int32(k))
	b.edge(int32(k), last)
}

// gather lists the halves of each communicator's kernel in a group.
func (b *builder) gather(messages map[int32]int, i, end int) {
	for k := i + 1; k < end; k++ { // in the order of their first calls
		s := &b.steps[k]
		if s.Kind != workload.Issue {
			continue
		}
		c := b.p.Calls[s.Call].Comm
		if at, ok := messages[c]; !ok || at != k {
			continue
		}
		x := &b.g.nodes[k]
		x.half = int32(len(b.g.halves))
		for j := k; j < end; j++ {
			if b.steps[j].Kind != workload.Issue {
				continue
			}
			if y := &b.p.Calls[b.steps[j].Call]; y.Comm == c && messageHalf(y.Func) {
				b.half(j)
			}
		}
		x.halves = int32(len(b.g.halves)) - x.half
	}
}

// before lets a node wait for others before it. A group waits for no step of its
// own.
func (b *builder) before(deps []int32, n int32) {
	for _, d := range deps {
		if d < n {
			b.edge(d, n)
		}
	}
}

// behind puts a node behind the last one of a sequence.
func (b *builder) behind(last map[int32]int32, key, n int32) {
	if prev, ok := last[key]; ok {
		b.edge(prev, n)
	}
	last[key] = n
}

func (b *builder) edge(from, to int32) { b.pairs = append(b.pairs, [2]int32{from, to}) }

// link sorts the edges by their origin.
func (b *builder) link() {
	g := b.g
	g.edges = make([]int32, len(b.pairs))
	for _, p := range b.pairs {
		g.nodes[p[0]].to++
		g.nodes[p[1]].in++
	}
	at := int32(0)
	for i := range g.nodes {
		n := &g.nodes[i]
		count := n.to
		n.from, n.to = at, at
		at += count
		n.first = n.in == 0
	}
	for _, p := range b.pairs {
		n := &g.nodes[p[0]]
		g.edges[n.to] = p[1]
		n.to++
	}
}
