// Package measure measures a machine for calibrate: lists of settings, each in
// processes of its own, one a GPU, by CUDA graph replay. It writes nccl-tests'
// JSON, one file a list and operation, and the machine's topology.
package measure

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// Set is one list of settings to measure, in processes of their own.
type Set struct {
	Name string
	Env  []string // NAME=VALUE
	Ops  []coll.Func
	// Sizes go from 8 bytes to Max by this factor; those of Skew are not aligned
	// to 16 bytes a rank.
	Max    units.Bytes
	Factor int64
	Skew   bool
	Eager  bool
	Pair   bool // two GPUs, where there are more
}

var (
	allOps    = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.SendRecv}
	fiveOps   = allOps[:5]
	reduceOps = allOps[:1]
)

// Sets are what calibrate measures, the most informative first: NCCL's choices in
// two processes, because kernel gaps differ from process to process; then each
// protocol over all its channels, over one and over eight, trees, two GPUs,
// buffers that are not aligned, and launches without a graph.
func Sets() []Set {
	forced := func(name, algo, proto string, ops []coll.Func, max units.Bytes, more ...string) Set {
		return Set{Name: name, Env: append([]string{"NCCL_ALGO=" + algo, "NCCL_PROTO=" + proto}, more...), Ops: ops, Max: max, Factor: 4}
	}
	all := []Set{{Name: "default", Ops: allOps, Max: 1 << 30, Factor: 2}}
	protos := []string{"LL", "LL128", "Simple"}
	for i, p := range protos {
		all = append(all, forced("ring-"+p, "Ring", p, fiveOps, []units.Bytes{64 << 20, 1 << 30, 1 << 30}[i]))
	}
	all = append(all, Set{Name: "default-again", Ops: allOps, Max: 1 << 30, Factor: 2})
	for _, p := range protos {
		all = append(all, forced("one-"+p, "Ring", p, fiveOps, 16<<20, "NCCL_MAX_NCHANNELS=1"))
	}
	for _, p := range protos {
		all = append(all, forced("tree-"+p, "Tree", p, reduceOps, 256<<20))
	}
	for _, p := range protos {
		all = append(all, forced("eight-"+p, "Ring", p, fiveOps[:3], 64<<20, "NCCL_MAX_NCHANNELS=8"))
	}
	return append(all,
		Set{Name: "pair", Ops: allOps, Max: 1 << 30, Factor: 4, Pair: true},
		Set{Name: "skew", Ops: []coll.Func{coll.AllGather, coll.AllToAll}, Max: 256 << 20, Factor: 8, Skew: true},
		Set{Name: "eager", Ops: reduceOps, Max: 1 << 20, Factor: 4, Eager: true})
}

// Names lists the sets.
func Names() []string {
	var out []string
	for _, s := range Sets() {
		out = append(out, s.Name)
	}
	return out
}

// Pick finds sets by name; no name means all.
func Pick(names []string) ([]Set, error) {
	all := Sets()
	if len(names) == 0 {
		return all, nil
	}
	var out []Set
	for _, name := range names {
		if strings.Contains(name, "=") {
			s, err := Try(name)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
			continue
		}
		i := slices.IndexFunc(all, func(s Set) bool { return s.Name == name })
		if i < 0 {
			return nil, team.Refuse("--sets %s: there are %s", name, strings.Join(Names(), ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// Try is a set of settings as a user writes them, NAME=VALUE and more behind commas:
// all_reduce, all_gather and reduce_scatter at ten sizes from 8 B to 1 GiB.
func Try(text string) (Set, error) {
	s := Set{Name: text, Env: strings.Split(text, ","), Ops: allOps[:3], Max: 1 << 30, Factor: 8}
	for _, kv := range s.Env {
		if name, value, ok := strings.Cut(kv, "="); !ok || !strings.HasPrefix(name, "NCCL_") || value == "" || strings.Contains(value, "/") {
			return s, team.Refuse("--try %s: write NCCL_NAME=VALUE, more of them behind commas, without /", text)
		}
	}
	return s, nil
}

// timing is a size with the times of all passes.
type timing struct {
	op    *device.Case
	shown units.Bytes
	times []units.Time
}

// sizes lists what is measured of an operation.
func (s *Set) sizes(f coll.Func, ranks int) []timing {
	var all []timing
	for size := units.Bytes(8); size <= s.Max; size *= units.Bytes(s.Factor) {
		sizes := coll.TestSizes(f, size, coll.Float32, ranks)
		if s.Skew {
			sizes = coll.ExactSizes(f, size+units.Bytes(4*ranks), coll.Float32, ranks)
		}
		if sizes.Count > 0 {
			all = append(all, timing{op: &device.Case{Func: f, Type: coll.Float32, Red: coll.Sum, Sizes: sizes}, shown: sizes.Bytes(coll.Float32)})
		}
	}
	return all
}

// options are 20 operations a graph, as the simulator reckons and nccl-tests
// does by default, and as many replays as keep the start of the first from
// showing.
func (s *Set) options(size units.Bytes, check bool) device.Options {
	o := device.Options{Iters: 20, Warmup: 2, Replays: 10, Average: device.OfAll, Seed: 1}
	switch {
	case s.Eager:
		o.Replays, o.Iters = 0, 200
	case size > 128<<20:
		o.Replays = 1
	case size > 4<<20:
		o.Replays = 3
	}
	if check {
		o.Check = 1
	}
	return o
}
