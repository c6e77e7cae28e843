// Package inputs recognises the kind of a file by its content, independent of its name, prefixes of
// launchers, an enclosing report or compression, and lists the commands that accept it. All recognition is
// here; commands and readers use it, and name the kind when they refuse a file.
//
// What it must not know: files, what becomes of a content.
package inputs

import "slices"

// Kind is a kind of file that some command takes.
type Kind uint8

// Kinds of content. Their names and descriptions in the table below are the output of simccl identify.
const (
	Unknown Kind = iota
	// Machines.
	Topology      // NCCL's topology XML of one host
	TopologyHosts // of several hosts of one NVLink domain
	Template      // places of GPUs and NICs without <gpu>, NCCL_TOPO_FILE of a vendor
	Lstopo
	Matrix // nvidia-smi topo -m
	MachineSpec
	SystemPrint // of NCCL, within a log or alone
	// What belongs to machines.
	Graphs
	Fabric
	MachineClass
	NetworkClass
	Tuner
	Settings
	// Logs, results and runs.
	NCCLLog
	NCCLCalls // a log that has calls (subsystem COLL)
	TestTable
	TestJSON
	Scenario
	Sweep
	SweepResults
	Decision
	Overlap
	Groups
	// Jobs.
	Native
	Calls
	Kineto
	TorchET
	Chakra
	ChakraJSON
	ChakraGroups
	FlightJSON
	FlightPickle
	SimAI
	AICB
	GOAL
	GOALBinary
	Inspector
	Meta
	StepTimes
	ChromeTrace
	Perfetto
	// Schedules and networks of other simulators.
	MSCCL
	MSCCLPlus
	NS3Config
	NS3Network
	NS3Flows
	HTSimMatrix
	HTSimNetwork
	OperationTimes
	Tar
	// AMD's.
	RCCLLog
	RCCLTable
	AMDTopology
	RocmSMI
	// Known, and read by no command.
	P2PMatrix
	SmiXML
	SmiTable
	TACCL
	AstraSystem
	AstraNetwork
	SimAITable
	AIOB
	AICBModels
	Nsight
	SQLite
	HFConfig
	// Networks of a site, and hosts of a job.
	IBNetDiscover
	SlurmTopology
	SlurmYAML
	LLDP
	CableTable
	HostList
	KubernetesNodes
	ELF
	Pprof
	Zip
	numKinds
)

// row is the table's entry of a kind.
type row struct {
	name     string // word of identify
	what     string // "this is …"
	commands []string
	hint     string // advice, if no command accepts it or in addition
}

// machines are the commands that take a machine by --topo, first those that take a file as
// argument too.
var machines = []string{"topo convert", "topo show", "topo lint", "topo diff", "topo anonymize",
	"inspect --topo", "explain --topo", "run --topo",
	"tune --topo", "graph --topo", "plan --topo", "env --topo", "diff --topo", "report --topo",
	"advise --topo", "replay --topo", "check --topo"}

// jobs lists the commands that accept a job.
var jobs = []string{"replay", "workload show", "workload lint", "workload convert", "workload slice",
	"workload scale", "advise"}

var traces = []string{"trace validate", "trace stats", "trace diff", "trace merge"}

var (
	noAMD = "no command reads it; give the topology file of the AMD machine (NCCL_TOPO_DUMP_FILE of RCCL) " +
		"or its name to simccl run, explain or inspect"
	schedules = []string{"schedule check", "schedule show", "schedule convert", "run --schedule",
		"bench --schedule"}
	networks = []string{"run --fabric", "explain --fabric", "report --fabric", "diff --fabric",
		"replay --fabric", "advise --fabric", "inspect --fabric"}
	siteNetworks = []string{"topo fabric --from"}
	hostLists    = []string{"topo fabric place --hosts", "run --hosts"}
	sweeps       = []string{"sweep", "sweep plan", "sweep search", "sweep emit"}
	tables       = []string{"report --measured", "run --measured", "diagnose"}
	hangs        = slices.Concat(jobs, []string{"diagnose"})
)

