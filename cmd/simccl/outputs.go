package main

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/pflag"
)

// outputFlags are the files that a run writes of one timed operation.
type outputFlags struct {
	trace, profile, ops string
	report              string
	measured            []string
	detail, ranks       string
	style               string
	deps                bool
	events              int64
	mask                uint32
}

// defaultEvents is --trace-events where it is not given, as in a scenario.
const defaultEvents = 20e6

func (o *outputFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.trace, "trace", "", "write a trace of one operation of the last size to `FILE` (.json; "+
		".pftrace: Perfetto's own format; also with .gz or .zst)")
	f.StringVar(&o.profile, "profile", "", "write a pprof profile of it to `FILE` (.pb.gz)")
	f.StringVar(&o.ops, "ops", "", "write its point-to-point operations to `FILE` (.csv of SimCCL, .goal)")
	f.StringVar(&o.report, "report", "", "write an HTML page about the run to `FILE` (.html)")
	f.StringArrayVar(&o.measured, "measured", nil,
		"draw what nccl-tests or bench measured (its output, or its -J `FILE`) on the page; repeatable")
	f.StringVar(&o.detail, "trace-detail", "step", "how deep the trace goes: "+strings.Join(nccl.Simulated,
		", "))
	f.StringVar(&o.style, "trace-style", "lanes", "lanes, or nccl: the layout of NCCL's profiler plugin")
	f.StringVar(&o.ranks, "trace-ranks", "",
		"only these ranks: `0-7,16`, or all (default all; of more than 128, one for all that do the same)")
	f.BoolVar(&o.deps, "trace-deps", false,
		"also arrows inside a rank: from what was received to the send that waited for it")
	f.Int64Var(&o.events, "trace-events", defaultEvents,
		"maximum number of events of a trace; the trace counts those left out")
	f.Uint32Var(&o.mask, "event-mask", 0, "NCCL_PROFILE_EVENT_MASK: which kinds of events (default all)")
}

// check refuses a page that cannot be written before hours are spent on it.
func (o *outputFlags) check() error {
	if o.report != "" && !strings.HasSuffix(o.report, ".html") {
		return usage("--report %s: the name must end in .html", o.report)
	}
	return directory("--report", o.report)
}

// directory fails where the directory of a file to be written is not there.
func directory(flag, name string) error {
	if !newfile.Possible(name) {
		return input(fmt.Errorf("%s %s: no such directory", flag, name))
	}
	return nil
}

// wroteOutput says what to do with a file of a run.
func (a *app) wroteOutput(w scenario.Written) {
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
