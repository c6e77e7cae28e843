package main

import (
	"errors"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/rings"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/study/ncclog"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/spf13/cobra"
)

func newInspect(a *app) *cobra.Command {
	var m cli.Machine
	log := false
	c := &cobra.Command{Use: "inspect", Short: "Print the whole decision",
		Long: `inspect prints what NCCL decides for a machine: system and paths, graphs before
and after all ranks agree, channels, cost model, and the choice with its
chunking for every power of two. --json prints all of it as one document.`,
		Example: `  simccl inspect --topo topo.xml --nodes 2 --json
  simccl inspect --topo topo.xml -g 4 --multicast off`,
		Args: cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.Load(&a.App)
			if err != nil {
				return err
			}
			switch {
			case log:
				return ncclog.WriteRank(a.Out, x.Comm, 0)
			case !a.JSON:
				_, err := fmt.Fprint(a.Out, decision.Text(x.Comm, x.Name))
				return err
			}
			text, err := a.document(x)
			if err != nil {
				return err
			}
			_, err = a.Out.Write(text)
			return err
		}}
	m.Register(c)
	c.Flags().BoolVar(&log, "nccl-log", false, "print what NCCL_DEBUG=INFO would show of it")
	return c
}

// document is the whole decision as JSON.
func (a *app) document(x *scenario.Site) ([]byte, error) {
	text, warn, err := decision.Of(x.Comm, x.Cluster, x.Settings())
	if warn != nil {
		a.Warn("%v", warn)
	}
	return text, err
}

func newGraph(a *app) *cobra.Command {
	var m cli.Machine
	format := ""
	c := &cobra.Command{Use: "graph", Short: "Print NCCL's graphs",
		Long: `graph prints the searched graphs of the first node (xml as NCCL_GRAPH_DUMP_FILE
holds them, or text), or the channels that join all ranks of the cluster with the
nets between hosts (rings, json, or dot for Graphviz).`,
		Example: "  simccl graph --topo dgx.xml --nodes 4 --format dot | dot -Tsvg > rings.svg",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			x, err := m.Load(&a.App)
			if err != nil {
				return err
			}
			if a.JSON {
				format = "json"
			}
			switch format {
			case "xml":
				text, err := topoxml.WriteGraphs(x.Cluster.Host(0).Systems[0], x.Comm.Domains[0].Graphs)
				if err != nil {
					return err
				}
				_, err = a.Out.Write(text)
				return err
			case "text":
				_, err := fmt.Fprint(a.Out, decision.GraphText(x.Comm))
				return err
			}
			err = rings.Write(a.Out, x.Comm.Layout, x.Cluster, format)
			var word *rings.FormatError
			if errors.As(err, &word) {
				return usage("--format %s: write xml, text, rings, json or dot", format)
			}
			return err
		}}
	m.Register(c)
	c.Flags().StringVar(&format, "format", "text", "xml, text, rings, json or dot")
	return c
}
