package topo

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/anonymize"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/machine"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

func list(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "list [WORD]", Short: "List the built-in machines",
		Long: `list names the machines that --topo takes by name, with how many GPUs and NIC
ports a host has; WORD restricts it to names and titles with that word. --json
adds aliases, what is known of the network, and the source of each fact.`,
		Example: "  simccl topo list azure\n  simccl run all_reduce --topo gb200-nvl72 --nodes 18 --sizes 1M",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all := builtin.List()
			if len(args) > 0 {
				some := all[:0]
				for _, m := range all {
					if strings.Contains(strings.ToLower(m.Name+" "+strings.Join(m.Aliases, " ")+" "+m.Title),
						strings.ToLower(args[0])) {
						some = append(some, m)
					}
				}
				if all = some; len(all) == 0 {
					return fail.Usage("no built-in machine has %q in its name; simccl topo list names all",
						args[0])
				}
			}
			if a.JSON {
				return a.PrintJSON(all)
			}
			w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
			for _, m := range all {
				fmt.Fprintf(w, "%s\t%s\n", m.Name, m.Title)
			}
			return w.Flush()
		}}
}

func gen(a *cli.App) *cobra.Command {
	var named bool
	c := &cobra.Command{Use: "gen SPEC.json|NAME",
		Short: "Write the topology file of a machine that is described",
		Long: `gen writes NCCL's topology file of a machine from a description: CPUs and NUMA
nodes, PCIe switches, GPUs, NVLink and NICs. NAME writes that of a built-in
machine; --spec prints the description of one, as a start for your own. Bus ids
that the description leaves out are numbered by gen.`,
		Example: "  simccl topo gen aws-p5en --spec > mine.json\n  simccl topo gen mine.json > mine.xml\n" +
			"  simccl run all_reduce --topo mine.xml --nodes 2 --sizes 1M",
		Args: cli.Exactly("SPEC.json|NAME"),
		RunE: func(_ *cobra.Command, args []string) error {
			if m := builtin.Lookup(args[0]); m != nil {
				return writeNamed(a, m, named)
			}
			if named {
				return fail.Usage("--spec prints the description of a built-in machine; %s is none of topo "+
					"list", args[0])
			}
			data, err := a.ReadAs(args[0], process.MaxSettings, inputs.MachineSpec)
			if err != nil {
				return err
			}
			s, err := machine.Parse(data, args[0])
			if err != nil {
				return fail.Input(err)
			}
			root, err := s.Generate()
			if err != nil {
				return fail.Input(err)
			}
			return write(a, root)
		}}
	c.Flags().BoolVar(&named, "spec", false, "print the description of a built-in machine")
	return c
}

// writeNamed writes a built-in machine's file or Spec.
func writeNamed(a *cli.App, m *builtin.Machine, spec bool) error {
	switch {
	case spec && m.Spec == nil:
		return fail.Usage("%s is a file, written by hand; --spec has nothing to print, without it the file "+
			"is", m.Name)
	case spec:
		return a.PrintJSON(m.Spec)
	}
	root, err := topoxml.Parse(m.XML(), m.Name)
	if err != nil {
		return err
	}
	return write(a, root.Root)
}

func anonymous(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "anonymize FILE", Short: "Take out of a topology file what names a site",
		Long: `anonymize replaces host hashes, GUIDs, bus ids and device names, and leaves out
comments and whatever NCCL does not know. Order and equality of what NCCL
compares are kept, so that it decides the same.`,
		Example: "  simccl topo anonymize dgx.xml > public.xml",
		Args:    cli.Exactly("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			spec, err := scenario.Topology(args[0], a.Options(nil))
			if err != nil {
				return err
			}
			return write(a, anonymize.Tree(spec.Root))
		}}
}
