package cli

import (
	"context"
	"os"

	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/congestion"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Machine are the flags that select the machine: Machine and Network of a Spec.
type Machine struct {
	Topo      string
	Nodes     int
	GPUs      int
	Multicast string
	Fabric    string
	Hosts     string // list of the fabric's hosts that the job has
	Domain    int    // nodes of an NVLink domain
	Class     string
	Network   string // flow, packet or hybrid
	NICs      string // network class
	CC        string
	Balance   string
	NCCL      string
	RCCL      string
	LibNCCL   string
	RunsNCCL  bool // the command's own --libnccl is the library that it runs
	given     *pflag.FlagSet
	Faults    []string // see scenario.Network
	Seed      uint64   // of hashes, marks and losses; 0: not given
	Found     []byte   // the topology of this machine, in place of a file
}

// Register declares the options on a command.
func (m *Machine) Register(c *cobra.Command) {
	m.given = c.Flags()
	machine := flags.In(flags.Machine,
		flags.Of(&m.Topo, "topo", "", "",
			"topology `FILE` of a node, or a machine's name (NCCL_TOPO_DUMP_FILE writes such "+
				"a file, simccl topo list has the names); A.xml:4,dgx-a100:2 for unequal nodes; default "+
				"dgx-h100",
			"Topo"),
		flags.Of(&m.Nodes, "nodes", "", 0, "`N` equal nodes (default 1, of the built-in machine 2)",
			"machine.nodes", "Nodes"),
		flags.Of(&m.GPUs, "gpus", "g", 0,
			"`K` GPUs of each node, those of the lowest local ranks (default all)", "machine.gpus"),
		flags.Of(&m.Multicast, "multicast", "", "auto",
			"NVLink multicast, `MODE` on, off or auto: on where every GPU is "+
				"sm_90 or newer behind an NVSwitch", "machine.multicast", "Multicast"),
		flags.Of(&m.Domain, "mnnvl", "", 0,
			"every `K` nodes are one NVLink domain, as in an NVL72; 1: each node alone is "+
				"one, with a fabric as its neighbours have (default what the topology says)",
			"machine.nvlinkDomain"),
		flags.Of(&m.NCCL, "nccl-version", "", "",
			"`VERSION` of NCCL that decides: 2.27.5, torch==2.8, … (simccl help "+
				"releases; default SIMCCL_NCCL_VERSION, else "+Rules().String()+")", "nccl.version"),
		flags.Of(&m.RCCL, "rccl-version", "", "",
			"`VERSION` of RCCL that decides for GPUs of AMD: 2.30.4, 2.28.3 or rocm==7.14 (default for a "+
				"file of such "+
				"a machine 2.30.4)", "nccl.version"),
	)
	if !m.RunsNCCL {
		machine.Rows = append(machine.Rows, flags.Of(&m.LibNCCL, "libnccl", "", "",
			"library `FILE` (libnccl.so.2) whose "+
				"version of NCCL decides; it is read, nothing in it runs"))
	}
	flags.Register(c.Flags(), machine, flags.In(flags.Network,
		flags.Of(&m.NICs, "network-class", "", "",
			"costs of NICs and their plugin: a class by `NAME` (simccl help networks) "+
				"or a file (default by the machine's name, else by its NICs)", "network.class"),
		flags.Of(&m.Fabric, "fabric", "", "",
			"network of switches: a `FILE`, as simccl topo fabric writes it, or a name "+
				"(simccl help networks; default an ideal network)", "network.fabric"),
		flags.Of(&m.Hosts, "hosts", "", "",
			"hosts of the fabric that the job has, in the order of ranks: a `FILE` with Slurm's nodelist, "+
				"MPI's "+
				"hosts or Kubernetes' nodes (default the first ones)", "network.hosts"),
	))
}

// RegisterClass declares the flag of commands that predict times.
func (m *Machine) RegisterClass(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(flags.Machine,
		flags.Of(&m.Class, "machine-class", "", "",
			"speeds of GPUs, links and NICs: a class by `NAME` (simccl class) or a "+
				"file, as calibrate writes it (default by the topology)", "machine.class")))
}

// RegisterNetwork adds the options of commands that simulate the network between
// nodes.
func (m *Machine) RegisterNetwork(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(flags.Network,
		flags.Of(&m.Network, "network", "", "flow",
			"`MODEL` of the network: flow (links are shared max-min), packet (every "+
				"frame: switch queues, ECN, PFC or credits, congestion control) or hybrid (packet where "+
				"queues "+
				"build up, "+
				"else flow)", "network.model"),
		flags.Of(&m.Balance, "balance", "", "",
			"load balancing over equal-cost routes with --network packet: `HOW` is "+
				"queue-pair (each keeps its route), flowlet, or packet (each frame to the shortest queue) "+
				"(default the "+
				"fabric's)", "network.balance"),
		flags.Of(&m.CC, "cc", "", "",
			"congestion control `NAME` with --network packet: dcqcn:cx7, hpcc, … (simccl help "+
				"networks; default the fabric's)", "network.cc"),
	))
}

