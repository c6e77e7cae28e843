package machines

import (
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/anyhost"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/pflag"
)

// ConvertHelp says what topo convert reads.
const ConvertHelp = `convert writes a topology in the form of NCCL_TOPO_DUMP_FILE, which NCCL can
read: one element a line, unknown elements and attributes kept. --fused writes
what the local ranks agree on instead, without what no rank uses. --anonymous
replaces guids and host hashes by numbers.

FILE may also be one of these, as --topo of every command takes them; what it does
not say is assumed, with a warning, or an error that names what to give:

  the output of nvidia-smi topo -m   no kinds of GPU, NIC and CPU
  what lstopo --of xml wrote         no speeds of NICs; NVLinks where it knew NVML
  a log of NCCL (NCCL_DEBUG=INFO)    no device ids; the node's switches as NCCL
                                     joined them; names of NICs with subsystem
                                     NET (INIT,ENV,NET,GRAPH), or where
                                     "NET/IB : Using" is there
  a description for topo gen         all that its kinds have

A vendor's file for NCCL_TOPO_FILE that names places of GPUs and NICs only is
completed by --gpu-kind and --nic-kind (and --nvlink): its PCI tree and CPUs stay.

--spec prints a description, to be corrected for topo gen, of these and of any
topology file that a description can say.`

// Convert are the options of topo convert about what a file does not say.
type Convert struct {
	kinds  machine.Kinds
	nvlink string
	node   int
	spec   bool
}

// Register declares the options.
func (c *Convert) Register(f *pflag.FlagSet) {
	f.StringVar(&c.kinds.GPU, "gpu-kind", "",
		"the `KIND` of the GPUs, as topo gen has it (default found out or guessed)")
	f.StringVar(&c.kinds.NIC, "nic-kind", "", "the `KIND` of the NICs (default found out or guessed)")
	f.StringVar(&c.kinds.CPU, "cpu-kind", "", "the `KIND` of the CPUs (default found out or guessed)")
	f.StringVar(&c.nvlink, "nvlink", "", "of lstopo's XML and vendors' files: take NVLinks from the output "+
		"of nvidia-smi topo -m in `FILE` (default assumed)")
	f.IntVar(&c.node, "node", 0, "of a log: write node `N`, from 0")
	f.BoolVar(&c.spec, "spec", false, "print the description, as topo gen reads it")
}

// given are the options as the reader of hosts takes them.
func (c *Convert) given(a *cli.App, version string) (g anyhost.Given, err error) {
	g = anyhost.Given{Kinds: c.kinds, Node: c.node, NVLinkFile: c.nvlink, Version: version}
	if c.nvlink != "" {
		g.NVLink, err = a.Read(c.nvlink, process.MaxResults)
	}
	return g, err
}

// Host reads a host of whatever describes one, and warns of what is assumed; of a built-in
// machine and of NCCL's own files only the tree is there. version replaces the release of a log.
func (c *Convert) Host(a *cli.App, name, version string) (*anyhost.Host, error) {
	g, err := c.given(a, version)
	if err != nil {
		return nil, err
	}
	data, err := a.Read(name, process.MaxLog)
	if name == "" || err != nil { // a built-in machine, or its reader says what is wrong
		if err := g.None("a built-in machine"); err != nil {
			return nil, err
		}
		return c.declared(a, name)
	}
	h, err := anyhost.Read(data, name, g)
	if err != nil {
		return nil, err
	}
	if h.Kind == inputs.Topology || h.Kind == inputs.TopologyHosts {
		return c.declared(a, name)
	}
	for _, n := range h.Notes {
		a.Warn("%s: %s", name, n)
	}
	return h, nil
}

// declared reads a topology file, with the warnings that it deserves.
func (c *Convert) declared(a *cli.App, name string) (*anyhost.Host, error) {
	spec, err := scenario.Topology(name, a.Options(nil))
	if err != nil {
		return nil, err
	}
	return &anyhost.Host{Kind: inputs.Topology, Root: spec.Root, Label: name}, nil
}

// Print writes a topology, or with --spec its description.
func (c *Convert) Print(a *cli.App, h *anyhost.Host, name string) error {
	if !c.spec {
		return write(a, h.Root)
	}
	if h.Spec != nil {
		return a.PrintJSON(h.Spec)
	}
	if name == "" {
		name = builtin.DGXH100Name
	}
	base := filepath.Base(name)
	s, err := machine.Describe(h.Root, strings.TrimSuffix(base, filepath.Ext(base)))
	if err != nil {
		return fail.Input(err)
	}
	for _, f := range s.Facts {
		a.Warn("%s: %s: %s", name, f.Of, f.Source)
	}
	return a.PrintJSON(s)
}

// Whole refuses --spec beside options that change the tree.
func (c *Convert) Whole(fused, anonymous bool) error {
	if c.spec && (fused || anonymous) {
		return fail.Usage("--spec describes the whole file; leave --fused and --anonymous out")
	}
	return nil
}
