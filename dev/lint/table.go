package lint

import "strings"

// module is the import path that rooms are relative to.
const module = "github.com/simccl/simccl"

// edge is a package or module by path prefix, with a reason.
type edge struct{ to, why string }

// room is a folder of the top level with all packages below it. A room imports rooms of
// lower floors only, so that no import leads up and none in a circle:
//
//	sim (11) ──▶ plan (8) ──▶ connect (7) ──▶ search (6) ──▶ topo (5) ──▶ rules (4)
type room struct {
	dir   string
	floor int
	holds string
	not   []edge // lower rooms that it must not import all the same
}

// rooms is the house, from the ground.
var rooms = []room{
	{dir: "units", floor: 1, holds: "quantities"},
	{dir: "internal", floor: 2, holds: "what any room may use: C's numbers, bounded reads, JSON with " +
		"places, text for terminals, atomic files, kinds of errors, workers"},
	{dir: "coll", floor: 3, holds: "names, sizes, element arithmetic and counts by pair of operations"},
	{dir: "nccltests", floor: 3, holds: "nccl-tests' table, JSON and options"},
	{dir: "trace", floor: 3, holds: "events and sinks: Chrome, Perfetto, pprof; validation, comparison"},
	{dir: "packet", floor: 3, holds: "frames through hosts and switches: RoCE, Ultra Ethernet, congestion " +
		"control, ns-3's and htsim's files"},
	{dir: "rules", floor: 4, holds: "a release of NCCL as a value, and the release that a name means"},
	{dir: "topo", floor: 5,
		holds: "declarations, systems, fabrics, machines by name; files read, shown and checked"},
	{dir: "search", floor: 6, holds: "the graphs of one host, and their file"},
	{dir: "workload", floor: 6,
		holds: "programs of ranks: readers, reconstruction, generators, variants; what a file is",
		not:   []edge{{"rules", "a recorded job is of no release"}}},
	{dir: "connect", floor: 7, holds: "the graphs of all hosts joined to rings, trees, heads and routes",
		not: []edge{{"workload", "channels exist before any call"}}},
	{dir: "tuning", floor: 7, holds: "cost model and choice; tuner files, network plugins",
		not: []edge{{"workload", "the choice depends on one call"}}},
	{dir: "plan", floor: 8, holds: "programs of ranks: schedules, proof, launch, symmetric kernels, MSCCL",
		not: []edge{{"topo", "a plan knows no topology: operations have bytes and dependencies"},
			{"search", "channels are enough"},
			{"tuning", "the choice is passed in"}, {"workload", "a plan is of one kernel"}}},
	{dir: "comm", floor: 9, holds: "a communicator: the stages from topology to plan, wired",
		not: []edge{{"workload", "a communicator knows no job"}}},
	{dir: "exec", floor: 9,
		holds: "the interface between a plan and its executors, and the suite that all executors pass",
		not:   []edge{{"search", "an executor runs plans"}, {"tuning", "an executor runs plans"}}},
	{dir: "config", floor: 10, holds: "settings, their origin and their effect"},
	{dir: "explain", floor: 10, holds: "the reasons of a choice"},
	{dir: "sim", floor: 11, holds: "the simulator: engine, proxies, links, GPUs, folding, traces",
		not: []edge{{"search", "the simulator runs a plan"}, {"tuning", "the simulator runs a plan"},
			{"comm", "the simulator runs a plan"}, {"explain", "it decides nothing"}}},
	{dir: "real", floor: 11, holds: "real runs: bench, CUDA, NCCL, verbs, sockets",
		not: []edge{{"search", "hardware runs a plan"}, {"tuning", "hardware runs a plan"},
			{"explain", "it decides nothing"}}},
	{dir: "job", floor: 12, holds: "several communicators, streams and computation on one clock; timelines",
		not: []edge{{"real", "jobs are simulated"}}},
	{dir: "scenario", floor: 13, holds: "a run as a value",
		not: []edge{{"real", "a run without hardware"}}},
	{dir: "intercept", floor: 13, holds: "programs intercepted: shim (C) and collector",
		not: []edge{{"real", "calls are answered without hardware"}, {"sim", "job computes times"}}},
	{dir: ".", floor: 14, holds: "the library's entry: it only calls scenario"},
	{dir: "study", floor: 14,
		holds: "many runs, one question: sweep, replay, overlap, calibrate, advise, diff, check, logs, " +
			"packet runs"},
	{dir: "app", floor: 15, holds: "the program: commands, reports, web page, streams and files"},
	{dir: "dev", floor: 15, holds: "what only developers run: lint, generators, parity, accuracy"},
	{dir: "examples", floor: 15, holds: "programs that use the library"},
	{dir: "cmd", floor: 16, holds: "main"},
}