// RegisterFaults declares the flags for faults and the seed of the network.
func (m *Machine) RegisterFaults(c *cobra.Command) {
	flags.Register(c.Flags(), flags.In(flags.Network,
		flags.Of(&m.Faults, "fault", "", nil, "`FAULT` of the network, with --fabric or --network packet: "+
			"link=leaf0~spine1:slow=2, nic=node0/2:storm@10-100, … (simccl help faults); repeatable",
			"network.faults"),
		flags.Of(&m.Seed, "seed", "", 0,
			"`SEED` of ECMP hashes, random marks and losses, with --fabric: one draw of them "+
				"(default 1; where hashed routes bind, the median of several draws)"),
	))
}

// Congestion simulates an operation over the network, as run does, and returns the congestion of its
// messages; nil if the flags select no network.
func (m *Machine) Congestion(ctx context.Context, a *App, op scenario.Named) (*congestion.Report, error) {
	if m.Fabric == "" && (m.Network == "" || m.Network == "flow") {
		return nil, nil
	}
	s, err := m.Spec(a)
	if err != nil {
		return nil, err
	}
	s.Workload = scenario.Workload{Op: op.Op, Sizes: []string{op.Size}, Root: op.Root}
	if f, err := coll.ParseFunc(op.Op); err == nil {
		s.Workload.Op = f.TestName()
	}
	if op.Type != "float" {
		s.Workload.Types = []string{op.Type}
	}
	if op.RedOp != "sum" {
		s.Workload.Reductions = []string{op.RedOp}
	}
	r, err := congestion.Run(ctx, s, a.Options(m.Found))
	return r, flags.Name(m.given, err)
}

// Spec converts the flags to a Spec without a workload.
func (m *Machine) Spec(a *App) (scenario.Spec, error) {
	var s scenario.Spec
	for _, o := range []struct {
		flag, name string
		v          int
	}{{"nodes", "--nodes", m.Nodes}, {"gpus", "-g", m.GPUs}} {
		if o.v < 0 || o.v == 0 && m.given != nil && m.given.Changed(o.flag) {
			return s, fail.Usage("%s %d: must be at least 1", o.name, o.v)
		}
	}
	nodes, err := parseNodes(m.Topo, m.Nodes, func(name string) bool {
		_, err := os.Stat(a.Path(name))
		return err == nil
	})
	if m.Topo == "" && m.Found != nil {
		nodes = []scenario.Nodes{{Topo: process.ThisTopology, Count: m.Nodes}}
	}
	s.Machine = scenario.Machine{Nodes: nodes, GPUs: m.GPUs, NVLinkDomain: m.Domain, Class: m.Class}
	if s.Machine.Multicast = m.Multicast; m.Multicast == "auto" {
		s.Machine.Multicast = ""
	}
	s.Network.Fabric, s.Network.Class, s.Network.CC, s.Network.Balance = m.Fabric, m.NICs, m.CC, m.Balance
	s.Network.Faults, s.Network.Hosts, s.Seed = m.Faults, m.Hosts, m.Seed
	if s.Network.Model = m.Network; m.Network == "flow" {
		s.Network.Model = ""
	}
	if len(m.Faults) > 0 && s.Network.Model == "" && m.Fabric == "" {
		return s, fail.Usage("--fault %s: without a simulated operation it has no effect; write --network "+
			"packet, or --fabric FILE", m.Faults[0])
	}
	if m.Balance != "" && s.Network.Model == "" {
		return s, fail.Usage("--balance %s: load balancing needs frames; write --network packet", m.Balance)
	}
	if m.CC != "" && s.Network.Model == "" {
		return s, fail.Usage("--cc %s: congestion control needs frames; add --network packet or hybrid", m.CC)
	}
	if err == nil {
		s.NCCL.Version, err = a.Release(m.NCCL, m.LibNCCL)
	}
	if m.RCCL != "" && err == nil {
		if s.NCCL.Version != "" {
			return s, fail.Usage("--rccl-version %s: the version of NCCL is given too; leave one out", m.RCCL)
		}
		s.NCCL.Version = release.OfRCCL(m.RCCL)
	}
	return s, flags.Name(m.given, err)
}

// Load lays out the communicator on the machine.
func (m *Machine) Load(a *App) (*scenario.Site, error) { return m.site(a, scenario.Load) }

// Layout reads the topology files and lays out the nodes, without a communicator.
func (m *Machine) Layout(a *App) (*scenario.Site, error) { return m.site(a, scenario.Layout) }

func (m *Machine) site(a *App, load func(*scenario.Spec, scenario.Options) (*scenario.Site, error)) (
	*scenario.Site, error) {
	s, err := m.Spec(a)
	if err != nil {
		return nil, err
	}
	x, err := load(&s, a.Options(m.Found))
	return x, flags.Name(m.given, err)
}
