package streams

import (
	"github.com/simccl/simccl/workload"
)

// A list is a graph: its steps are the nodes; an edge leads to a step from each step that it waits for: the
// step before it on its stream, its Deps, for a Wait the Record of its event, and for a call the call before
// it on the same communicator's resources. So the state of a rank is a count of unfinished predecessors per
// step.
//
// A group launches all its calls together: its first step waits for all predecessors of its calls, and its
// last step ends when all calls have. The sends and receives of a group are one kernel for each communicator.

type nodeKind uint8

const (
	instant nodeKind = iota // no action
	compute                 // a compute step
	host                    // a compute step on a thread of the host
	kernel                  // a collective
	message                 // a kernel of sends and receives
)

// node is a step of a list.
type node struct {
	kind     nodeKind
	first    bool  // ready at time zero
	in       int32 // number of predecessors
	from, to int32 // its successors, in graph.edges
	seq      int32 // for a collective: its number on the communicator
	// the node's range of graph.halves: first index, and number
	half, halves int32
}

// half is one side of a message in a list: the k-th send to the peer, or receive from it.
type half struct {
	call int32
	k    int32
}

// graph is the dependency graph of a list.
type graph struct {
	nodes  []node
	edges  []int32
	halves []half
	alias  []int32 // node → node whose kernel executes it, -1: none; nil if no node has one
}

// builder builds the graph of a list.
type builder struct {
	p      *workload.Program
	steps  []workload.Step
	g      *graph
	pairs  [][2]int32
	stream map[int32]int32 // last node of each stream
	order  map[int32]int32 // last kernel on each communicator's resources
	event  map[int32]int32
	seq    map[int32]int32  // collectives so far, by communicator
	sent   map[[3]int32]int // halves so far, by communicator, peer and direction
	part   []int32          // Input.Part of the list; nil: none
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

// step adds a step, or a whole group, and returns the index of the last step added.
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

// call makes the node of a call's kernel; halves is the index of its first half.
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

// group adds all steps of a group that begins at step i, and returns the index of its last step.
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
	messages := map[int32]int{} // by communicator: the first step of its kernel of messages
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

// grouped adds a call of a group. The sends and receives of a communicator are executed by the kernel of the
// first one.
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

// alias makes step k part of the kernel of step at.
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
	for k := i + 1; k < end; k++ { // in the order of the communicators' first calls
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

// before adds edges to node n from the given steps before it. (Steps of n's own group come later and are
// skipped.)
func (b *builder) before(deps []int32, n int32) {
	for _, d := range deps {
		if d < n {
			b.edge(d, n)
		}
	}
}

// behind adds an edge to node n from the last node of a sequence, and makes n the last.
func (b *builder) behind(last map[int32]int32, key, n int32) {
	if prev, ok := last[key]; ok {
		b.edge(prev, n)
	}
	last[key] = n
}

func (b *builder) edge(from, to int32) { b.pairs = append(b.pairs, [2]int32{from, to}) }

// link stores the edges sorted by their origin, so that each node's successors are the range edges[from:to],
// and marks the nodes without predecessors as first.
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
