package topo

import (
	"context"
	"errors"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/show"
	"github.com/spf13/cobra"
)

// ShowOptions are the flags and arguments of show.
type ShowOptions struct {
	Machine cli.Machine
	Format  string // text, json, svg, dot, nccl or matrix
	Wide    bool   // of text: the bandwidth of every path, however wide
	Node    int    // of unequal ones
}

func showCommand(a *cli.App) *cobra.Command {
	var o ShowOptions
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneFile(&o.Machine, args); err != nil {
				return err
			}
			return o.Run(cmd.Context(), a)
		}}
	o.Machine.Register(c)
	c.Flags().StringVar(&o.Format, "format", "text", "text, json, svg, dot, nccl or matrix")
	c.Flags().BoolVar(&o.Wide, "wide", false, "the bandwidth of every path, however wide")
	c.Flags().IntVar(&o.Node, "node", 0, "which node `I` of unequal ones")
	return c
}

// Run shows the machine.
func (o *ShowOptions) Run(_ context.Context, a *cli.App) error {
	x, err := o.Machine.Layout(a)
	if err != nil {
		return err
	}
	if o.Node < 0 || o.Node >= x.Cluster.NHosts() {
		return fail.Usage("--node %d: there are nodes 0 to %d", o.Node, x.Cluster.NHosts()-1)
	}
	format := o.Format
	switch {
	case a.JSON:
		format = "json"
	case o.Wide && format == "text":
		format = "wide"
	}
	if format == "svg" {
		return a.PrintText(page.Drawing(x.Cluster.Host(o.Node).Systems[0]))
	}
	err = show.Write(a.Out, x.Cluster.Host(o.Node), format)
	var word *show.FormatError
	if errors.As(err, &word) {
		return fail.Usage("--format %v", err)
	}
	return err
}
