package topo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/machine"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

// ListOptions are the flags and arguments of list.
type ListOptions struct{ Word string } // in names and titles; empty: all

func list(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "list [WORD]", Short: "List the built-in machines",
		Long: `list names the machines that --topo takes by name, with how many GPUs and NIC
ports a host has, and what the times of its GPUs rest on (measured, published tables or
estimated; mean error); WORD restricts it to names and titles with that word.
--json adds aliases, what is known of the network, and the source of each fact.`,
		Example: "  simccl topo list azure\n  simccl run all_reduce --topo gb200-nvl72 --nodes 18 --sizes 1M",
		Args:    cli.Arguments(0, "WORD"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &ListOptions{strings.Join(args, "")} })}
}

// Run prints the built-in machines whose name, alias or title has the word.
func (o *ListOptions) Run(_ context.Context, a *cli.App) error {
	all := builtin.List()
	if o.Word != "" {
		word := strings.ToLower(o.Word)
		all = slices.DeleteFunc(all, func(m *builtin.Machine) bool {
			names := m.Name + " " + strings.Join(m.Aliases, " ") + " " + m.Title
			return !strings.Contains(strings.ToLower(names), word)
		})
		if len(all) == 0 {
			return fail.Usage("no built-in machine has %q in its name; simccl topo list names all", o.Word)
		}
	}
	if a.JSON {
		return a.PrintJSON(all)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, m := range all {
		spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: m.Name}}}}
		site, err := scenario.Layout(&spec, a.Options(nil))
		if err != nil {
			return err
		}
		c := site.Class()
		fmt.Fprintf(w, "%s\t%s, %.0f %%\t%s\n", m.Name, c.Source, 100*c.Uncertainty, m.Title)
	}
	return w.Flush()
}

// GenOptions are the flags and arguments of gen.
type GenOptions struct {
	Machine string // a description's file, or a name
	Spec    bool   // print the description of a built-in one
}

func gen(a *cli.App) *cobra.Command {
	var o GenOptions
	c := &cobra.Command{Use: "gen SPEC.json|NAME",
		Short: "Write the topology file of a machine that is described",
		Long: `gen writes NCCL's topology file of a machine from a description: CPUs and NUMA
nodes, PCIe switches, GPUs, NVLink and NICs. NAME writes that of a built-in
machine; --spec prints the description of one, as a start for your own. Bus ids
that the description leaves out are numbered by gen.`,
		Example: "  simccl topo gen aws-p5en --spec > mine.json\n  simccl topo gen mine.json > mine.xml\n" +
			"  simccl run all_reduce --topo mine.xml --nodes 2 --sizes 1M",
		Args: cli.Exactly("SPEC.json|NAME"),
		RunE: cli.RunWithOne(a, &o, &o.Machine)}
	c.Flags().BoolVar(&o.Spec, "spec", false, "print the description of a built-in machine")
	return c
}

// Run prints the topology file of a named machine or of a description, or with --spec the description.
func (o *GenOptions) Run(_ context.Context, a *cli.App) error {
	if m := builtin.Lookup(o.Machine); m != nil {
		return writeNamed(a, m, o.Spec)
	}
	if o.Spec {
		return fail.Usage("--spec prints the description of a built-in machine; %s is none of topo list",
			o.Machine)
	}
	data, err := a.ReadAs(o.Machine, process.MaxSettings, inputs.MachineSpec)
	if err != nil {
		return err
	}
	s, err := machine.Parse(data, o.Machine)
	if err != nil {
		return fail.Input(err)
	}
	root, err := s.Generate()
	if err != nil {
		return fail.Input(err)
	}
	return write(a, root)
}

// writeNamed writes the file or the Spec of a built-in machine.
func writeNamed(a *cli.App, m *builtin.Machine, spec bool) error {
	if spec && m.Spec != nil {
		return a.PrintJSON(m.Spec)
	}
	f, err := topoxml.Parse(m.XML(), m.Name)
	switch {
	case err != nil:
		return err
	case spec:
		return described(a, f.Root, m.Name)
	}
	return write(a, f.Root)
}

// AnonymizeOptions are the flags and arguments of anonymize.
type AnonymizeOptions struct{ File string }

func anonymous(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "anonymize FILE", Short: "Take out of a topology file what names a site",
		Long: `anonymize replaces host hashes, GUIDs, bus ids and device names, and leaves out
comments and whatever NCCL does not know. Order and equality of what NCCL
compares are kept, so that it decides the same.`,
		Example: "  simccl topo anonymize dgx.xml > public.xml",
		Args:    cli.Exactly("FILE"),
		RunE:    cli.RunOf(a, func(args []string) cli.Runner { return &AnonymizeOptions{args[0]} })}
}

// Run writes the topology without what identifies the machine (show.Nameless).
func (o *AnonymizeOptions) Run(_ context.Context, a *cli.App) error {
	spec, err := scenario.Topology(o.File, a.Options(nil))
	if err != nil {
		return err
	}
	return write(a, show.Nameless(spec.Root))
}
