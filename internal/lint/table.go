package lint

import "strings"

// module is the import path that rooms are relative to.
const module = "github.com/simccl/simccl"

// edge is a permission to import, with the reason it was given.
type edge struct{ to, why string }

// room is a package, or a tree of them, with what it may know.
type room struct {
	dir    string
	idea   string // what it must not know, printed with a forbidden import
	pure   bool   // a function of its arguments: no system, clock or chance
	may    []edge // our packages
	guests []edge // third-party packages, by path prefix
}

// units and coll are words and measures that every room speaks.
var leaves = []edge{
	{"units", "quantities"},
	{"coll", "names of operations, algorithms, protocols and types"},
}

// rooms is HOUSE's table: which way the doors open. A package belongs to the
// room with the longest matching directory.
var rooms = []room{
	{dir: "", pure: true, idea: "the root explains the library; code is in the rooms"},
	{dir: "units", pure: true, idea: "it is a leaf"},
	{dir: "coll", pure: true, idea: "it is a leaf above units", may: leaves[:1]},
	{dir: "topo", pure: true, idea: "a topology knows no XML and no operating system",
		may: leaves},
	{dir: "topo/fabric", pure: true, idea: "the network joins hosts; it knows nothing of what they decide",
		may:    with(edge{"topo", "hosts are Systems"}),
		guests: []edge{{"gonum.org/v1/gonum/graph", "shortest routes, through an adapter with ordered iterators"}}},
	{dir: "topo/lint", pure: true, idea: "advice on a topology needs the topology alone",
		may: with(edge{"topo", "what is looked at"}, edge{"topo/fabric", "NICs that reach nothing"})},
	{dir: "topo/xml", pure: true, idea: "a codec knows files' text, not what is decided from it",
		may:    with(edge{"topo", "the Spec it reads and writes"}, edge{"search", "the graphs it reads and writes"}),
		guests: []edge{{"github.com/beevik/etree", "keeps order and unknown attributes on rewrite"}}},
	{dir: "topo/detect", idea: "live detection yields a Spec and decides nothing",
		may: with(edge{"topo", "the Spec it yields"}),
		guests: []edge{{"github.com/NVIDIA/go-nvml", "NVML with cgo"}, {"github.com/ebitengine/purego", "NVML without cgo"},
			{"golang.org/x/sys", "system calls"}}},
	{dir: "search", pure: true, idea: "a search knows no rank beyond its host and no message size",
		may: with(edge{"topo", "the System it searches"})},
	{dir: "connect", pure: true, idea: "connecting ranks needs no bandwidth table",
		may: with(edge{"topo", "nodes of a route"}, edge{"topo/fabric", "ranks over hosts"}, edge{"search", "the graphs it joins"})},
	{dir: "tuning", pure: true, idea: "the tuner knows no op",
		may: with(edge{"topo", "link and path kinds"}, edge{"topo/fabric", "the cluster"}, edge{"search", "the graphs it prices"})},
	{dir: "plan", pure: true, idea: "a plan knows no topology and no time: ops have bytes and dependencies",
		may: with(edge{"connect", "channels and routes"})},
	{dir: "comm", pure: true, idea: "the communicator wires the pure stages and decides nothing",
		may: with(edge{"topo", ""}, edge{"topo/fabric", ""}, edge{"topo/xml", "graph.xml text of the decision document"}, edge{"search", ""}, edge{"connect", ""}, edge{"tuning", ""}, edge{"plan", ""})},
	{dir: "trace", idea: "a trace knows nothing of collectives: names and args are strings and integers",
		may: leaves[:1]},
	{dir: "trace/nccltrace", idea: "the events of NCCL's profiler, named once for simulator and hardware",
		may: with(edge{"trace", "what it builds"}, edge{"plan", "ops are what it names"}, edge{"connect", "routes are what it names"})},
	{dir: "trace/chrome", idea: "a sink knows events only", may: []edge{{"trace", "what it writes"}, {"internal/newfile", "files that appear whole"}, leaves[0]}},
	{dir: "trace/compare", idea: "a comparison reads any program's traces", may: []edge{{"trace", "what a merge writes"}, {"trace/chrome", "the reader"},
		{"trace/nccltrace", "the terms of the timing model that slices name"}, leaves[0]}},
	{dir: "trace/profile", idea: "a sink knows events only", may: []edge{{"trace", "what it writes"}, {"internal/newfile", "files that appear whole"}, leaves[0]},
		guests: []edge{{"github.com/google/pprof", "the profile's own types and checks"}}},
	{dir: "trace/validate", idea: "a check of traces knows traces only, ours or others'",
		may: []edge{{"trace", "what it checks"}, {"trace/chrome", "the format and its reader"}, leaves[0]}},
	{dir: "exec", idea: "the seam between plan and whoever runs it",
		may: with(edge{"plan", "what is run"}, edge{"connect", "connections of the plan"}, edge{"trace", "what is told"})},
	{dir: "exec/exectest", idea: "one suite for every executor",
		may: with(edge{"exec", "what is tested"}, edge{"plan", ""}, edge{"connect", ""}, edge{"trace", ""})},
	{dir: "sim", pure: true, idea: "the simulator runs a plan: it never asks search, tuning, comm or real",
		may: with(edge{"exec", "the seam it fills"}, edge{"plan", "what it runs"}, edge{"connect", "routes"}, edge{"trace", "what it tells"},
			edge{"trace/nccltrace", "NCCL's event names"}, edge{"topo", "links"}, edge{"topo/fabric", "the network"})},
	{dir: "calibrate", pure: true, idea: "calibration turns measured times into a machine class; who measured them is not its business",
		may: with(edge{"sim", "what is fitted"}, edge{"comm", "what NCCL decides for a measured operation"}, edge{"plan", "what is simulated"},
			edge{"topo", ""}, edge{"topo/fabric", ""}, edge{"trace", "the sink that discards"}, edge{"report/nccltests", "the tables it reads"}),
		guests: []edge{{"gonum.org/v1/gonum", "optimisation and linear algebra"}}},
	{dir: "real", idea: "hardware runs a plan: it never asks search, tuning, comm or sim",
		may: with(edge{"exec", "the seam it fills"}, edge{"plan", "what it runs"}, edge{"connect", "routes"}, edge{"trace", "what it tells"},
			edge{"trace/nccltrace", "NCCL's event names"}, edge{"topo", "devices"}, edge{"topo/fabric", "the network"},
			edge{"config/netcfg", "the settings of connections"}),
		guests: []edge{{"github.com/ebitengine/purego", "libcuda, libnccl and libibverbs opened at run time"}, {"golang.org/x/sys", "system calls"}}},
	{dir: "config", idea: "flags, environment and files become Params, for any system; it decides nothing and knows no hardware",
		may: with(edge{"comm", "the Params of a communicator"}, edge{"config/netcfg", "the settings of connections that it fills"},
			edge{"connect", "its Params"}, edge{"plan", "its Params"}, edge{"search", "its Params"}, edge{"topo", "its Params and the names of levels"},
			edge{"tuning", "its Params"})},
	{dir: "config/netcfg", pure: true, idea: "settings of connections are values; who reads and who uses them is not their business",
		may: leaves[:1]},
	{dir: "explain", pure: true, idea: "an explanation reads decisions and makes none",
		may: with(edge{"comm", ""}, edge{"topo", ""}, edge{"topo/fabric", ""}, edge{"search", ""}, edge{"connect", ""}, edge{"tuning", ""}, edge{"plan", ""})},
	{dir: "report", idea: "reports read results, traces and decisions",
		may: with(edge{"exec", ""}, edge{"trace", ""}, edge{"trace/nccltrace", "the names of processes"}, edge{"search", ""}, edge{"connect", ""}, edge{"tuning", ""}, edge{"topo", ""}, edge{"topo/fabric", ""})},
	{dir: "report/nccltests", pure: true, idea: "nccl-tests' table and JSON are text of numbers; what they are of is others' business"},
	{dir: "cmd", idea: "parse, call, print", may: []edge{{"*", "the only main"}},
		guests: []edge{{"github.com/spf13/cobra", "commands"}, {"github.com/spf13/pflag", "flags"}}},
	{dir: "testdata", idea: "data"},
	{dir: "internal/newfile", idea: "bytes and a path; what they mean is others' business"},
	{dir: "internal", idea: "tests and tools", may: []edge{{"*", "tests and tools"}},
		guests: []edge{{"github.com/rogpeppe/go-internal", "test helpers"}, {"github.com/google/go-cmp", "test helpers"},
			{"gonum.org/v1/gonum", "statistics"}, {"pgregory.net/rapid", "generators for property tests"}}},
}

// impure are the packages that a pure room must not import.
var impure = []edge{
	{"os", "the operating system"}, {"net", "the network"}, {"time", "the wall clock"}, {"math/rand", "unseeded chance"},
	{"syscall", "the operating system"}, {"C", "C"}, {"unsafe", "memory layout"},
	{"gonum.org/v1/gonum/graph/simple", "random iteration order"},
}

func with(edges ...edge) []edge { return append(edges, leaves...) }

// roomOf returns the room of a package path relative to the module, or nil.
func roomOf(rel string) *room {
	var best *room
	for i := range rooms {
		if r := &rooms[i]; under(rel, r.dir) && (best == nil || len(r.dir) > len(best.dir)) {
			best = r
		}
	}
	return best
}

// under reports whether path is dir or below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
