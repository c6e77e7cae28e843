package gen

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// place is where a rank is in each dimension.
type place struct{ tp, cp, dp, pp int }

func (g *generator) place(rank int) place {
	c := g.c
	return place{rank % c.TP, rank / c.TP % c.CP, rank / (c.TP * c.CP) % c.DP, rank / (c.TP * c.CP * c.DP)}
}

// within is the number of a rank in its stage.
func (p place) within(c *Config) int { return (p.dp*c.CP+p.cp)*c.TP + p.tp }

// perStage is the ranks of a stage, among which experts are divided: a tensor or context parallel rank has
// tokens of its own, and so experts of its own (Megatron-LM with an expert tensor parallel size of 1).
func (c *Config) perStage() int { return c.DP * c.CP * c.TP }

// apart reports whether gradients of experts are summed among other ranks than those of the rest.
func (c *Config) apart() bool { return c.Experts > 0 && (c.EP > 1 || c.TP > 1) }

// group is a family of communicators, one of which each rank is in.
type group uint8

const (
	tensor group = iota
	context
	expert
	data       // of what all data parallel ranks hold
	expertData // of experts, which fewer ranks hold
	ahead      // pipeline, forward
	back       // pipeline, backward
	ends       // first and last stage, which have one embedding
	caches     // ranks that decode, and those that filled a cache
	replicas   // of a part of what Shard ranks divide
	numGroups
)

// streams of the groups: each has one, as calls of a communicator run one by one; those
// of pipelines have one to send and one to receive.
var streams = [numGroups]int32{1, 2, 3, 4, 5, 6, 8, 10, 11, 12}

var groupNames = [numGroups]string{"tp", "cp", "ep", "dp", "edp", "pp-forward", "pp-backward", "embedding",
	"kv", "replicas"}

// index numbers the communicator of a family that a rank is in, and the rank within it;
// a rank that is in none has -1.
func (g *generator) index(f group, p place) (comm, member, size int) {
	c := g.c
	if f == caches && c.KVFrom > 0 {
		return 0, p.pp*c.TP + p.tp, g.world
	} else if f == caches || p.pp >= c.PP { // a rank that filled a cache is in no other
		return 0, -1, 1
	}
	switch f {
	case tensor:
		return (p.pp*c.DP+p.dp)*c.CP + p.cp, p.tp, c.TP
	case context:
		return (p.pp*c.DP+p.dp)*c.TP + p.tp, p.cp, c.CP
	case expert:
		return p.pp*(c.perStage()/c.EP) + p.within(c)/c.EP, p.within(c) % c.EP, c.EP
	case data:
		all, n := c.DP*c.CP/c.shard(), p.dp*c.CP+p.cp
		return (p.pp*c.TP+p.tp)*all + n/c.shard(), n % c.shard(), c.shard()
	case replicas:
		n := p.dp*c.CP + p.cp
		return (p.pp*c.TP+p.tp)*c.shard() + n%c.shard(), n / c.shard(), c.DP * c.CP / c.shard()
	case expertData:
		return p.pp*c.EP + p.within(c)%c.EP, p.within(c) / c.EP, c.perStage() / c.EP
	case ends:
		n := (p.dp*c.CP+p.cp)*c.TP + p.tp
		switch {
		case !c.Tied || c.PP < 2:
			return n, 0, 1
		case p.pp == 0:
			return n, 0, 2
		case p.pp == c.PP-1:
			return n, 1, 2
		}
		return n, -1, 1 // of neither
	}
	return (p.dp*c.CP+p.cp)*c.TP + p.tp, p.pp, c.PP
}

// shard is the number of ranks among which ZeRO divides.
func (c *Config) shard() int {
	if c.Shard == 0 {
		return c.DP * c.CP
	}
	return c.Shard
}

// comms makes the communicators of more than one rank.
func (g *generator) comms() {
	kinds := [numGroups]workload.CommKind{workload.TP, workload.CP, workload.EP, workload.DP, workload.DP,
		workload.PP, workload.PP, workload.NoKind, workload.NoKind, workload.DP}
	if g.c.FSDP > 0 {
		kinds[data], kinds[expertData] = workload.FSDP, workload.FSDP
	}
	for f := range numGroups {
		g.base[f] = int32(len(g.p.Comms))
		if g.pairs(f) {
			g.neighbours(f)
			continue
		}
		if _, _, size := g.index(f, place{}); size < 2 || f == expertData && !g.c.apart() || f == expert &&
			g.c.Experts == 0 {
			continue
		}
		for rank := range g.world {
			n, member, size := g.index(f, g.place(rank))
			if member < 0 {
				continue
			}
			for len(g.p.Comms) <= int(g.base[f])+n {
				g.p.Comms = append(g.p.Comms,
					workload.Comm{Name: fmt.Sprintf("%s%d", groupNames[f], len(g.p.Comms)-int(g.base[f])),
						Kind: kinds[f], Ranks: make([]int32, size)})
			}
			g.p.Comms[int(g.base[f])+n].Ranks[member] = int32(rank)
		}
	}
}

// pairs reports whether each two neighbours of a pipeline have a communicator of their own, as PyTorch
// makes one for messages that are not batched. Stages that form a ring need them: kernels of one
// communicator follow each other on a GPU, so all ranks could send, and none receive.
func (g *generator) pairs(f group) bool {
	return (f == ahead || f == back) && g.c.Schedule == Interleaved && g.c.PP > 1
}

