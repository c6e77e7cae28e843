package run

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/simccl/simccl/app/cli"
	"github.com/spf13/cobra"
)

// ReportOptions are those of run; the default name of the page is report.html.
type ReportOptions struct{ RunOptions }

// Report returns `simccl report`.
func Report(a *cli.App) *cobra.Command {
	var o ReportOptions
	c := &cobra.Command{Use: "report OP", Short: "Write one HTML page about an operation on a machine",
		Long: `report simulates a sweep as run does and writes one self-contained HTML file:
a summary with advice, bandwidth and latency by size, who wins where and why,
topology with its load, rings, timeline, paths and settings. It takes run's
options; with --trace the page links to the trace.`,
		Example: `  simccl report all_reduce -b 1K -e 16M -f 4
  simccl report all_gather --topo topo.xml --nodes 4 -b 64K -e 4M -f 4 --report all_gather.html
  simccl report all_reduce -b 64K -e 4M -f 4 --measured measured.txt`,
		Args: o.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Take(args)
			return o.Run(cmd.Context(), a)
		}}
	o.Register(c)
	return c
}

// Run writes the page and prints its name.
func (o *ReportOptions) Run(ctx context.Context, a *cli.App) error {
	quiet := *a
	quiet.Out, quiet.JSON = io.Discard, false
	o.Outputs.Report = cmp.Or(o.Outputs.Report, "report.html")
	s, err := o.Prepare(&quiet)
	if err != nil {
		return err
	}
	if err := s.Run(ctx); err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(map[string]string{"page": o.Outputs.Report})
	}
	_, err = fmt.Fprintln(a.Out, o.Outputs.Report)
	return err
}
