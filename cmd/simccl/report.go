package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

func newReport(a *app) *cobra.Command {
	var r runFlags
	c := &cobra.Command{Use: "report OP", Short: "Write one HTML page about an operation on a machine",
		Long: `report simulates a sweep as run does and writes one self-contained HTML file:
a summary with advice, bandwidth and latency by size, who wins where and why,
topology with its load, rings, timeline, paths and settings. It takes run's
options; with --trace the page links to the trace.`,
		Example: `  simccl report all_reduce -b 1K -e 16M -f 4
  simccl report all_gather --topo topo.xml --nodes 4 -b 64K -e 4M -f 4 --report all_gather.html
  simccl report all_reduce -b 64K -e 4M -f 4 --measured measured.txt`,
		Args: r.operation,
		RunE: func(cmd *cobra.Command, args []string) error {
			quiet := *a
			quiet.Out, quiet.JSON = io.Discard, false
			if r.out.report == "" {
				r.out.report = "report.html"
			}
			s, err := r.prepare(&quiet, cmd, args)
			if err != nil {
				return err
			}
			if err := s.run(cmd.Context()); err != nil {
				return err
			}
			if a.JSON {
				return a.PrintJSON(map[string]string{"page": r.out.report})
			}
			_, err = fmt.Fprintln(a.Out, r.out.report)
			return err
		}}
	r.register(c)
	return c
}

// writeReport draws the whole run.
func (s *tableRun) writeReport(ctx context.Context) error {
	p, err := page.Of(ctx, s.r, s.r.Result().Rows, version, s.app.Cancelled)
	if err != nil {
		return err
	}
	p.Command, p.Measured = "simccl "+strings.Join(s.app.Args, " "), s.measured
	if out := &s.flags.out; out.trace != "" {
		if p.Trace, err = filepath.Rel(filepath.Dir(out.report), out.trace); err != nil {
			p.Trace = out.trace // no path leads there: as it was given
		}
	}
	text, err := p.Bytes()
	if err == nil {
		err = newfile.Write(s.flags.out.report, text)
	}
	if err == nil {
		s.app.Wrote(s.flags.out.report, "open it in a browser")
	}
	return err
}

// readMeasured reads the results of --measured.
func (s *tableRun) readMeasured() (out []page.Measured, err error) {
	if len(s.flags.out.measured) > 0 && s.flags.out.report == "" {
		return nil, usage("--measured: is drawn on the page; write --report FILE.html as well")
	}
	w := page.Wanted{Program: s.Config.Program, Ranks: s.r.Site.Comm.NRanks}
	out, err = page.ReadAll(s.flags.out.measured, w, func(name string) ([]byte, error) {
		return s.app.ReadAs(name, process.MaxResults, inputs.TestTable, inputs.TestJSON)
	})
	for _, m := range out {
		for _, note := range m.Notes {
			fmt.Fprintf(s.app.Err, "simccl: %s: %s\n", m.Name, note)
		}
	}
	return out, err
}
