// Package measure measures a machine for calibrate: sets of settings, each in processes of its own, one per
// GPU, by CUDA graph replay. It writes nccl-tests' JSON, one file for each set and operation, and the
// machine's topology.
package measure

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// Set is one set of settings to measure, in processes of its own.
type Set struct {
	Name string
	Env  []string // NAME=VALUE
	Ops  []coll.Func
	// Sizes go from Min (0: 8 bytes) to Max by this factor; with Skew they are not aligned to 16 bytes per
	// rank.
	Min, Max units.Bytes
	Factor   int64
	Type     units.Opt[coll.DataType] // unset: float32
	Skew     bool
	InPlace  bool
	Eager    bool
	GPUs     int  // this many GPUs, if there are more; 0: all
	Beside   bool // while compute runs, into the table of overlap
}

var (
	allOps = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce,
		coll.AllToAll, coll.SendRecv}
	fiveOps   = allOps[:5]
	reduceOps = allOps[:1]
	protocols = []string{"LL", "LL128", "Simple"}
)

// forced returns a set with a fixed algorithm and protocol.
func forced(name, algo, proto string, ops []coll.Func, max units.Bytes, more ...string) Set {
	return Set{Name: name, Env: append([]string{"NCCL_ALGO=" + algo, "NCCL_PROTO=" + proto}, more...),
		Ops: ops, Max: max, Factor: 4}
}

// Sets returns the sets that calibrate measures, the most informative first: NCCL's choices in two processes,
// because kernel gaps differ from process to process, for powers of two and sizes in between, which use fewer
// channels and partial slices; collectives while compute runs; then each protocol with all its channels, with
// one and with eight; trees; fewer GPUs; unaligned buffers; operations in place, which store to no second
// place; few threads; bytes, which are reduced element by element; and launches without a graph.
func Sets() []Set {
	all := []Set{{Name: "default", Ops: allOps, Max: 1 << 30, Factor: 2}}
	for i, p := range protocols {
		all = append(all, forced("ring-"+p, "Ring", p, fiveOps, []units.Bytes{64 << 20, 1 << 30, 1 << 30}[i]))
	}
	all = append(all, Set{Name: "default-between", Ops: allOps, Min: 40, Max: 1 << 30, Factor: 2})
	all = append(all, besideSets()...)
	for _, p := range protocols {
		all = append(all, forced("one-"+p, "Ring", p, fiveOps, 16<<20, "NCCL_MAX_NCHANNELS=1"))
	}
	for _, p := range protocols {
		all = append(all, forced("tree-"+p, "Tree", p, reduceOps, 256<<20))
	}
	for _, p := range protocols {
		all = append(all, forced("eight-"+p, "Ring", p, fiveOps[:3], 64<<20, "NCCL_MAX_NCHANNELS=8"))
	}
	all = append(all,
		Set{Name: "pair", Ops: allOps, Max: 1 << 30, Factor: 4, GPUs: 2},
		Set{Name: "three", Ops: allOps, Max: 1 << 30, Factor: 4, GPUs: 3},
		Set{Name: "skew", Ops: allOps, Max: 256 << 20, Factor: 8, Skew: true})
	for _, p := range protocols {
		s := forced("inplace-"+p, "Ring", p, []coll.Func{coll.AllReduce, coll.AllGather, coll.Broadcast},
			16<<20)
		s.InPlace, s.Factor = true, 16
		all = append(all, s)
	}
	for i, p := range protocols {
		s := forced("narrow-"+p, "Ring", p, fiveOps, 16<<20, "NCCL_NTHREADS=128", "NCCL_LL128_NTHREADS=160",
			"NCCL_MAX_NCHANNELS=2")
		s.Factor, s.Min, s.Max = 8, 20, 42<<20 // the last size does not fit L2
		if all = append(all, s); i > 0 {
			s = forced("skew-"+p, "Ring", p, fiveOps, 64<<20)
			s.Skew, s.Factor = true, 8
			all = append(all, s)
		}
	}
	int8Simple := forced("int8-Simple", "Ring", "Simple", []coll.Func{coll.AllReduce, coll.ReduceScatter},
		64<<20)
	int8Simple.Type, int8Simple.Skew, int8Simple.Factor = units.Some(coll.Int8), true, 16
	return append(all,
		Set{Name: "int8", Ops: []coll.Func{coll.AllReduce, coll.ReduceScatter, coll.Reduce}, Max: 256 << 20,
			Factor: 8, Type: units.Some(coll.Int8)},
		int8Simple,
		Set{Name: "eager", Ops: reduceOps, Max: 1 << 20, Factor: 4, Eager: true})
}

// unseen returns sets for judging a calibration, unlike those it is fitted to: other sizes, types, buffers,
// threads, channels and numbers of GPUs. calibrate measures them only if they are requested by name.
func unseen() []Set {
	unlike := func(name string, env ...string) Set {
		return Set{Name: "unseen-" + name, Env: env, Ops: allOps, Min: 24, Max: 512 << 20, Factor: 6}
	}
	odd, bytes, half, three := unlike("odd"), unlike("int8"), unlike("half"), unlike("three")
	odd.Skew, odd.Min = true, 96
	bytes.Type, bytes.Ops = units.Some(coll.Int8), fiveOps
	oddBytes := unlike("odd-int8")
	oddBytes.Type, oddBytes.Ops, oddBytes.Skew, oddBytes.Min = units.Some(coll.Int8), fiveOps, true, 96
	half.Type, half.Ops = units.Some(coll.Float16), fiveOps
	three.GPUs = 3
	all := []Set{odd, bytes, oddBytes, half, three,
		unlike("buffers", "NCCL_BUFFSIZE=1048576", "NCCL_LL128_BUFFSIZE=1966080"),
		unlike("large-buffers", "NCCL_BUFFSIZE=16777216")}
	for _, p := range protocols {
		s := unlike("threads-"+p, "NCCL_ALGO=Ring", "NCCL_PROTO="+p, "NCCL_NTHREADS=256",
			"NCCL_LL128_NTHREADS=320", "NCCL_MAX_NCHANNELS=4")
		s.Ops, s.Max = fiveOps, 64<<20
		tree := unlike("three-tree-"+p, "NCCL_ALGO=Tree", "NCCL_PROTO="+p)
		tree.Ops, tree.Max, tree.GPUs = reduceOps, 128<<20, 3
		ring := unlike("three-ring-"+p, "NCCL_ALGO=Ring", "NCCL_PROTO="+p)
		ring.Ops, ring.Max, ring.GPUs = fiveOps, 128<<20, 3
		all = append(all, s, tree, ring)
	}
	return all
}

