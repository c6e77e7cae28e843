package peer

import (
	"cmp"
	"fmt"
	"math"

	"github.com/simccl/simccl/plan"
)

// Kernels of expert parallelism.
const (
	DeepEP           = "deepep"
	DeepEPLowLatency = "deepep-ll"
	HybridEP         = "hybridep"
	// DeepEPV2 is DeepEP 2 (ElasticBuffer, hybrid mode), whose GPUs post writes by NCCL's device-initiated
	// networking (GIN).
	DeepEPV2 = "deepep-v2"
	// OneSided is TensorRT-LLM's alltoall within an NVLink domain (NVLinkOneSided,
	// cpp/tensorrt_llm/kernels/communicationKernels/moeAlltoAllKernels.cu): a block a token stores it once to
	// each rank of its experts, and loads the results from there, between meetings by flags.
	OneSided = "trtllm"
	// PPLX is Perplexity's kernels, which send as DeepEP's of low latency.
	PPLX = "pplx"
)

// ExpertKernels lists all of them.
func ExpertKernels() []string {
	return []string{DeepEP, DeepEPLowLatency, DeepEPV2, HybridEP, OneSided, PPLX}
}

// perExpert reports whether a kernel sends a token once for each of its experts, to their ranks.
func (e *Experts) perExpert() bool { return e.Kernel == DeepEPLowLatency || e.Kernel == PPLX }

// Experts is a dispatch of tokens to the ranks of their experts, or the combine of the experts' results.
type Experts struct {
	Kernel                        string
	Combine                       bool
	Experts, TopK, Hidden, Tokens int64 // Tokens of each rank
	// Groups divide the experts, in order; a token's experts are of TopKGroups of them. 0: of any.
	Groups, TopKGroups int64
	// bytes of a transferred value: 1 for FP8, with a scale for each 128 values
	Element int64
	FP4     bool // NVFP4 in place of it: half a byte a value, with a scale of a byte for each 16 values
	SMs     int  // blocks of the kernel; 0: its default
	GPUSMs  int  // multiprocessors of a GPU
	NodeOf  []int32
}

// Bytes that the kernels move with each token: DeepEP's csrc/kernels/intranode.cu and internode_ll.cu. A
// scale (float) belongs to 128 values of FP8.
const (
	scaled      = 128
	scaleBytes  = 4
	indexBytes  = 8  // of a chosen expert's index, in dispatch of the normal kernels
	wordBytes   = 4  // of the index in TensorRT-LLM's kernel
	weightBytes = 4  // of its weight
	headBytes   = 16 // of a message's header in the kernels that send per expert: the token's index, aligned
)

// A channel of the normal kernels between nodes has two blocks, and writes 6 to 20 tokens at a time to
// another node, 8 by most of the tables (DeepEP's csrc/kernels/internode.cu and get_dispatch_config).
const (
	blocksOfChannel = 2
	chunk           = 8
)

// Bounds of plans: part numbers fit 32 bits, bytes of a rank are exact as float64.
const (
	mostRanks = 1024
	mostBytes = 1 << 52
)

// blocks returns the default number of blocks: DeepEP's Buffer.num_sms; of version 2 what its README has
// between nodes, where it chooses by the rates that it finds.
func (e *Experts) blocks() int {
	if e.Kernel == DeepEPV2 {
		return 12
	}
	return 20
}

// copyBytes returns the bytes of one transferred copy of a token.
func (e *Experts) copyBytes() int64 {
	b := e.Hidden * e.Element
	switch {
	case e.FP4:
		b = e.Hidden/2 + (e.Hidden+15)/16
	case e.Element == 1:
		b += (e.Hidden + scaled - 1) / scaled * scaleBytes
	}
	switch {
	case e.Kernel == OneSided && e.Combine:
		return b
	case e.Kernel == OneSided:
		return b + e.TopK*(wordBytes+weightBytes)
	case e.perExpert() && e.Combine:
		return b
	case e.perExpert():
		return b + headBytes
	case e.Combine:
		return b + e.TopK*weightBytes
	}
	return b + e.TopK*(indexBytes+weightBytes)
}