// table has one row per kind.
var table = [numKinds]row{
	Unknown:  {"unknown", "of no kind that simccl knows", nil, ""},
	Topology: {"NCCL topology", "an NCCL topology file", machines, ""},
	TopologyHosts: {"NCCL topology of several hosts", "an NCCL topology file of several hosts", machines,
		""},
	Template: {"NCCL topology template",
		"a vendor's NCCL topology file, which names places of GPUs and NICs only",
		[]string{"topo convert --gpu-kind --nic-kind"}, ""},
	Lstopo: {"lstopo XML", "what lstopo --of xml wrote", machines, ""},
	Matrix: {"nvidia-smi topo -m matrix", "the matrix of nvidia-smi topo -m",
		slices.Concat(machines[:1], []string{"topo convert --nvlink"}, machines[1:]), ""},
	MachineSpec: {"machine description", "a description of a machine", slices.Concat([]string{"topo gen"},
		machines), ""},
	SystemPrint: {"NCCL system print", "NCCL's print of a machine", machines, ""},
	Settings: {"NCCL settings", "a file of NCCL's settings", []string{"env --env NCCL_CONF_FILE=FILE"},
		""},
	NCCLLog:   {"NCCL log", "a log of NCCL", []string{"check --log", "diagnose"}, ""},
	NCCLCalls: {"NCCL log of calls", "a log of NCCL with its calls", hangs, ""},
	Graphs: {"NCCL graphs", "a file of NCCL's graphs", []string{"run --env NCCL_GRAPH_FILE=FILE",
		"inspect --env NCCL_GRAPH_FILE=FILE", "explain --env NCCL_GRAPH_FILE=FILE"}, ""},
	Fabric: {"fabric", "a network between nodes", networks, ""},
	MachineClass: {"machine class", "a machine class", []string{"class show", "class diff", "class check",
		"run --machine-class"}, ""},
	NetworkClass: {"network class", "a network class", []string{"run --network-class",
		"inspect --network-class", "report --network-class"}, ""},
	Tuner: {"tuner file", "a file of NCCL's example tuner",
		[]string{"advise --tuner", "run --env NCCL_TUNER_PLUGIN=example --env NCCL_TUNER_CONFIG_FILE=FILE"},
		""},
	TestTable: {"nccl-tests table", "an nccl-tests table", tables, ""},
	TestJSON:  {"nccl-tests JSON", "nccl-tests' JSON", tables, ""},
	Scenario: {"scenario", "a scenario", []string{"run --scenario", "scenario show", "scenario check"},
		""},
	Sweep: {"sweep specification", "a specification of a sweep", sweeps, ""},
	SweepResults: {"sweep results", "results of a sweep", []string{"sweep merge (the folder)",
		"sweep show (the folder)", "sweep status (the folder)"}, ""},
	Decision: {"decision document", "a decision document, as inspect --json prints",
		[]string{"check (the folder)"}, ""},
	Overlap:    {"overlap table", "a table of measured overlaps", []string{"overlap"}, ""},
	Groups:     {"recorded groups", "recorded groups of calls", []string{"groups"}, ""},
	Native:     {"workload", "a job in simccl's text", jobs, ""},
	Calls:      {"intercept recording", "a recording of simccl intercept", jobs, ""},
	Kineto:     {"Kineto trace", "a Kineto trace", slices.Concat(hangs, traces), ""},
	TorchET:    {"PyTorch execution trace", "an execution trace of PyTorch", jobs, ""},
	Chakra:     {"Chakra trace", "a Chakra trace", jobs, ""},
	ChakraJSON: {"Chakra trace as JSON", "a Chakra trace as JSON", jobs, ""},
	ChakraGroups: {"Chakra groups", "a list of process groups of Chakra traces", jobs,
		"it goes with the traces"},
	FlightJSON:   {"Flight Recorder dump as JSON", "a Flight Recorder dump as JSON", hangs, ""},
	FlightPickle: {"Flight Recorder dump", "a Flight Recorder dump", hangs, ""},
	SimAI:        {"SimAI workload", "a workload of SimAI", jobs, ""},
	AICB:         {"AICB log", "a log of AICB", jobs, ""},
	GOAL:         {"GOAL schedule", "a GOAL schedule", jobs, ""},
	GOALBinary:   {"binary GOAL schedule", "a binary GOAL schedule", jobs, ""},
	Inspector:    {"NCCL Inspector records", "records of NCCL's Inspector", jobs, ""},
	Meta: {"run description", "the description of a recorded run, meta.json", jobs,
		"it goes with the traces of the run"},
	StepTimes:   {"measured steps", "measured steps of a run", jobs, "it goes with the traces of the run"},
	ChromeTrace: {"Chrome trace", "a Chrome trace", traces, ""},
	Perfetto:    {"Perfetto trace", "a trace in Perfetto's format", traces, ""},
	MSCCL:       {"MSCCL schedule", "an MSCCL schedule of one collective", schedules, ""},
	MSCCLPlus:   {"MSCCL++ plan", "an MSCCL++ plan of one collective", schedules, ""},
	NS3Config: {"ns-3 configuration", "a configuration of the HPCC simulator on ns-3",
		[]string{"network run --ns3"}, ""},
	NS3Network: {"ns-3 topology", "a topology of the HPCC simulator on ns-3",
		[]string{"network run --ns3 (the configuration that names it)"}, ""},
	NS3Flows: {"ns-3 flows", "a list of flows of the HPCC simulator on ns-3",
		[]string{"network run --ns3 (the configuration that names it)"}, ""},
	HTSimMatrix: {"htsim connection matrix", "a connection matrix of htsim",
		[]string{"network run --htsim"}, ""},
	HTSimNetwork:   {"htsim topology", "a topology of htsim", []string{"network run --htsim --topo"}, ""},
	OperationTimes: {"times of operations", "times of operations", []string{"workload gen --times"}, ""},
	Tar:            {"tar archive", "a tar archive", jobs, "what it holds decides"},

	RCCLLog:   {"RCCL log", "a log of AMD's RCCL", []string{"check --log (with --topo)"}, ""},
	RCCLTable: {"rccl-tests table", "a table of AMD's rccl-tests", nil, noAMD},
	AMDTopology: {"AMD topology", "a topology file of AMD GPUs (RCCL)", []string{"inspect --json --topo",
		"explain --topo", "tune --topo", "graph --topo", "env --topo", "run --topo"}, ""},
	RocmSMI: {"rocm-smi output", "the output of AMD's rocm-smi", nil, noAMD},

	P2PMatrix: {"nvidia-smi topo -p2p matrix", "a matrix of nvidia-smi topo -p2p", nil,
		"it has no paths; give the output of nvidia-smi topo -m to simccl topo convert"},
	SmiXML: {"nvidia-smi -q XML", "what nvidia-smi -q -x wrote", nil,
		"it has no paths; give the output of nvidia-smi topo -m to simccl topo convert"},
	SmiTable: {"nvidia-smi output", "the output of nvidia-smi without topo -m", nil,
		"it has no paths; give the output of nvidia-smi topo -m to simccl topo convert"},
	TACCL: {"TACCL sketch", "a TACCL sketch, an input of TACCL", nil,
		"give the schedule that TACCL made of it to simccl run --schedule"},
	AstraSystem: {"ASTRA-sim system", "ASTRA-sim's description of a system", nil,
		"give its workload, the .et files; --topo describes the machine here"},
	AstraNetwork: {"ASTRA-sim network", "ASTRA-sim's description of a network", nil,
		"give its workload, the .et files; --topo describes the machine here"},
	SimAITable: {"SimAI table", "SimAI's table of bus bandwidths", nil,
		"give its workload, a .txt file; simccl computes bandwidths itself"},
	AIOB: {"AIOB table", "AIOB's table of measured compute times", nil,
		"give the workload that AICB made with it"},
	AICBModels: {"AICB models", "AICB's list of models", nil,
		"give a workload that AICB made of it, or hyper-parameters to simccl workload gen"},
	Nsight: {"Nsight Systems database", "an SQLite database of Nsight Systems", nil,
		"record with torch.profiler instead; Nsight's databases are not read"},
	SQLite: {"SQLite database", "an SQLite database", nil, "databases are not read"},
	HFConfig: {"Hugging Face model configuration", "a model configuration of Hugging Face",
		[]string{"workload gen --model"}, ""},
	IBNetDiscover:   {"ibnetdiscover output", "the output of ibnetdiscover", siteNetworks, ""},
	SlurmTopology:   {"Slurm topology.conf", "Slurm's topology.conf", siteNetworks, ""},
	SlurmYAML:       {"Slurm topology.yaml", "Slurm's topology.yaml", siteNetworks, ""},
	LLDP:            {"LLDP neighbours", "LLDP neighbours as lldpcli prints them", siteNetworks, ""},
	CableTable:      {"cable table", "a table of cables", siteNetworks, ""},
	HostList:        {"host list", "a list of hosts", hostLists, ""},
	KubernetesNodes: {"Kubernetes nodes", "nodes or pods of Kubernetes", hostLists, ""},
	ELF: {"shared library or program", "a shared library or a program",
		[]string{"run --libnccl", "inspect --libnccl"}, "--libnccl takes it if it is libnccl.so.2"},
	Pprof: {"pprof profile", "a profile in pprof's format", nil, "go tool pprof shows it"},
	Zip:   {"zip archive", "a zip archive", nil, "unpack it first"},
}

