package topo

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/anyhost"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/topo/show"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const convertHelp = `convert writes a topology in the form of NCCL_TOPO_DUMP_FILE, which NCCL can
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

// ConvertOptions are the flags and arguments of convert.
type ConvertOptions struct {
	Machine          cli.Machine   // Topo is the file to convert
	Kinds            machine.Kinds // of devices whose kind the file does not state
	NVLink           string        // a file with the output of nvidia-smi topo -m
	Node             int           // of a log
	Spec             bool          // print the description
	Fused, Anonymous bool          // see the help
}

func convert(a *cli.App) *cobra.Command {
	var o ConvertOptions
	c := &cobra.Command{Use: "convert [FILE]", Short: "Rewrite a topology file in NCCL's form",
		Long: convertHelp,
		Example: "  simccl topo convert dgx.xml --anonymous > public.xml\n" +
			"  simccl topo convert dgx.xml --fused -g 4 > four.xml\n" +
			"  simccl topo convert dgx.xml --spec > dgx.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneFile(&o.Machine, args); err != nil {
				return err
			}
			return o.Run(cmd.Context(), a)
		}}
	o.Machine.Register(c)
	o.register(c.Flags())
	c.Flags().BoolVar(&o.Fused, "fused", false, "what NCCL keeps of the file, as its own dump holds it")
	c.Flags().BoolVar(&o.Anonymous, "anonymous", false, "replace guids and host hashes")
	return c
}

// register declares the options about what a file does not say.
func (o *ConvertOptions) register(f *pflag.FlagSet) {
	f.StringVar(&o.Kinds.GPU, "gpu-kind", "",
		"the `KIND` of the GPUs, as topo gen has it (default found out or guessed)")
	f.StringVar(&o.Kinds.NIC, "nic-kind", "", "the `KIND` of the NICs (default found out or guessed)")
	f.StringVar(&o.Kinds.CPU, "cpu-kind", "", "the `KIND` of the CPUs (default found out or guessed)")
	f.StringVar(&o.NVLink, "nvlink", "", "of lstopo's XML and vendors' files: take NVLinks from the output "+
		"of nvidia-smi topo -m in `FILE` (default assumed)")
	f.IntVar(&o.Node, "node", 0, "of a log: write node `N`, from 0")
	f.BoolVar(&o.Spec, "spec", false, "print the description, as topo gen reads it")
}

// Run prints the topology as NCCL's XML, or with --spec its description.
func (o *ConvertOptions) Run(_ context.Context, a *cli.App) error {
	if o.Spec && (o.Fused || o.Anonymous) {
		return fail.Usage("--spec describes the whole file; leave --fused and --anonymous out")
	}
	h, err := o.host(a)
	if err != nil {
		return err
	}
	if o.Fused {
		if h.Root, err = o.kept(a, h); err != nil {
			return err
		}
	}
	if o.Anonymous {
		h.Root = show.Anonymize(h.Root)
	}
	return o.print(a, h)
}

// kept returns the tree that NCCL keeps of a host (--fused).
func (o *ConvertOptions) kept(a *cli.App, h *anyhost.Host) (*topo.Element, error) {
	own := o.Machine
	if h.Kind != inputs.Topology && len(h.Root.All("gpu")) > 0 { // what was made of another form
		own.Topo, own.Found = "", h.XML()
	}
	x, err := own.Layout(a)
	if err != nil {
		return nil, err
	}
	return x.Cluster.Host(0).Dump, nil
}

// given converts the options for anyhost.Read.
func (o *ConvertOptions) given(a *cli.App) (g anyhost.Given, err error) {
	g = anyhost.Given{Kinds: o.Kinds, Node: o.Node, NVLinkFile: o.NVLink, Version: o.Machine.NCCL}
	if o.NVLink != "" {
		g.NVLink, err = a.Read(o.NVLink, process.MaxResults)
	}
	return g, err
}

// host reads a host from any description of one, and prints the assumptions. Of a built-in machine and of
// NCCL's own files only the tree is set.
func (o *ConvertOptions) host(a *cli.App) (*anyhost.Host, error) {
	name := o.Machine.Topo
	g, err := o.given(a)
	if err != nil {
		return nil, err
	}
	data, err := a.Read(name, process.MaxLog)
	if name == "" || err != nil { // a built-in machine, or its reader says what is wrong
		if err := g.None("a built-in machine"); err != nil {
			return nil, err
		}
		return declared(a, name)
	}
	h, err := anyhost.Read(data, name, g)
	if err != nil {
		return nil, err
	}
	if h.Kind == inputs.Topology || h.Kind == inputs.TopologyHosts {
		return declared(a, name)
	}
	for _, n := range h.Notes {
		a.Warn("%s: %s", name, n)
	}
	return h, nil
}

// declared reads a topology file, with the warnings that it deserves.
func declared(a *cli.App, name string) (*anyhost.Host, error) {
	spec, err := scenario.Topology(name, a.Options(nil))
	if err != nil {
		return nil, err
	}
	return &anyhost.Host{Kind: inputs.Topology, Root: spec.Root, Label: name}, nil
}

// print writes a topology, or with --spec its description.
func (o *ConvertOptions) print(a *cli.App, h *anyhost.Host) error {
	if !o.Spec {
		return write(a, h.Root)
	}
	if h.Spec != nil {
		return a.PrintJSON(h.Spec)
	}
	return described(a, h.Root, cmp.Or(o.Machine.Topo, builtin.DGXH100Name))
}

// described prints the description of a topology, and what it had to find out.
func described(a *cli.App, root *decl.Element, name string) error {
	base := filepath.Base(name)
	s, err := machine.Describe(root, strings.TrimSuffix(base, ".xml"))
	if err != nil {
		return fail.Input(err)
	}
	for _, f := range s.Facts {
		a.Warn("%s: %s: %s", name, f.Of, f.Source)
	}
	return a.PrintJSON(s)
}
