package house

import "strings"

// module is the import path that rooms are relative to.
const module = "github.com/simccl/simccl"

// edge is a permission to import, with the reason it was given.
type edge struct{ to, why string }

// room is a package, or a tree of them, with what it may know.
type room struct {
	dir     string
	idea    string // what it must not know, printed with a forbidden import
	pure    bool   // a function of its arguments: no system, clock or chance
	may     []edge // our packages
	modules []edge // third-party packages, by path prefix
}

// Permissions that most rooms need. Each is listed only where it is used, as all
// others do: CheckTable reports what no import needs.
var (
	quantities = edge{"units", "quantities"}
	vocabulary = edge{"coll", "names of operations, algorithms, protocols and types"}
	release    = edge{"internal/rules", "constants and switches of the release"}
)

// with is a list of permissions that ends with units and coll.
func with(edges ...edge) []edge { return append(edges, quantities, vocabulary) }

// rooms is HOUSE's table: the permitted imports. A package belongs to the
// room with the longest matching directory.
var rooms = []room{
	{dir: ".", pure: true, idea: "the root is the library's door: it only calls", may: []edge{{"scenario", "what it calls"}}},
	{dir: "units", pure: true, idea: "it is a leaf"},
	{dir: "internal/jsonfile", pure: true, idea: "JSON with positions, apart from what it says", may: []edge{{"internal/termtext", "names that cannot be printed are refused"}}},
	{dir: "internal/num", pure: true, idea: "arithmetic of element types, apart from who sums", may: []edge{vocabulary}},
	{dir: "coll", pure: true, idea: "it is a leaf above units", may: []edge{quantities}},
	{dir: "internal/rules", pure: true, idea: "the rules of a release are values; they know no topology, graph or operation", may: with()},
	{dir: "internal/release", pure: true, idea: "which release a text or a library names, apart from who asks and what its rules are",
		may: []edge{{"internal/rules", "releases and their rules"}}},
	{dir: "internal/cnum", pure: true, idea: "numbers as C reads them, apart from what they count"},
	{dir: "internal/iflist", pure: true, idea: "lists of devices, apart from who has devices", may: []edge{{"internal/cnum", "ports in a list"}}},
	{dir: "topo/decl", pure: true, idea: "a declaration knows no XML, and not what is made of it", may: []edge{{"internal/cnum", "numbers in attributes"}}},
	{dir: "topo/internal/pcie", pure: true, idea: "rates of PCI Express, apart from who is linked", may: []edge{quantities}},
	{dir: "topo/internal/view", pure: true, idea: "what the ranks of a host see is a tree; it knows no nodes, links or paths",
		may: []edge{release, {"topo/decl", "the tree"}, {"internal/iflist", "NCCL_IB_HCA and NCCL_NET_FORCE_MERGE"}, {"internal/cnum", "numbers in attributes"},
			{"topo/internal/pcie", "the class of a switch's port"}, quantities}},
	{dir: "topo", pure: true, idea: "a topology knows no XML and no operating system",
		may: []edge{release, {"topo/decl", "what is declared"}, {"topo/internal/view", "what the ranks of a host see of it"}, {"topo/internal/pcie", "rates of links"},
			{"internal/cnum", "numbers in attributes and settings"}, {"internal/iflist", "entries that match no device"},
			{"internal/termtext", "names of devices are printed everywhere"}, quantities}},
	{dir: "topo/fabric", pure: true, idea: "the network joins hosts; it knows nothing of what they decide",
		may: []edge{{"internal/jsonfile", "networks in files"}, {"topo", "hosts are Systems"}, {"topo/decl", "the hosts of an NVLink domain"},
			{"internal/termtext", "words of a file in its errors"}, quantities}},
	{dir: "topo/lint", pure: true, idea: "advice on a topology needs the topology alone",
		may: []edge{{"topo", "the topology that is checked"}, {"topo/decl", "places of its elements"}, {"topo/internal/pcie", "rates of links"},
			{"internal/cnum", "bus ids"}, {"internal/termtext", "words of a file in its findings"}}},
	{dir: "topo/builtin", pure: true, idea: "bytes of topology files by name, apart from what they say"},
	{dir: "topo/xml", pure: true, idea: "a codec knows files' text, not what is decided from it",
		may: []edge{release, {"topo", "the Spec it reads and writes"}, {"topo/decl", "elements and their places"}, {"internal/cnum", "numbers in attributes"},
			{"search", "the graphs it reads and writes"}, {"internal/termtext", "words of a file in its errors"}, quantities},
		modules: []edge{{"github.com/beevik/etree", "keeps order and unknown attributes on rewrite"}}},
	{dir: "topo/detect", idea: "live detection yields a Spec and decides nothing",
		may:     []edge{{"topo", "the Spec it yields"}, {"topo/decl", "its attributes"}, {"internal/cnum", "numbers in sysfs"}, {"internal/iflist", "NCCL_IB_HCA and NCCL_SOCKET_IFNAME"}},
		modules: []edge{{"github.com/NVIDIA/go-nvml", "NVML with cgo"}, {"github.com/ebitengine/purego", "NVML without cgo"}}},
	{dir: "internal/topodoc", pure: true, idea: "a System as text, apart from what is decided from it", may: []edge{{"topo", "the System"}}},
	{dir: "search", pure: true, idea: "a search knows no rank beyond its host and no message size",
		may: []edge{release, {"topo", "the System it searches"}, quantities}},
	{dir: "internal/connect", pure: true, idea: "connecting ranks needs no bandwidth table",
		may: with(release, edge{"topo", "nodes of a route"}, edge{"search", "the graphs it joins"})},
	{dir: "tuning", pure: true, idea: "the tuner knows no op",
		may: with(release, edge{"topo", "link and path kinds"}, edge{"search", "the graphs it prices"})},
	{dir: "plan", pure: true, idea: "a plan knows no topology and no time: ops have bytes and dependencies",
		may: with(edge{"internal/connect", "channels and routes"})},
	{dir: "plan/build", pure: true, idea: "NCCL's schedules come from the request and the channels alone; an executor never needs them",
		may: with(edge{"plan", "what it makes"}, edge{"internal/connect", "channels and routes"})},
	{dir: "plan/check", pure: true, idea: "a proof trusts no schedule: it reads the plan alone",
		may: with(edge{"plan", "what it proves and executes"}, edge{"internal/connect", "kinds of connections"})},
	{dir: "plan/export", pure: true, idea: "text of a plan is a function of the plan",
		may: []edge{{"plan", "what it writes"}, {"internal/connect", "routes of connections"}, quantities}},
	{dir: "comm", pure: true, idea: "the communicator wires the pure stages and decides nothing",
		may: []edge{vocabulary, release, {"topo", "the Systems of its nodes"}, {"topo/fabric", "the cluster it is made of"},
			{"search", "the stage it runs first: the graphs of each node"},
			{"internal/connect", "the stage after it: channels and routes over all ranks"}, {"tuning", "the cost model that makes the choice"},
			{"plan", "requests and plans of a choice"}, {"plan/build", "NCCL's schedule of what was chosen"}}},
	{dir: "internal/logcheck", idea: "a log is compared with what is decided, apart from files and flags",
		may: []edge{vocabulary, release, {"scenario", "the machine of a log"}, {"config", "the settings of a log"}, {"comm", "what is decided"}, {"internal/ncclog", "lines, read and written"}, {"internal/cireport", "JUnit and annotations"},
			{"internal/connect", "transports of connections"}, {"internal/release", "the nearest release"}, {"internal/cnum", "bus ids"}, {"plan/build", "splits over channels"},
			{"topo", "kinds of CPUs"}, {"topo/decl", "the topology that a print declares"}, {"topo/xml", "its text"}}},
	{dir: "internal/decision", pure: true, idea: "the decision document is text of a communicator",
		may: with(edge{"comm", "what was decided"}, edge{"topo", "links and kinds of nodes"}, edge{"internal/topodoc", "sections system and paths"}, edge{"topo/fabric", "the cluster"},
			edge{"topo/xml", "graph.xml text"}, edge{"search", "graphs"}, edge{"internal/connect", "rings and trees"}, edge{"tuning", "the table of choices"},
			edge{"plan", "requests"}, edge{"plan/build", "splits over channels"})},
	{dir: "internal/ncclog", pure: true, idea: "NCCL's log lines are text of a communicator",
<<<<<<< HEAD:internal/house/table.go
		may: []edge{vocabulary, release, {"comm", "what was decided"}, {"search", "graphs"}, {"internal/connect", "rings and trees"}, {"tuning", "the table"},
=======
		may: []edge{vocabulary, {"internal/rules", "the text of the release"}, {"comm", "what was decided"}, {"search", "graphs"}, {"internal/connect", "rings and trees"}, {"tuning", "the table"},
>>>>>>> pins:internal/lint/table.go
			{"plan", "requests"}, {"topo", "devices"}, {"internal/topodoc", "the printed system"}}},
	{dir: "trace", idea: "a trace knows nothing of collectives: names and args are strings and integers",
		may: []edge{quantities}},
	{dir: "internal/nccltrace", idea: "the events of NCCL's profiler, named once for simulator and hardware",
		may: []edge{{"trace", "what it builds"}, quantities}},
	{dir: "trace/chrome/internal/wire", pure: true, idea: "protobuf's encoding and numbers of fields, apart from what they say"},
	{dir: "trace/chrome/internal/pack", pure: true, idea: "events in few bytes, in order, apart from the file they become", may: []edge{{"trace", "the events"}}},
	{dir: "trace/chrome", pure: true, idea: "a sink knows events only", may: []edge{{"trace", "what it writes"},
		{"trace/chrome/internal/pack", "events until they are written"}, {"trace/chrome/internal/wire", "Perfetto's format"},
		{"internal/termtext", "words of a file in its errors"}, quantities}},
	{dir: "internal/compare", idea: "a comparison reads any program's traces", may: []edge{{"trace", "what a merge writes"}, {"trace/chrome", "the reader"},
		{"internal/nccltrace", "the terms of the timing model that slices name"}, {"internal/termtext", "names of other programs, in text"}, quantities}},
	{dir: "trace/profile", pure: true, idea: "a sink knows events only", may: []edge{{"trace", "what it writes"}, quantities},
		modules: []edge{{"github.com/google/pprof", "the profile's own types and checks"}}},
	{dir: "trace/validate", idea: "a check of traces knows traces only, ours or others'",
		may: []edge{{"trace", "what it checks"}, {"trace/chrome", "the format and its reader"}, {"internal/termtext", "names of other programs, in text"}, quantities}},
	{dir: "exec", idea: "the seam between a plan and its executors",
		may: []edge{{"workload", "what is run"}, {"plan", "how each call of it moves data"}, {"trace", "the sink that a run writes to"}, quantities}},
	{dir: "internal/exectest", idea: "one suite for every executor",
		may: with(edge{"internal/num", "reference sums"}, release, edge{"exec", "what is tested"}, edge{"plan", "the plans that are run, and their reference"},
			edge{"plan/build", "the plans to run"}, edge{"plan/check", "runs a plan on real bytes"}, edge{"plan/export", "broken plans, and the messages that a trace must show"},
			edge{"internal/connect", "the communicators that plans are made for"}, edge{"trace", "the events that a run has to emit"})},
	{dir: "sim", pure: true, idea: "the simulator runs a plan: it never calls search, tuning, comm or real",
		may: with(edge{"exec", "the seam it fills"}, edge{"plan", "what it runs"}, edge{"internal/connect", "the communicator"}, edge{"trace", "the sink of a run"},
			edge{"internal/nccltrace", "what a trace shows"}, edge{"topo", "the Systems of nodes"}, edge{"topo/fabric", "the network"},
			edge{"sim/gpu", "the machine class"}, edge{"sim/param", "settings and faults"}, edge{"sim/wire", "the model of links"},
			edge{"sim/internal/engine", "runs the plan"}, edge{"sim/internal/fold", "lays out representatives"}, edge{"sim/internal/host", "settings and errors of the network"},
			edge{"sim/internal/route", "errors of routes"}, edge{"sim/internal/tap", "writes the trace"})},
	{dir: "sim/gpu", pure: true, idea: "a machine class is numbers and formulas; it moves nothing",
		may: []edge{vocabulary, {"internal/jsonfile", "classes in files"}}},
	{dir: "sim/param", pure: true, idea: "what a user sets is data", may: []edge{quantities}},
	{dir: "sim/internal/event", pure: true, idea: "the clock knows no event's meaning", may: []edge{quantities}},
	{dir: "sim/wire", pure: true, idea: "a model of links knows flows and links, nothing of ranks or plans", may: []edge{quantities}},
	{dir: "sim/internal/chance", pure: true, idea: "a variate is a function of its keys"},
	{dir: "sim/internal/route", pure: true, idea: "routes are found without time or messages",
		may: []edge{{"plan", "connections"}, {"internal/connect", "transports"}, {"topo", "links of nodes"}, {"sim/gpu", "rates of links"}, {"sim/wire", "where links are declared"}, quantities}},
	{dir: "sim/internal/host", pure: true, idea: "proxies, NICs and transports know no thread group, no folding and no trace",
		may: with(edge{"exec", "loads of links, typed errors"}, edge{"plan", "connections"}, edge{"internal/connect", "transports"}, edge{"topo", "NICs"}, edge{"topo/fabric", "cables and their routes"},
			edge{"sim/internal/event", "the clock"}, edge{"sim/gpu", "costs of NICs"}, edge{"sim/param", "settings and faults"}, edge{"sim/wire", "flows of messages"},
			edge{"sim/internal/chance", "lost packets"}, edge{"sim/internal/route", "routes to NICs"})},
	{dir: "sim/internal/engine", pure: true, idea: "the engine knows folding and tracing as interfaces only",
		may: with(edge{"exec", "typed errors"}, edge{"plan", "programs and ops"}, edge{"internal/connect", "transports"}, edge{"topo", "the Systems of nodes"},
			edge{"sim/internal/event", "the clock"}, edge{"sim/gpu", "costs of kernels"}, edge{"sim/wire", "flows of pieces"}, edge{"sim/internal/chance", "jitter"},
			edge{"sim/internal/route", "routes between GPUs"}, edge{"sim/internal/host", "the network part of a run"})},
	{dir: "sim/internal/fold", pure: true, idea: "folding lays out an engine and does not run it; it knows no trace",
		may: with(edge{"exec", "how a result came about"}, edge{"plan", "programs that may be equivalent"}, edge{"internal/connect", "rings and transports"}, edge{"topo", "the Systems of nodes"},
			edge{"topo/fabric", "cables that traffic shares"}, edge{"sim/param", "faults"}, edge{"sim/wire", "links that are crossed equally"}, edge{"sim/internal/chance", "hashes"},
			edge{"sim/internal/route", "routes of real traffic"}, edge{"sim/internal/host", "messages of real traffic"}, edge{"sim/internal/engine", "what it lays out"})},
	{dir: "sim/internal/tap", pure: true, idea: "the trace reads the engine and changes nothing",
		may: with(edge{"exec", "the result of a run"}, edge{"plan", "connections and ports"}, edge{"internal/connect", "transports"}, edge{"topo", "names of devices"},
			edge{"trace", "the events it emits"}, edge{"internal/nccltrace", "NCCL's event names"}, edge{"sim/param", "bytes on control sockets"}, edge{"sim/wire", "rates on links"},
			edge{"sim/internal/host", "steps and reductions"}, edge{"sim/internal/engine", "what it observes"})},
	{dir: "internal/calibrate", pure: true, idea: "calibration derives from measured times a machine class; it does not measure",
		may: with(edge{"scenario", "the machine that was measured"}, edge{"config", "the settings of a measured file"}, edge{"sim", "what is fitted"}, edge{"sim/gpu", "machine classes"},
			edge{"comm", "operations that were measured"}, edge{"plan", "what is simulated"}, edge{"exec", "the job it runs"}, edge{"trace", "the sink that discards"},
			edge{"internal/report/nccltests", "the tables it reads"}, edge{"internal/bounded", "measured files are read up to a limit"}, edge{"internal/termtext", "text of a file in its errors"}, edge{"internal/fail", "operations that were not measured"}),
		modules: []edge{{"gonum.org/v1/gonum", "optimisation and linear algebra"}}},
	{dir: "real", idea: "the door to hardware: what is common to its rooms",
		may: []edge{{"real/internal", "errors and devices it classifies and lists"}, {"real/team", "its refusals are faults"}}},
	{dir: "real/internal", idea: "hardware runs a plan: it never calls search, tuning, comm or sim",
		may: with(edge{"exec", "the seam it fills"}, edge{"plan", "what it runs"}, edge{"plan/check", "proves a plan before GPUs or sockets run it"}, edge{"internal/connect", "routes"}, edge{"trace", "the events it emits"},
			edge{"internal/nccltrace", "NCCL's event names"}, edge{"internal/iflist", "NCCL_IB_HCA and NCCL_SOCKET_IFNAME"},
			edge{"config/netcfg", "the settings of connections"}, edge{"real/internal/psk", "channels between ranks"}),
		modules: []edge{{"github.com/ebitengine/purego", "libcuda, libnccl and libibverbs opened at run time"}}},
	{dir: "real/internal/psk", idea: "a channel proves a secret and carries bytes, apart from what they mean",
		modules: []edge{{"github.com/gtank/ristretto255", "the prime-order group of CPace"}}},
	{dir: "real/team", idea: "the processes of a run meet, apart from what they run",
		may: []edge{{"real/internal", "bootstrap, PMI and interfaces"}, {"config", "what launchers say of a process"}}},
	{dir: "real/bench", idea: "a benchmark measures plans and compares with predictions that others make: it never calls search, tuning, comm or sim",
		may: with(edge{"internal/tracefile", "traces in files"}, edge{"real/internal", "GPUs, and CPUs over nets"}, edge{"real/team", "the processes"}, edge{"exec", "its errors"}, edge{"plan", "what is run"},
			edge{"topo", "nets of a host"}, edge{"topo/fabric", "where ranks and NICs are"}, edge{"trace", "the sink that discards"},
			edge{"internal/nccltrace", "how deep a trace goes"}, edge{"trace/chrome", "traces of ranks"}, edge{"config/netcfg", "the settings of connections"},
			edge{"internal/report/nccltests", "rows and summaries"}, edge{"internal/newfile", "files that appear whole"},
			edge{"internal/testoptions", "nccl-tests' options"}, edge{"internal/fail", "options that are refused"})},
	{dir: "real/perftest", idea: "a table of perftest, apart from terminals",
		may: []edge{{"real/internal", "the ports"}, {"real/team", "its refusals"}, {"config/netcfg", "the settings of ports"},
			{"internal/fail", "options that are refused"}, quantities}},
	{dir: "real/measure", idea: "measured times become files, apart from what is fitted to them",
		may: with(edge{"real/internal", "the GPUs"}, edge{"real/team", "the processes"}, edge{"real/bench", "the backend"},
			edge{"internal/report/nccltests", "the files it writes"}, edge{"internal/newfile", "files that appear whole"})},
	{dir: "real/realtest", idea: "what tests of commands need of hardware",
		may: []edge{{"real/internal", "the hardware"}, {"internal", "tests that skip"}, {"exec", "what is absent"}, {"config/netcfg", "settings of ports"}}},
	{dir: "config", pure: true, idea: "flags, environment and files become Params, for any system; it decides nothing and knows no hardware",
		may: with(release, edge{"comm", "the Params of a communicator"}, edge{"config/netcfg", "the settings of connections that it fills"},
			edge{"internal/connect", "its Params"}, edge{"plan", "its Params"}, edge{"search", "its Params"}, edge{"topo", "its Params and the names of levels"},
			edge{"tuning", "its Params"}, edge{"internal/termtext", "values of a file in warnings"})},
	{dir: "config/netcfg", pure: true, idea: "settings of connections are values, apart from what reads and what uses them",
		may: []edge{quantities}},
	{dir: "explain", pure: true, idea: "an explanation reads decisions and makes none",
		may: with(edge{"comm", "the communicator it explains"}, edge{"topo", "the links and verdicts that reasons name"},
			edge{"search", "the graphs, and the links that limit them"}, edge{"tuning", "choices, rivals and the reasons against them"},
			edge{"plan", "requests, and the parts of a split"},
			edge{"plan/build", "how a choice is split over channels"})},
	{dir: "internal/diff", pure: true, idea: "a comparison has two Specs, apart from flags",
		may: []edge{{"scenario", "the runs it compares"}, {"internal/release", "versions of NCCL as sides"}, {"explain", "the decisions it compares"}, {"config", "the settings that differ"},
			{"internal/report/topology", "how topology files differ"}, {"trace", "the sink that discards"}, {"internal/nccltrace", "what a trace shows: nothing"}, vocabulary}},
	{dir: "internal/report", idea: "reports read results, traces and decisions",
		may: []edge{{"internal/connect", "the rings and trees it draws"}, {"topo", "the machine it draws"}, {"topo/fabric", "the cluster it draws"}}},
	{dir: "internal/report/page", idea: "a page draws a run and a machine, apart from flags",
		may: with(edge{"scenario", "the run it draws"}, edge{"config", "the settings it lists"}, edge{"internal/report/nccltests", "measured tables"},
			edge{"internal/report/topology", "the path matrix"}, edge{"internal/fail", "results that cannot be read"}, edge{"topo/lint", "the warnings it lists"},
			edge{"exec", "loads of links"}, edge{"trace", "the events of a timeline"}, edge{"internal/nccltrace", "the names of processes"},
			edge{"search", "the graphs it draws"}, edge{"topo", "the machine it draws"})},
	{dir: "internal/report/topology", pure: true, idea: "a machine as text, JSON and drawing", may: []edge{{"topo", "the machine"}, {"internal/topodoc", "its sections and lines"}, {"internal/cnum", "bus ids"}}},
	{dir: "internal/report/sweep", pure: true, idea: "a table renders a Result, apart from how it came about",
		may: []edge{{"scenario", "the rows"}, {"internal/report/nccltests", "the table's form"}}},
	{dir: "internal/report/nccltests", pure: true, idea: "nccl-tests' table and JSON are text of numbers, apart from what was measured",
		may: []edge{{"internal/termtext", "text of a file in its errors"}, {"internal/fail", "bandwidth below what is wanted"}}},
	{dir: "workload", pure: true, idea: "what ranks do is data; it names no machine, plan or executor", may: with()},
	{dir: "scenario", pure: true, idea: "a run is data, apart from flags, terminals, hardware and how a result is shown",
		may: with(edge{"internal/jsonfile", "scenario files"}, edge{"internal/release", "the rules of the release that is named"}, edge{"config", "NCCL's settings become the stages' Params"}, edge{"topo/xml", "topology files"}, edge{"topo", "a machine's Spec and System"},
			edge{"topo/decl", "NVLink domains of equal hosts"}, edge{"internal/cnum", "bus ids"}, edge{"topo/fabric", "nodes and the network between them"}, edge{"topo/builtin", "the built-in machine"}, edge{"search", "graphs of NCCL_GRAPH_FILE"},
			edge{"comm", "the communicator"}, edge{"tuning", "the choice"}, edge{"plan", "what is simulated"}, edge{"plan/check", "what a small plan is proven by"}, edge{"exec", "how it is run"},
			edge{"sim", "the simulator"}, edge{"sim/gpu", "machine classes"}, edge{"trace", "sinks"}, edge{"internal/nccltrace", "what a trace shows"},
			edge{"trace/chrome", "the trace it writes"}, edge{"trace/profile", "the profile it writes"}, edge{"plan/export", "the list of operations it writes"},
			edge{"internal/fail", "lines that name nodes and operations"}, edge{"topo/lint", "faults of topology files"}, edge{"internal/bounded", "files are read up to a limit"})},
	{dir: "cmd", idea: "parse, call, print: what is decided, simulated, measured or drawn is elsewhere",
		may: with(edge{"scenario", "a run"}, edge{"internal/release", "a library names one"}, edge{"explain", "reasons"}, edge{"internal/diff", "comparisons"}, edge{"internal/calibrate", "machine classes"},
			edge{"comm", "one operation, and texts of decisions"}, edge{"tuning", "the error of a choice that cannot be made"}, edge{"plan", "errors of plans"},
			edge{"plan/check", "plan --check"}, edge{"plan/export", "plan's formats"},
			edge{"sim/gpu", "the class of a calibration"}, edge{"config", "env, and where settings come from"}, edge{"internal/rules", "the release it names"},
			edge{"topo", "files that are shown"}, edge{"topo/xml", "files that are converted"}, edge{"topo/lint", "findings"}, edge{"topo/fabric", "networks that are laid out"},
			edge{"internal/report", "rings as text"}, edge{"internal/report/topology", "machines as text"}, edge{"internal/report/page", "the page"},
			edge{"internal/report/sweep", "the table of a run"}, edge{"internal/report/nccltests", "tables"}, edge{"real/team", "processes of a bench"}, edge{"real/bench", "benches"}, edge{"real/measure", "calibration"}, edge{"real/perftest", "verbs tests"},
			edge{"trace/chrome", "traces that are written"},
			edge{"internal/nccltrace", "words of options"}, edge{"internal/newfile", "files that appear whole"},
			edge{"internal/decision", "the decision document"}, edge{"internal/ncclog", "NCCL's log"}, edge{"internal/fail", "errors by kind"}, edge{"internal/check", "stored decisions"}, edge{"internal/logcheck", "logs that are compared"}, edge{"internal/process", "streams, files and environment"}, edge{"internal/benchrun", "benches"}, edge{"internal/status", "exit statuses"}, edge{"internal/thishost", "this machine"}, edge{"internal/shellwords", "options within options"},
			edge{"internal/interrupt", "signals"}, edge{"internal/testoptions", "nccl-tests' options"}, edge{"internal/traceview", "trace files"}, edge{"internal/predict", "what a bench is compared with"}),
		modules: []edge{{"github.com/spf13/cobra", "commands"}, {"github.com/spf13/pflag", "flags"}}},
	{dir: "internal/fail", pure: true, idea: "an error has a kind and a text, apart from exit statuses and flags"},
	{dir: "internal/interrupt", idea: "a signal ends a command, apart from what the command does", may: []edge{{"internal/newfile", "files that must not appear"}}},
	{dir: "internal/testoptions", pure: true, idea: "nccl-tests' options are values, apart from command lines", may: []edge{{"internal/fail", "options that are refused"}}},
	{dir: "internal/traceview", idea: "trace files are opened here, apart from what they mean",
		may: []edge{{"internal/compare", "traces that are added up, compared and merged"}, {"internal/fail", "files that cannot be read"}, {"internal/tracefile", "the merged file"},
			{"trace/chrome", "its reader's errors and limits"}, {"trace/validate", "traces that are checked"}, {"units", "quantities"}}},
	{dir: "internal/predict", idea: "a prediction simulates the machine that a bench measures; it measures nothing",
		may: []edge{vocabulary, {"scenario", "the machine and its simulation"}, {"real/bench", "the model of a bench that it is"}, {"plan", "plans of NCCL's choices"},
			{"internal/report/sweep", "columns of a run"}, {"internal/report/nccltests", "devices of a bench"}, {"internal/fail", "columns that are refused"},
			{"trace", "the sink that discards"}, {"internal/nccltrace", "what a trace shows: nothing"}}},
	{dir: "internal/thishost", idea: "this machine becomes a Spec, apart from what is decided on it",
		may: []edge{{"topo", "the Spec"}, {"internal/cnum", "settings as C reads them"}, {"topo/detect", "NVML and sysfs"}, {"topo/xml", "the file that NCCL begins with, and its form"}, {"real", "RDMA devices"},
			{"internal/fail", "machines that cannot be read"}}},
	{dir: "internal/status", idea: "an exit status is a function of an error's type, apart from what is printed",
		may: []edge{vocabulary, {"internal/fail", "errors by kind"}, {"config", "errors of settings"}, {"exec", "what is absent or not built"}, {"internal/calibrate", "errors of measured times"},
			{"internal/connect", "errors of routes"}, {"plan", "errors of plans"}, {"real", "faults of hardware"}, {"scenario", "errors of Specs and files"}, {"sim", "errors of runs"},
			{"topo", "errors of nodes"}, {"topo/fabric", "networks that are parted"}, {"topo/xml", "errors of graph files"}, {"trace/chrome", "errors of traces"},
			{"tuning", "the error of a choice that cannot be made"}}},
	{dir: "internal/benchrun", idea: "a bench runs and prints its table, apart from flags",
		may: []edge{{"real/bench", "what is measured"}, {"real/team", "the ranks"}, {"internal/predict", "plans of CPUs"}, {"internal/report/nccltests", "the table"},
			{"internal/fail", "results that are wrong"}, {"trace/chrome", "the trace of a rank"}}},
	{dir: "internal/process", idea: "streams, files and environment of a process, apart from what a command does with them",
		may: []edge{{"scenario", "the Options that it fills"}, {"internal/cpuprofile", "a profile of the process"}, {"config", "where settings come from"}, {"internal/bounded", "files are read up to a limit"}, {"internal/fail", "files that cannot be read"},
			{"internal/interrupt", "signals"}, {"internal/newfile", "files that appear whole"}, {"internal/report/nccltests", "its JSON"}, {"internal/release", "versions of libraries"}, {"internal/terminal", "colours and progress"}, {"internal/termtext", "other people's text"},
			{"internal/tracefile", "temporary files of traces"}, {"topo/fabric", "the limit of networks"}, {"topo/xml", "the limit of topologies"}, {"trace/chrome", "traces that are closed"}}},
	{dir: "internal/shellwords", pure: true, idea: "words of a line, apart from what they mean"},
	{dir: "internal/cireport", pure: true, idea: "verdicts as CI servers read them, apart from what was checked"},
	{dir: "internal/check", idea: "stored decisions are compared, apart from how options become a decision",
		may: []edge{{"internal/decision", "the documents"}, {"internal/fail", "cases that fail"}, {"internal/cireport", "JUnit and annotations"},
			{"internal/shellwords", "files of options"}, {"internal/terminal", "colours of a verdict"}}},
	{dir: "internal/termtext", pure: true, idea: "text for a terminal, apart from what it says"},
	{dir: "internal/terminal", idea: "colours and progress of a terminal, apart from what is shown"},
	{dir: "internal/bounded", pure: true, idea: "bytes up to a limit, apart from what they mean"},
	{dir: "internal/tracefile", idea: "traces and profiles in files", may: []edge{{"trace/chrome", "traces"}, {"trace/profile", "profiles"}, {"internal/newfile", "files that appear whole"}}},
	{dir: "internal/cpuprofile", idea: "where this process spends its time, apart from what it does", may: []edge{{"internal/newfile", "files that appear whole"}}},
	{dir: "internal/newfile", idea: "bytes and a path, apart from what they mean"},
	{dir: "real/internal/cmd", idea: "tools that need hardware", may: []edge{{"real/internal", "the GPUs that it drives"},
		{"internal/exectest", "synthetic communicators"}, {"plan", "what it measures"}, {"plan/build", "plans of those communicators"}, vocabulary, quantities}},
	{dir: "internal", idea: "tests and tools", may: []edge{{"*", "tests and tools"}},
		modules: []edge{{"github.com/rogpeppe/go-internal", "test helpers"}, {"pgregory.net/rapid", "random communicators and requests"}}},
}

// impure are the packages that a pure room must not import.
var impure = []edge{
	{"os", "the operating system"}, {"net", "the network"}, {"time", "the wall clock"}, {"math/rand", "unseeded chance"},
	{"syscall", "the operating system"}, {"C", "C"}, {"unsafe", "memory layout"},
	{"gonum.org/v1/gonum/graph/simple", "random iteration order"},
}

// roomOf returns the room of a package path relative to the module, or nil.
func roomOf(rel string) *room { return roomIn(rooms, rel) }

// roomIn is roomOf for any table.
func roomIn(rooms []room, rel string) *room {
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
