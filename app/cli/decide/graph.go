package decide

import (
	"context"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/search/graphxml"
	"github.com/simccl/simccl/study/decision"
	"github.com/spf13/cobra"
)

// GraphOptions are the flags and arguments of graph.
type GraphOptions struct {
	Machine cli.Machine
	Format  string // xml, text, rings, json or dot
}

// Graph returns `simccl graph`.
func Graph(a *cli.App) *cobra.Command {
	var o GraphOptions
	c := &cobra.Command{Use: "graph", Short: "Print NCCL's graphs",
		Long: `graph prints the searched graphs of the first node (xml as NCCL_GRAPH_DUMP_FILE
holds them, or text), or the channels that join all ranks of the cluster with the
nets between hosts (rings, json, or dot for Graphviz).`,
		Example: "  simccl graph --topo dgx.xml --nodes 4 --format dot | dot -Tsvg > rings.svg",
		Args:    cli.Exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), a) }}
	o.Machine.Register(c)
	c.Flags().StringVar(&o.Format, "format", "text", "xml, text, rings, json or dot")
	return c
}

// Run prints the graphs or channels in o.Format.
func (o *GraphOptions) Run(_ context.Context, a *cli.App) error {
	x, err := o.Machine.Load(a)
	if err != nil {
		return err
	}
	format := o.Format
	if a.JSON {
		format = "json"
	}
	switch format {
	case "xml":
		text, err := graphxml.Write(x.Cluster.Host(0).Systems[0], x.Comm.Domains[0].Graphs)
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	case "text":
		return a.PrintText(decision.GraphText(x.Comm))
	case "rings":
		return a.PrintText(ringsText(x.Comm.Layout, x.Cluster))
	case "dot":
		return a.PrintText(dot(x.Comm.Layout, x.Cluster))
	case "json":
		return a.Encode("  ", true, documentOf(x.Comm.Layout, x.Cluster))
	}
	return fail.Usage("--format %s: write xml, text, rings, json or dot", format)
}