// receiver is the stage that a stage sends to.
func (g *generator) receiver(f group, from int) int {
	if f == back {
		return (from - 1 + g.c.PP) % g.c.PP
	}
	return (from + 1) % g.c.PP
}

// neighbours makes the communicators of neighbouring stages: of each stage that sends, one a rank of it.
func (g *generator) neighbours(f group) {
	n := g.c.perStage()
	for from := range g.c.PP {
		for i := range n {
			g.p.Comms = append(g.p.Comms, workload.Comm{Name: fmt.Sprintf("%s%d-%d", groupNames[f], from, i),
				Kind: workload.PP, Ranks: []int32{int32(from*n + i), int32(g.receiver(f, from)*n + i)}})
		}
	}
}

// edge is the communicator and the peer of a message; those of the family's only communicator where
// neighbours have none of their own.
func (w *writer) edge(f group, fn coll.Func, peer int32) (comm, to int32) {
	g := w.g
	if !g.pairs(f) || fn != coll.Send && fn != coll.Recv {
		return w.comm[f], peer
	}
	from, to := w.at.pp, int32(1)
	if fn == coll.Recv {
		from, to = int(peer), 0
	}
	return g.base[f] + int32(from*g.c.perStage()+w.at.within(g.c)), to
}

// callKey identifies equal calls, which share an entry of the program's table.
type callKey struct {
	comm  int32
	fn    coll.Func
	typ   coll.DataType
	count int64
	peer  int32

	kernel workload.Kernel
}

func (g *generator) call(k callKey) int32 {
	i, known := g.calls[k]
	if !known {
		i = int32(len(g.p.Calls))
		g.calls[k] = i
		g.p.Calls = append(g.p.Calls, workload.Call{Comm: k.comm, Func: k.fn, Type: k.typ, Count: k.count,
			Peer: k.peer, Kernel: k.kernel})
	}
	return i
}

// trafficKey is a purpose of calls.
type trafficKey struct {
	family group
	what   string
	fn     coll.Func
	typ    coll.DataType
	count  int64
}

// traffic sums calls up.
func (g *generator) traffic() (out []Traffic) {
	for _, k := range g.order {
		perList := g.tally[k]
		_, _, n := g.index(k.family, place{})
		perList = g.extended(perList)
		lo, hi := slices.Min(perList), slices.Max(perList)
		bytes := int64(units.Bytes(k.count) * k.typ.Size())
		size, sent := bytes, bytes
		switch k.fn {
		case coll.AllReduce:
			sent = 2 * bytes * int64(n-1) / int64(n)
		case coll.AllGather, coll.ReduceScatter:
			size, sent = bytes*int64(n), bytes*int64(n-1)
		case coll.AllToAll:
			size, sent = bytes*int64(n), bytes*int64(n-1)
		}
		it := int64(g.c.Iterations)
		kind, groups := groupNames[k.family], g.world/n
		if k.family == ends {
			groups = g.world / g.c.PP
		}
		out = append(out, Traffic{Kind: kind, What: k.what, Op: k.fn.TestName(), Ranks: n, Groups: groups,
			Bytes: size, Formula: g.formula(k),
			CallsMin: lo / it, CallsMax: hi / it, BytesPerRank: size * hi / it, SentPerRank: sent * hi / it})
	}
	slices.SortStableFunc(out, func(a, b Traffic) int {
		return cmp.Compare(slices.Index(groupNames[:], a.Kind), slices.Index(groupNames[:], b.Kind))
	})
	return out
}

// extended are the calls of a whole iteration by list: those of the second of two iterations in its place,
// and for each further microbatch what lies between the two.
func (g *generator) extended(counts []int64) []int64 {
	if g.rounds == nil {
		return counts
	}
	out := make([]int64, g.classes)
	for i := range out {
		a, b := counts[i], counts[g.classes+i]
		out[i] = b + (b-a)*int64(g.whole-g.rounds[1])/int64(g.rounds[1]-g.rounds[0])
	}
	return out
}

// formula returns the factors of a call's bytes in words, for the table of traffic.
func (g *generator) formula(k trafficKey) string {
	part := "b·s/cp·h·size"
	if g.c.SequenceParallel && k.family != tensor {
		part = "b·s/cp/tp·h·size"
	}
	switch {
	case k.what == "loss":
		return "b·s/cp·4"
	case k.family == context && k.fn == coll.Send:
		return "2·b·s/cp·kv/tp·d·size"
	case k.family == context:
		return "2·b·s·kv/tp·d·size"
	case k.family == expert:
		return part + "·k·capacity"
	case k.family == ends:
		return "vocab·h/tp·size"
	case k.family == replicas:
		return "parameters·size/shard"
	case k.family == data || k.family == expertData:
		return "parameters·size"
	}
	return part
}

// count notes a call of a list.
func (g *generator) count(list int32, k trafficKey) {
	perList, known := g.tally[k]
	if !known {
		perList = make([]int64, g.classes*max(len(g.rounds), 1))
		g.tally[k] = perList
		g.order = append(g.order, k)
	}
	perList[list]++
}