// hit returns the probability that a token goes to ranks that hold that many successive experts, if the
// router chooses TopK different experts uniformly. If it first chooses TopKGroups groups, by their best
// experts, each of them gets the token (of 8 groups of 32 experts, 4 and 8 chosen: 3.98 of the 4).
func (e *Experts) hit(held int64) float64 {
	if e.Groups == 0 {
		return some(e.Experts, held, e.TopK)
	}
	each := e.Experts / e.Groups
	if held >= each {
		return some(e.Groups, held/each, e.TopKGroups)
	}
	return float64(e.TopKGroups) / float64(e.Groups) * some(each*e.TopKGroups, held, e.TopK)
}

// some returns the probability that at least one of the first held of n things is among chosen ones.
func some(n, held, chosen int64) float64 {
	miss := 1.0
	for i := range chosen {
		miss *= math.Max(0, float64(n-held-i)) / float64(n-i)
	}
	return 1 - miss
}

// Plan plans the dispatch or combine. Errors: a *plan.UnsupportedError.
func (e *Experts) Plan() (*Plan, error) {
	name := "ep_dispatch"
	if e.Combine {
		name = "ep_combine"
	}
	ranks := len(e.NodeOf)
	no := func(why string, args ...any) (*Plan, error) {
		return nil, &plan.UnsupportedError{What: name + " by kernel " + e.Kernel,
			Why: fmt.Sprintf(why, args...)}
	}
	switch n := int64(ranks); {
	case ranks < 2:
		return no("it needs two ranks or more")
	case ranks > mostRanks:
		return no("plans have a part for each pair of at most %d ranks", mostRanks)
	case float64(e.Tokens)*float64(e.TopK)*float64(e.copyBytes()) > mostBytes:
		return no("a rank sends more than %g bytes", float64(mostBytes))
	case e.Experts%n != 0:
		return no("%d experts do not divide evenly over %d ranks", e.Experts, n)
	case e.TopK > e.Experts:
		return no("a token has %d experts of %d", e.TopK, e.Experts)
	case e.Groups > 0 && (e.Experts%e.Groups != 0 || e.TopKGroups > e.Groups ||
		e.TopK > e.Experts/e.Groups*e.TopKGroups):
		return no("a token has %d experts in %d of %d groups, which %d experts do not allow", e.TopK,
			e.TopKGroups, e.Groups, e.Experts)
	}
	p := &Plan{Op: name, Kernel: e.Kernel, Ranks: ranks, Threads: 1024, Blocks: cmp.Or(e.SMs, e.blocks()),
		Assumed: []string{"tokens choose their experts evenly and at random; counts are the mean"}}
	t := &Tokens{Combine: e.Combine, Count: e.Tokens, Values: e.Hidden, Bytes: e.copyBytes()}
	p.Tokens = t
	for _, v := range e.NodeOf {
		t.Remote = t.Remote || v != e.NodeOf[0]
	}
	b := builder{Experts: e, Plan: p, pairs: make([]int32, ranks*ranks)}
	switch {
	case e.perExpert():
		if e.Kernel == PPLX {
			p.Assumed = append(p.Assumed, "pplx is timed as deepep-ll: of its own table of ConnectX-7 "+
				"between nodes 4 to 13 % off, within a node 8 to 30 %")
		}
		t.LowLatency, t.Copies = true, float64(e.TopK)
		t.Groups = int((e.Experts + int64(e.GPUSMs) - 1) / int64(e.GPUSMs))
		p.Blocks = int((e.Experts + int64(t.Groups) - 1) / int64(t.Groups))
		b.direct()
		return p, nil
	case e.Kernel == OneSided && t.Remote:
		return no("it stores into memory of one NVLink domain; between domains TensorRT-LLM takes DeepEP")
	case e.Kernel == OneSided:
		p.Blocks, p.Threads = cmp.Or(e.SMs, e.GPUSMs), 256
	case t.Remote:
		if err := b.rails(); err != nil {
			return no("%v", err)
		}
	}
	t.Copies = float64(ranks) * e.hit(e.Experts/int64(ranks))
	if nodes := int64(len(b.peers)); nodes > 0 {
		toNode := e.hit(e.Experts / nodes)
		t.Crossing = float64(nodes) * toNode
		t.Chunks = float64(e.Tokens) * toNode / (float64(p.Blocks) / blocksOfChannel * chunk)
	}
	b.staged()
	return p, nil
}

