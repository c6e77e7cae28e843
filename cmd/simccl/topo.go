package main

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/machines"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/anyhost"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/lint"
	"github.com/simccl/simccl/topo/show"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

func newTopo(a *app) *cobra.Command {
	c := cli.Group("topo", "Inspect topology files", newTopoShow(a), newTopoLint(a), newTopoDiff(a),
		newTopoConvert(a), newTopoDetect(a), newTopoFabric(a))
	c.AddCommand(machines.Commands(&a.App)...)
	return c
}

// oneFile takes the file as argument or as --topo.
func oneFile(m *cli.Machine, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(args) > 1 {
		return usage("one FILE, not %d; A.xml:4,B.xml:2 joins unequal nodes", len(args))
	}
	if m.Topo != "" {
		return usage("the topology is given twice: %s and --topo %s", args[0], m.Topo)
	}
	m.Topo = args[0]
	return nil
}

func newTopoShow(a *app) *cobra.Command {
	var m cli.Machine
	format, node, wide := "text", 0, false
	c := &cobra.Command{Use: "show [FILE]", Short: "Show a machine as NCCL sees it",
		Long: `show prints the paths between GPUs and nets with their bandwidths, the nets with
the GPUs they belong to, and the PCI tree: what NCCL decides with, after its own
corrections (NIC fusion, P2P and GPUDirect rules, PXN). Rows are where data
starts. Where that is wider than 80 columns, it has kinds of paths between
GPUs and a row for each net; --wide prints all. nccl prints the lines of NCCL's own log,
matrix what nvidia-smi topo -m would print (PHB may be NODE there: a topology names no host
bridges), svg a drawing, dot one for Graphviz.`,
		Example: "  simccl topo show dgx.xml\n  simccl topo show gb200-nvl72 --format svg > tray.svg\n" +
			"  simccl topo show dgx.xml --format dot | dot -Tsvg > dgx.svg",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneFile(&m, args); err != nil {
				return err
			}
			x, err := m.Layout(&a.App)
			if err != nil {
				return err
			}
			if node < 0 || node >= x.Cluster.NHosts() {
				return usage("--node %d: there are nodes 0 to %d", node, x.Cluster.NHosts()-1)
			}
			switch {
			case a.JSON:
				format = "json"
			case wide && format == "text":
				format = "wide"
			}
			if format == "svg" {
				return a.PrintText(page.Drawing(x.Cluster.Host(node).Systems[0]))
			}
			err = show.Write(a.Out, x.Cluster.Host(node), format)
			var word *show.FormatError
			if errors.As(err, &word) {
				return usage("--format %v", err)
			}
			return err
		}}
	m.Register(c)
	c.Flags().StringVar(&format, "format", format, "text, json, svg, dot, nccl or matrix")
	c.Flags().BoolVar(&wide, "wide", false, "the bandwidth of every path, however wide")
	c.Flags().IntVar(&node, "node", 0, "which node `I` of unequal ones")
	return c
}

func newTopoLint(a *app) *cobra.Command {
	strict := false
	c := &cobra.Command{Use: "lint FILE...", Short: "Find what makes NCCL decide badly",
		Long: `lint names what is wrong or odd in topology files: swapped or missing numaid,
links without width or speed, NVLinks of one side only, bus ids used twice, nets
that no GPU reaches, what NCCL's parser cannot read; each with its place and a
remedy. Status 7 where NCCL would fail, with --strict also for warnings.`,
		Example: "  simccl topo lint dgx.xml",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("topo lint: name at least one file")
			}
			return a.lintFiles(args, strict)
		}}
	c.Flags().BoolVar(&strict, "strict", false, "warnings count as failure")
	return c
}

func (a *app) lintFiles(files []string, strict bool) error {
	entries, bad := []lint.Entry{}, 0
	err := cli.Findings(files, a.Options(nil), func(f *lint.Finding) {
		if f.Severity == lint.Error || strict && f.Severity == lint.Warning {
			bad++
		}
		if !a.JSON {
			fmt.Fprintln(a.Out, a.Paint(a.Out).Severities(f.String()))
		}
		entries = append(entries, f.Entry())
	})
	switch {
	case err != nil:
		return err
	case a.JSON:
		if err := a.Encode("  ", true, entries); err != nil {
			return err
		}
	case len(entries) == 0:
		fmt.Fprintln(a.Err, "nothing to complain of")
	}
	if bad > 0 {
		return failed("%d findings that make NCCL fail or decide badly", bad)
	}
	return nil
}

func newTopoConvert(a *app) *cobra.Command {
	var m cli.Machine
	var other machines.Convert
	fused, anonymous := false, false
	c := &cobra.Command{Use: "convert [FILE]", Short: "Rewrite a topology file in NCCL's form",
		Long: machines.ConvertHelp,
		Example: "  simccl topo convert dgx.xml --anonymous > public.xml\n" +
			"  simccl topo convert dgx.xml --fused -g 4 > four.xml\n" +
			"  simccl topo convert dgx.xml --spec > dgx.json",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneFile(&m, args); err != nil {
				return err
			}
			if err := other.Whole(fused, anonymous); err != nil {
				return err
			}
			h, err := other.Host(&a.App, m.Topo, m.NCCL)
			if err != nil {
				return err
			}
			if fused {
				if h.Root, err = kept(&m, a, h); err != nil {
					return err
				}
			}
			if anonymous {
				h.Root = show.Anonymize(h.Root)
			}
			return other.Print(&a.App, h, m.Topo)
		}}
	m.Register(c)
	other.Register(c.Flags())
	c.Flags().BoolVar(&fused, "fused", false, "what NCCL keeps of the file, as its own dump holds it")
	c.Flags().BoolVar(&anonymous, "anonymous", false, "replace guids and host hashes")
	return c
}

// kept is the tree that NCCL keeps of a host.
func kept(m *cli.Machine, a *app, h *anyhost.Host) (*topo.Element, error) {
	own := *m
	if h.Kind != inputs.Topology && len(h.Root.All("gpu")) > 0 { // what was made of another form
		own.Topo, own.Found = "", h.XML()
	}
	x, err := own.Layout(&a.App)
	if err != nil {
		return nil, err
	}
	return x.Cluster.Host(0).Dump, nil
}

func newTopoDiff(a *app) *cobra.Command {
	return &cobra.Command{Use: "diff OLD NEW", Short: "Compare two topology files",
		Long: `diff says what two topologies declare differently: devices by bus id, nets by
name, CPUs by NUMA number, anywhere in the file; order, ranks and host
hashes do not count. Status 7 where there is a difference.`,
		Example: "  simccl topo diff old.xml new.xml",
		Args:    cli.Exactly("OLD", "NEW"),
		RunE: func(_ *cobra.Command, args []string) error {
			var specs [2]*topo.Spec
			for i, file := range args {
				var err error
				if specs[i], err = scenario.Topology(file, a.Options(nil)); err != nil {
					return err
				}
			}
			changes := show.Diff(specs[0], specs[1])
			if a.JSON {
				if err := a.Encode("  ", true, append([]show.Change{}, changes...)); err != nil {
					return err
				}
			} else {
				for _, c := range changes {
					fmt.Fprintln(a.Out, c)
				}
			}
			if len(changes) > 0 {
				return failed("%d differences", len(changes))
			}
			return nil
		}}
}
