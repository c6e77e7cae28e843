package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/report/page"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload/inputs"
)

// writeReport writes the page about the whole run.
func (s *Prepared) writeReport(ctx context.Context) error {
	p, err := page.Of(ctx, s.Running, s.Running.Result().Rows, s.app.Version, s.app.Cancelled)
	if err != nil {
		return err
	}
	p.Command, p.Measured = "simccl "+strings.Join(s.app.Args, " "), s.measured
	if out := &s.opt.Outputs; out.Trace != "" {
		if p.Trace, err = filepath.Rel(filepath.Dir(out.Report), out.Trace); err != nil {
			p.Trace = out.Trace // no path leads there: as it was given
		}
	}
	if name := s.opt.Outputs.Report; name != "" {
		if err := s.app.Save(name, "open it in a browser", p.Write); err != nil {
			return err
		}
	}
	if dir := s.opt.Outputs.Figures; dir != "" {
		return s.app.SaveFigures(dir, p.Figures())
	}
	return nil
}

func (s *Prepared) readMeasured() (out []page.Measured, err error) {
	if len(s.opt.Outputs.Measured) > 0 && s.opt.Outputs.Report+s.opt.Outputs.Figures == "" {
		return nil,
			fail.Usage("--measured: is drawn on the page and the figures; write --report FILE.html or " +
				"--figures DIR as well")
	}
	w := page.Wanted{Program: s.Config.Program, Ranks: s.Running.Site.Comm.NRanks}
	out, err = page.ReadAll(s.opt.Outputs.Measured, w, func(name string) ([]byte, error) {
		return s.app.ReadAs(name, process.MaxResults, inputs.TestTable, inputs.TestJSON)
	})
	for _, m := range out {
		for _, note := range m.Notes {
			fmt.Fprintf(s.app.Notes(), "simccl: %s: %s\n", m.Name, note)
		}
	}
	return out, err
}