// builder is the state of building the parts and moves.
type builder struct {
	*Experts
	*Plan
	pairs []int32   // by s, d: part of rank s's tokens that have experts on rank d
	peers [][]int32 // ranks of a node, by local index
	local []int32   // local index of a rank
}

// rails finds the ranks of each node, whose numbers must be equal: between nodes, tokens go from a rank to
// the rank with the same local index.
func (b *builder) rails() error {
	b.local = make([]int32, len(b.NodeOf))
	for r, v := range b.NodeOf {
		for int(v) >= len(b.peers) {
			b.peers = append(b.peers, nil)
		}
		b.local[r] = int32(len(b.peers[v]))
		b.peers[v] = append(b.peers[v], int32(r))
	}
	for _, of := range b.peers {
		if len(of) != len(b.peers[0]) {
			return fmt.Errorf("nodes have %d and %d ranks; tokens cross to the rank of equal index",
				len(b.peers[0]), len(of))
		}
	}
	return nil
}

// add adds a part of the given average number of items; of is the part that it is a piece of (-1: none).
func (b *builder) add(items float64, of int32) int32 {
	n := int64(math.Round(items))
	b.Parts = append(b.Parts, Part{Items: n, Bytes: n * b.copyBytes(), Of: of})
	return int32(len(b.Parts) - 1)
}

// direct plans kernels that send each token to the rank of each of its experts, once per expert.
func (b *builder) direct() {
	n := int64(b.Ranks)
	each := float64(b.Experts.Tokens*b.TopK) / float64(n)
	send := Phase{Name: "send"}
	for s := range int32(n) {
		whole := b.whole(s)
		for d := range int32(n) {
			part := b.add(each, whole)
			b.pairs[int64(s)*n+int64(d)] = part
			way := Store
			if b.NodeOf[s] != b.NodeOf[d] {
				way = Write
			}
			if b.Combine {
				send.Moves = append(send.Moves, b.give(d, s, part, Tmp, way))
			} else {
				send.Moves = append(send.Moves, b.give(s, d, part, Out, way))
			}
		}
	}
	b.Phases = append(b.Phases, send)
	b.finish(nil)
}

// whole adds the part of all of a rank's tokens, which the rank has at first; in a combine there is none
// (-1).
func (b *builder) whole(s int32) int32 {
	if b.Combine {
		return -1
	}
	part := b.add(float64(b.Experts.Tokens), -1)
	b.Has = append(b.Has, Place{s, In, part})
	return part
}

// give returns the move of a pair's part from a rank's input to a buffer of another rank.
func (b *builder) give(from, to, part int32, at Buffer, way Way) Move {
	if b.Combine {
		b.Has = append(b.Has, Place{from, In, part})
	} else if at == Out {
		b.Goals = append(b.Goals, Goal{Place{to, at, part}, []int32{from}})
	}
	by := from
	if b.Experts.Kernel == OneSided && b.Combine {
		by, way = to, Load
	}
	return Move{By: by, Way: way, Sources: []Place{{from, In, part}}, To: Place{to, at, part}}
}

