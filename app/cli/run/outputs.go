package run

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/pflag"
)

// Outputs are the files that a run writes of one timed operation.
type Outputs struct {
	Trace, Profile, Ops string
	Report              string   // page
	Measured            []string // drawn on the page
	Detail, Ranks       string   // of the trace
	Style               string
	Deps                bool
	Events              int64
	Mask                uint32
}

// defaultEvents is --trace-events where it is not given, as in a scenario.
const defaultEvents = 20e6

func (o *Outputs) register(f *pflag.FlagSet) {
	f.StringVar(&o.Trace, "trace", "", "write a trace of one operation of the last size to `FILE` (.json; .pftrace: Perfetto's own format; also with .gz or .zst)")
	f.StringVar(&o.Profile, "profile", "", "write a pprof profile of it to `FILE` (.pb.gz)")
	f.StringVar(&o.Ops, "ops", "", "write its point-to-point operations to `FILE` (.csv of SimCCL, .goal)")
	f.StringVar(&o.Report, "report", "", "write an HTML page about the run to `FILE` (.html)")
	f.StringArrayVar(&o.Measured, "measured", nil, "draw what nccl-tests or bench measured (its output, or its -J `FILE`) on the page; repeatable")
	f.StringVar(&o.Detail, "trace-detail", "step", "how deep the trace goes: "+strings.Join(nccl.Simulated, ", "))
	f.StringVar(&o.Style, "trace-style", "lanes", "lanes, or nccl: the layout of NCCL's profiler plugin")
	f.StringVar(&o.Ranks, "trace-ranks", "", "only these ranks: `0-7,16`, or all (default all; of more than 128, one for all that do the same)")
	f.BoolVar(&o.Deps, "trace-deps", false, "also arrows inside a rank: from what was received to the send that waited for it")
	f.Int64Var(&o.Events, "trace-events", defaultEvents, "maximum number of events of a trace; the trace counts those left out")
	f.Uint32Var(&o.Mask, "event-mask", 0, "NCCL_PROFILE_EVENT_MASK: which kinds of events (default all)")
}

// check refuses a page that cannot be written before hours are spent on it.
func (o *Outputs) check() error {
	if o.Report != "" && !strings.HasSuffix(o.Report, ".html") {
		return fail.Usage("--report %s: the name must end in .html", o.Report)
	}
	return cli.Directory("--report", o.Report)
}

// wrote says what to do with a file of a run.
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

// spec is the files about one operation.
func (o *Outputs) spec() scenario.Outputs {
	out := scenario.Outputs{Trace: o.Trace, Profile: o.Profile, Ops: o.Ops, Detail: cli.OrDefault(o.Detail, "step"), Style: cli.OrDefault(o.Style, "lanes"),
		Ranks: o.Ranks, Deps: o.Deps, MaxEvents: cli.OrDefault(o.Events, defaultEvents), EventMask: o.Mask}
	if o.Events == 0 {
		out.MaxEvents = -1
	}
	return out
}
