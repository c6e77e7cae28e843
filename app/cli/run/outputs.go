package run

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/nccl"
)

// Outputs are the files that a run writes of one timed operation.
type Outputs struct {
	Trace, Profile, Ops string
	Report              string   // page
	Figures             string   // directory of its curves, as SVG and PDF
	Measured            []string // drawn on them
	Detail, Ranks       string   // of the trace
	Style               string
	Deps                bool
	Events              int64
	Mask                uint32
}

// defaultEvents is --trace-events where it is not given, as in a scenario.
const defaultEvents int64 = 20e6

// table returns the flags of a run's outputs.
func (o *Outputs) table() flags.Group {
	return flags.In(flags.Output,
		flags.Of(&o.Trace, "trace", "", "",
			"write a trace of the last size to `FILE` (one operation; .json or .pftrace, "+
				"Perfetto's own format; also with .gz or .zst)", "outputs.trace"),
		flags.Of(&o.Detail, "trace-detail", "", "step", "`LEVEL` of the trace: "+strings.Join(nccl.Simulated,
			", "),
			"outputs.detail"),
		flags.Of(&o.Style, "trace-style", "", "lanes",
			"`LAYOUT` of the trace: lanes, or nccl, that of NCCL's profiler plugin",
			"outputs.style"),
		flags.Of(&o.Ranks, "trace-ranks", "", "",
			"`RANKS` in the trace: 0-7,16, or all (default all; of more than 128, one "+
				"for all that do the same)", "outputs.ranks"),
		flags.Of(&o.Deps, "trace-deps", "", false,
			"arrows inside each rank of the trace: from each receive to the send that "+
				"waited for it"),
		flags.Of(&o.Events, "trace-events", "", defaultEvents,
			"most events in the trace: `N`; the trace counts those left "+
				"out", "outputs.maxEvents"),
		flags.Of(&o.Mask, "event-mask", "", 0,
			"kinds of events in the trace, `MASK` as NCCL_PROFILE_EVENT_MASK (default all)"),
		flags.Of(&o.Profile, "profile", "", "", "write a pprof profile of that operation to `FILE` (.pb.gz)",
			"outputs.profile"),
		flags.Of(&o.Ops, "ops", "", "",
			"write its point-to-point operations to `FILE` (.csv of SimCCL, .goal)", "outputs.ops"),
		flags.Of(&o.Report, "report", "", "", "write an HTML page about the run to `FILE` (.html)"),
		flags.Of(&o.Figures, "figures", "", "", "write its curves for papers to `DIR`, as SVG and PDF"),
		flags.Of(&o.Measured, "measured", "", nil,
			"draw measured times on that page: a `FILE` that nccl-tests or bench "+
				"printed or wrote (-J); repeatable"),
	)
}

// check refuses a page that cannot be written before hours are spent on it.
func (o *Outputs) check() error {
	if o.Report != "" && !strings.HasSuffix(o.Report, ".html") {
		return fail.Usage("--report %s: the name must end in .html", o.Report)
	}
	return cli.Directory("--report", o.Report)
}

// wrote prints the name of a file of a run and how to open it.
func wrote(a *cli.App, w scenario.Written) {
	switch {
	case w.Member == "trace":
		a.WroteOf(w.Name, fmt.Sprintf("%d events, ", w.Events), process.OpenTrace(w.Name))
	case w.Member == "profile":
		a.Wrote(w.Name, "open it with `go tool pprof -http=: "+w.Name+"`")
	case strings.HasSuffix(w.Name, ".goal"):
		a.Wrote(w.Name, "the point-to-point operations as a GOAL schedule, for LogGOPSim and ATLAHS")
	default:
		a.Wrote(w.Name, "the point-to-point operations in SimCCL's columns")
	}
}

// spec returns the output files about one operation.
func (o *Outputs) spec() scenario.Outputs {
	out := scenario.Outputs{Trace: o.Trace, Profile: o.Profile, Ops: o.Ops, Detail: cli.OrDefault(o.Detail,
		"step"), Style: cli.OrDefault(o.Style, "lanes"),
		Ranks: o.Ranks, Deps: o.Deps, MaxEvents: cli.OrDefault(o.Events, defaultEvents), EventMask: o.Mask}
	if o.Events == 0 {
		out.MaxEvents = -1
	}
	return out
}
