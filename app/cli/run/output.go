package run

import (
	"io"
	"os"
	"path/filepath"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/packetrun"
)

// NetworkOutput is the files that a run writes.
type NetworkOutput struct {
	CSV string // a row a flow
	Dir string // of the HPCC simulator's files
	// Page is a page with the figures, Figures a directory of them as SVG and PDF.
	Page, Figures string
}

// sampled is the interval of samples, in µs, where files need them and none is given.
const sampled = 1

func (o *NetworkOptions) output() flags.Group {
	return flags.In("Output",
		flags.Of(&o.CSV, "csv", "", "", "write a row for each flow to the CSV `FILE`: bytes, start, end, "+
			"completion time (FCT), ideal FCT, slowdown"),
		flags.Of(&o.Dir, "out", "", "",
			"write fct.txt, qlen.txt and pfc.txt to `DIR`, in the columns of the "+
				"HPCC simulator on ns-3"),
		flags.Of(&o.Page, "report", "", "", "write the figures of the run as a page to the HTML `FILE`: "+
			"queues and rates over time, slowdown by size, its distribution"),
		flags.Of(&o.Figures, "figures", "", "", "write these figures for papers to `DIR`, as SVG and PDF"),
		flags.Of(&o.EveryUs, "interval", "", 0, "sample queues and rates each `US` (microseconds): "+
			"series in --json; 0: none, with --out, --report and --figures 1. "+
			"The run is then simulated twice", "EveryUs"))
}

// samples sets the interval where what is asked for needs samples.
func (o *NetworkOptions) samples() {
	drawn := (o.Page != "" || o.Figures != "") && (o.Htsim.Matrix == "" || o.CC == "roce")
	if o.EveryUs == 0 && (o.Dir != "" || drawn) { // htsim's UEC has figures without samples
		o.EveryUs = sampled
	}
}

// write writes the files that are asked for.
func (o *NetworkOptions) write(a *cli.App, r *packetrun.Report) error {
	if o.CSV != "" {
		if err := a.Save(o.CSV, "a row a flow", r.WriteCSV); err != nil {
			return err
		}
	}
	if err := o.draw(a, r); err != nil || o.Dir == "" {
		return err
	}
	if err := r.HasFiles(); err != nil {
		return err
	}
	if err := os.MkdirAll(a.Path(o.Dir), 0o777); err != nil {
		return fail.Input(err)
	}
	for _, name := range packetrun.FileNames() {
		err := a.Save(filepath.Join(o.Dir, name), "columns of the HPCC simulator", func(w io.Writer) error {
			return r.WriteFile(name, w)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