// Jobs lists the kinds from which a job can be read.
func Jobs() []Kind {
	return []Kind{Native, Calls, Kineto, TorchET, Chakra, ChakraJSON, ChakraGroups, FlightJSON, FlightPickle,
		NCCLLog, NCCLCalls, SimAI, AICB, GOAL, GOALBinary, Inspector, Meta, StepTimes, ChromeTrace, Tar}
}

// Networks lists the kinds that topo fabric --from reads.
func Networks() []Kind { return []Kind{IBNetDiscover, SlurmTopology, SlurmYAML, LLDP, CableTable} }

// Machines lists the kinds from which a machine can be made.
func Machines() []Kind {
	return []Kind{Topology, TopologyHosts, Template, Lstopo, Matrix, MachineSpec, SystemPrint, NCCLLog}
}

// String returns the kind's name, as identify prints it.
func (k Kind) String() string { return k.row().name }

// What returns the noun phrase that completes "this is …".
func (k Kind) What() string { return k.row().what }

// Commands lists the commands that take such a file, without the program's name.
func (k Kind) Commands() []string { return slices.Clone(k.row().commands) }

// Hint returns additional advice about the kind, or "".
func (k Kind) Hint() string { return k.row().hint }

func (k Kind) row() *row {
	if k >= numKinds {
		k = Unknown
	}
	return &table[k]
}

// use names the first command that reads the kind: "simccl report --measured reads it".
func (k Kind) use() string {
	r := k.row()
	switch {
	case len(r.commands) == 0:
		return r.hint
	}
	return "simccl " + r.commands[0] + " reads it"
}
