package main

import (
	"os"

	"github.com/simccl/simccl/internal/process"
	"github.com/simccl/simccl/internal/release"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// machineFlags say which machine is meant: the Machine and Network of a Spec.
type machineFlags struct {
	topo      string
	nodes     int
	gpus      int
	multicast string
	fabric    string
	mnnvl     int
	class     string
	nccl      string
	libnccl   string
	runsNCCL  bool // the command's own --libnccl is the library that it runs
	given     *pflag.FlagSet
	found     []byte // the topology of this machine, in place of a file
}

func (m *machineFlags) register(c *cobra.Command) {
	f := c.Flags()
	m.given = f
	f.StringVar(&m.topo, "topo", "", "topology `FILE` as NCCL_TOPO_DUMP_FILE writes it; A.xml:4,B.xml:2 for unequal nodes; default: the built-in DGX H100")
	f.IntVar(&m.nodes, "nodes", 0, "number of equal nodes `N` (default 1, of the built-in machine 2)")
	f.IntVarP(&m.gpus, "gpus", "g", 0, "use the `K` lowest local ranks of each node (default all)")
	f.StringVar(&m.multicast, "multicast", "auto", "NVLink multicast: on, off, or auto: on where every GPU is sm_90+ behind an NVSwitch")
	f.IntVar(&m.mnnvl, "mnnvl", 0, "every `K` nodes are one NVLink domain, as in an NVL72 (default: what the file says); 1: a node alone is a domain, with a fabric as its neighbours have")
	f.StringVar(&m.nccl, "nccl-version", "", "decide as this `VERSION` of NCCL does: "+release.Names()+", one between (the nearest older answers), or torch==2.8 (default SIMCCL_NCCL_VERSION, else "+ncclRules().String()+")")
	if !m.runsNCCL {
		f.StringVar(&m.libnccl, "libnccl", "", "decide as the library `FILE` (libnccl.so.2) does; its version is read, nothing in it runs")
	}
	f.StringVar(&m.fabric, "fabric", "", "network between the nodes, a `FILE` as topo fabric writes (default an ideal one)")
}

// registerClass adds the option of commands that predict times.
func (m *machineFlags) registerClass(c *cobra.Command) {
	c.Flags().StringVar(&m.class, "machine-class", "", "speeds of GPUs, links and NICs: a `FILE` as calibrate writes, or a name (default by the topology)")
}

// spec is what the options say, as a Spec without a workload.
func (m *machineFlags) spec(a *app) (scenario.Spec, error) {
	var s scenario.Spec
	for _, o := range []struct {
		flag, name string
		v          int
	}{{"nodes", "--nodes", m.nodes}, {"gpus", "-g", m.gpus}} {
		if o.v < 0 || o.v == 0 && m.given != nil && m.given.Changed(o.flag) {
			return s, usage("%s %d: must be at least 1", o.name, o.v)
		}
	}
	nodes, err := scenario.ParseNodes(m.topo, m.nodes, func(name string) bool { _, err := os.Stat(a.Path(name)); return err == nil })
	if m.topo == "" && m.found != nil {
		nodes = []scenario.Nodes{{Topo: process.ThisTopology, Count: m.nodes}}
	}
	s.Machine = scenario.Machine{Nodes: nodes, GPUs: m.gpus, NVLinkDomain: m.mnnvl, Class: m.class}
	if s.Machine.Multicast = m.multicast; m.multicast == "auto" {
		s.Machine.Multicast = ""
	}
	s.Network.Fabric = m.fabric
	if err == nil {
		s.NCCL.Version, err = a.Release(m.nccl, m.libnccl)
	}
	return s, asFlags(err)
}

// load makes the communicator.
func (m *machineFlags) load(a *app) (*scenario.Site, error) { return m.site(a, scenario.Load) }

// layout reads the topology files and lays out the nodes, without a communicator.
func (m *machineFlags) layout(a *app) (*scenario.Site, error) { return m.site(a, scenario.Layout) }

func (m *machineFlags) site(a *app, load func(*scenario.Spec, scenario.Options) (*scenario.Site, error)) (*scenario.Site, error) {
	s, err := m.spec(a)
	if err != nil {
		return nil, err
	}
	x, err := load(&s, a.Options(m.found))
	return x, asFlags(err)
}