// finish adds the phase that sums the results of each rank's tokens; from holds their places by rank; nil:
// the pairs' own places.
func (b *builder) finish(from [][]Place) {
	if !b.Combine {
		return
	}
	n := int32(b.Ranks)
	all := make([]int32, n)
	for i := range all {
		all[i] = int32(i)
	}
	sum := Phase{Name: "sum", Meet: true}
	for s := range n {
		part := b.add(float64(b.Experts.Tokens), -1)
		var of []Place
		if from != nil {
			of = from[s]
		} else {
			for d := range n {
				of = append(of, Place{s, Tmp, b.pairs[s*n+d]})
			}
		}
		sum.Moves = append(sum.Moves, Move{By: s, Sources: of, To: Place{s, Out, part}})
		b.Goals = append(b.Goals, Goal{Place{s, Out, part}, all})
	}
	b.Phases = append(b.Phases, sum)
}

// staged plans kernels that send a token once to each rank that has experts for it, and between nodes once to
// each node: to the rank with the sender's local index, which forwards it (or sums the results on the way
// back).
func (b *builder) staged() {
	n, nodes := int32(b.Ranks), int32(max(1, len(b.peers)))
	perRank := b.Experts.Experts / int64(n)
	cross, inside := Phase{Name: "between nodes"}, Phase{Name: "in nodes"}
	toRank := float64(b.Experts.Tokens) * b.hit(perRank)
	toNode := float64(b.Experts.Tokens) * b.hit(perRank*int64(n/nodes))
	back := make([][]Place, n)
	b.owner = make(map[int32]int32, n*n)
	for s := range n {
		whole := b.whole(s)
		for v := range nodes {
			peers, via, node := b.members(s, v)
			if via != s {
				node = b.add(toNode, whole)
			}
			var sum []Place
			for _, d := range peers {
				of := whole
				if via != s {
					of = node
				}
				if b.Combine {
					of = -1
				}
				part := b.add(toRank, of)
				b.pairs[s*n+d] = part
				b.owner[part] = s
				switch {
				case b.Combine:
					inside.Moves = append(inside.Moves, b.give(d, via, part, Tmp, Store))
					sum = append(sum, Place{via, Tmp, part})
				case via == s:
					inside.Moves = append(inside.Moves, b.give(s, d, part, Out, Store))
				default:
					b.Goals = append(b.Goals, Goal{Place{d, Out, part}, []int32{s}})
					inside.Moves = append(inside.Moves, Move{By: via, Way: Store,
						Sources: []Place{{via, Tmp, part}}, To: Place{d, Out, part}})
				}
			}
			switch {
			case via == s:
				back[s] = append(back[s], sum...)
			case b.Combine:
				cross.Moves = append(cross.Moves, Move{By: via, Way: Write, Sources: sum,
					To: Place{s, Tmp, node}})
				back[s] = append(back[s], Place{s, Tmp, node})
			default:
				cross.Moves = append(cross.Moves, Move{By: s, Way: Write, Sources: []Place{{s, In, node}},
					To: Place{via, Tmp, node}})
			}
		}
	}
	b.order(cross, inside)
	b.finish(back)
}

// order appends the phases in the order of the operation: a combine is the reverse of a dispatch.
func (b *builder) order(cross, inside Phase) {
	list := []Phase{cross, inside}
	if b.Combine {
		list[0], list[1] = inside, cross
	}
	for _, ph := range list {
		if len(ph.Moves) > 0 {
			b.Phases = append(b.Phases, ph)
		}
	}
}

// members returns the ranks of a node, and the one through which rank s's tokens pass.
func (b *builder) members(s, node int32) (peers []int32, via, none int32) {
	if b.peers == nil {
		for r := range int32(b.Ranks) {
			peers = append(peers, r)
		}
		return peers, s, -1
	}
	if b.NodeOf[s] == node {
		return b.peers[node], s, -1
	}
	return b.peers[node], b.peers[node][b.local[s]], -1
}

// Pair returns, for a move within a node, the rank whose tokens it moves and the rank of their experts. It is
// valid for plans of Experts by stages.
func (p *Plan) Pair(m *Move) (src, dst int32) {
	if p.Tokens.Combine {
		return m.By, p.owner[m.To.Part]
	}
	return p.owner[m.Sources[0].Part], m.To.Rank
}