// fresh returns further sets for judging, unlike those of unseen: a calibration developed with one is judged
// by the other.
func fresh() []Set {
	unlike := func(name string, typ coll.DataType, skew bool, env ...string) Set {
		s := Set{Name: "fresh-" + name, Env: env, Ops: allOps, Min: 208, Max: 640 << 20, Factor: 5,
			Type: units.Some(typ), Skew: skew}
		if typ != coll.Float32 {
			s.Ops = fiveOps
		}
		return s
	}
	all := []Set{
		unlike("float", coll.Float32, false), unlike("double", coll.Float64, false),
		unlike("odd-bfloat16", coll.BFloat16, true),
		unlike("odd-int32", coll.Int32, true), unlike("uint8", coll.Uint8, false),
		unlike("buffers-2M", coll.Float32, false, "NCCL_BUFFSIZE=2097152", "NCCL_LL128_BUFFSIZE=3276800"),
		unlike("buffers-8M", coll.Float32, false, "NCCL_BUFFSIZE=8388608"),
	}
	in := unlike("in-place", coll.Float32, false)
	in.InPlace, in.Ops = true, fiveOps
	all = append(all, in)
	for i, p := range protocols {
		s := unlike("threads-"+p, coll.Float32, false, "NCCL_ALGO=Ring", "NCCL_PROTO="+p, "NCCL_NTHREADS=384",
			"NCCL_LL128_NTHREADS=480", "NCCL_MAX_NCHANNELS=6")
		narrow := unlike("narrow-"+p, coll.Float32, false, "NCCL_ALGO=Ring", "NCCL_PROTO="+p,
			"NCCL_NTHREADS=192", "NCCL_LL128_NTHREADS=256", "NCCL_MAX_NCHANNELS=3")
		s.Ops, s.Max = fiveOps, 80<<20
		narrow.Ops, narrow.Max = fiveOps, []units.Bytes{16 << 20, 80 << 20, 80 << 20}[i]
		all = append(all, s, narrow)
	}
	return all
}

// Names lists the sets that calibrate measures by default.
func Names() []string {
	var out []string
	for _, s := range Sets() {
		out = append(out, s.Name)
	}
	return out
}

// Pick returns sets by name, including those of unseen and fresh, and all of these as "unseen" and "fresh";
// without names it returns Sets.
func Pick(names []string) ([]Set, error) {
	if len(names) == 0 {
		return Sets(), nil
	}
	all := append(append(Sets(), unseen()...), fresh()...)
	var out []Set
	for _, name := range names {
		if more := map[string]func() []Set{"unseen": unseen, "fresh": fresh}[name]; more != nil {
			out = append(out, more()...)
			continue
		}
		if strings.Contains(name, "=") {
			s, err := try(name)
			if err != nil {
				return nil, err
			}
			out = append(out, s)
			continue
		}
		i := slices.IndexFunc(all, func(s Set) bool { return s.Name == name })
		if i < 0 {
			return nil, team.Refuse("--sets %s: there are %s, unseen, fresh", name,
				strings.Join(Names(), ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// try returns a set of settings as a user writes them, NAME=VALUE separated by commas: all_reduce, all_gather
// and reduce_scatter at ten sizes from 8 B to 1 GiB.
func try(text string) (Set, error) {
	s := Set{Name: text, Env: strings.Split(text, ","), Ops: allOps[:3], Max: 1 << 30, Factor: 8}
	for _, kv := range s.Env {
		if name, value, ok := strings.Cut(kv, "="); !ok || !strings.HasPrefix(name, "NCCL_") || value == "" ||
			strings.Contains(value, "/") {
			return s, team.Refuse("--try %s: write NCCL_NAME=VALUE, more of them behind commas, without /",
				text)
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

// sizes lists the sizes of an operation to measure.
func (s *Set) sizes(f coll.Func, ranks int) []timing {
	var all []timing
	typ := s.Type.Or(coll.Float32)
	for size := max(s.Min, 8); size <= s.Max; size *= units.Bytes(s.Factor) {
		sizes := coll.TestSizes(f, size, typ, ranks)
		if s.Skew {
			extra := units.Bytes(1)
			if f.PerRank() {
				extra = units.Bytes(ranks)
			}
			sizes = coll.ExactSizes(f, size+extra*typ.Size(), typ, ranks)
		}
		if sizes.Count > 0 {
			all = append(all, timing{op: &device.Case{Func: f, Type: typ, Red: coll.Sum, Sizes: sizes,
				InPlace: s.InPlace}, shown: sizes.Bytes(typ)})
		}
	}
	return all
}

// options returns 20 operations per graph, as the simulator assumes and nccl-tests does by default, and
// enough replays that the start of the first does not matter.
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