// worldly are the packages that meet the world: files, network, clock, processes. All
// others are pure: their results are functions of their arguments.
var worldly = []string{
	"app", "cmd", "dev", "examples", "intercept", "real", "exec", "trace", "topo/detect",
	"internal/interrupt", "internal/newfile", "internal/require", "internal/terminal",
	"study/check", "study/grouplog", "study/logcheck", "study/packetrun", "study/sweep",
}

// pureInside are pure packages below worldly ones.
var pureInside = []string{
	"trace/chrome", "trace/perfetto", "trace/internal", "trace/profile", "study/sweep/table", "app/report",
}

// modules are third-party modules, each with the packages that may import it and what for.
var modules = []struct {
	path string
	by   []edge
}{
	{"codeberg.org/go-pdf/fpdf", []edge{{"app/report/chart", "figures as PDF"}}},
	{"github.com/beevik/etree", []edge{{"topo/xml", "keeps order and unknown attributes on rewrite"}}},
	{"github.com/NVIDIA/go-nvml", []edge{{"topo/detect", "NVML with cgo"}}},
	{"github.com/ebitengine/purego", []edge{{"topo/detect", "NVML without cgo"},
		{"real/internal", "libcuda, libnccl and libibverbs opened at run time"},
		{"real/realtest", "a CUDA driver of tests"}}},
	{"github.com/klauspost/compress", []edge{{"internal/envelope", "files of zstd"},
		{"trace/chrome", "traces are written so"}, {"real/internal", "the kernels in the binary"}}},
	{"github.com/google/pprof", []edge{{"trace/profile", "the profile's own types and checks"},
		{"dev/cmd/hotprofile", "profiles are added up"}}},
	{"gonum.org/v1/gonum", []edge{{"study/calibrate", "optimisation and linear algebra"}}},
	{"github.com/gtank/ristretto255", []edge{{"real/internal/psk", "the prime-order group of CPace"}}},
	{"github.com/spf13/cobra", []edge{{"app/cli", "commands"}}},
	{"github.com/spf13/pflag", []edge{{"app/cli", "flags"}}},
	{"golang.org/x/tools", []edge{{"dev", "packages with their syntax and types"}}},
	{"golang.org/x/term", []edge{{"internal/terminal", "the width of a terminal"}}},
	{"go.yaml.in/yaml/v3", []edge{{"study/sweep", "specifications"}, {"topo/site", "Slurm's topology.yaml"}}},
	{"modernc.org/sqlite", []edge{{"study/sweep/sqlite", "the database"}}},
	{"github.com/rogpeppe/go-internal", []edge{{"dev", "test helpers"}}},
	{"github.com/cockroachdb/datadriven", []edge{{"dev", "test helpers"}}},
	{"pgregory.net/rapid", []edge{{"dev", "random communicators and requests"}}},
}

// impure are the packages that a pure package must not import.
var impure = []edge{
	{"os", "the operating system"}, {"net", "the network"}, {"time", "the wall clock"},
	{"math/rand", "unseeded chance"},
	{"syscall", "the operating system"}, {"C", "C"}, {"unsafe", "memory layout"},
	{"gonum.org/v1/gonum/graph/simple", "random iteration order"},
}

// roomOf returns the room of a package path relative to the module, or nil.
func roomOf(rel string) *room { return roomIn(rooms, rel) }

// roomIn is roomOf for any table.
func roomIn(rooms []room, rel string) *room {
	for i := range rooms {
		if under(rel, rooms[i].dir) {
			return &rooms[i]
		}
	}
	return nil
}

// isPure reports whether a package's results must be functions of its arguments.
func isPure(rel string) bool {
	in := func(list []string) bool {
		for _, dir := range list {
			if under(rel, dir) {
				return true
			}
		}
		return false
	}
	return in(pureInside) || !in(worldly)
}

// under reports whether path is dir or below it.
func under(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
