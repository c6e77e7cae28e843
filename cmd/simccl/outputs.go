package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/trace/profile"
	"github.com/simccl/simccl/units"
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

func (o *outputFlags) register(f *pflag.FlagSet) {
	f.StringVar(&o.trace, "trace", "", "write a Chrome trace of one operation of the last size to `FILE` (.json, .json.gz)")
	f.StringVar(&o.profile, "profile", "", "write a pprof profile of it to `FILE` (.pb.gz)")
	f.StringVar(&o.ops, "ops", "", "write its point-to-point operations to `FILE` (.csv of SimCCL, .goal)")
	f.StringVar(&o.report, "report", "", "write an HTML page about the run to `FILE` (.html)")
	f.StringArrayVar(&o.measured, "measured", nil, "draw what nccl-tests or bench measured (its output, or its -J `FILE`) on the page; repeatable")
	f.StringVar(&o.detail, "trace-detail", "step", "how deep the trace goes: "+strings.Join(nccltrace.Details[:], ", "))
	f.StringVar(&o.style, "trace-style", "lanes", "lanes, or nccl: the layout of NCCL's profiler plugin")
	f.StringVar(&o.ranks, "trace-ranks", "", "only these ranks: `0-7,16`")
	f.BoolVar(&o.deps, "trace-deps", false, "also arrows inside a rank: from what was received to the send that waited for it")
	f.Int64Var(&o.events, "trace-events", 20e6, "most events of a trace; what is left out is counted in it")
	f.Uint32Var(&o.mask, "event-mask", 0, "NCCL_PROFILE_EVENT_MASK: which kinds of events (default all)")
}

// check refuses what cannot be written before hours are spent on it.
func (o *outputFlags) check() error {
	if !slices.Contains(nccltrace.Details[:], o.detail) {
		return usage("--trace-detail %s: write %s", o.detail, strings.Join(nccltrace.Details[:], ", "))
	}
	if o.style != "lanes" && o.style != "nccl" {
		return usage("--trace-style %s: write lanes or nccl", o.style)
	}
	for _, f := range []struct {
		flag, name string
		ends       []string
	}{{"--trace", o.trace, []string{".json", ".json.gz"}}, {"--profile", o.profile, []string{".pb.gz"}}, {"--ops", o.ops, []string{".csv", ".goal"}},
		{"--report", o.report, []string{".html"}}} {
		if f.name != "" && !slices.ContainsFunc(f.ends, func(e string) bool { return strings.HasSuffix(f.name, e) }) {
			return usage("%s %s: the name must end in %s", f.flag, f.name, strings.Join(f.ends, " or "))
		}
		if err := directory(f.flag, f.name); err != nil {
			return err
		}
	}
	return nil
}

// directory fails where the directory of a file to be written is not there.
func directory(flag, name string) error {
	if name == "" {
		return nil
	}
	if at, err := os.Stat(filepath.Dir(name)); err != nil || !at.IsDir() {
		return input(fmt.Errorf("%s %s: no such directory", flag, name))
	}
	return nil
}

// parseRanks reads 0-7,16; nil means every rank.
func parseRanks(s string, n int) (func(int) bool, error) {
	if s == "" {
		return nil, nil
	}
	want := make([]bool, n)
	for part := range strings.SplitSeq(s, ",") {
		a, b, ranged := strings.Cut(part, "-")
		if !ranged {
			b = a
		}
		lo, err1 := strconv.Atoi(a)
		hi, err2 := strconv.Atoi(b)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi >= n {
			return nil, usage("--trace-ranks %s: write ranks from 0 to %d, for example 0-7", part, n-1)
		}
		for i := lo; i <= hi; i++ {
			want[i] = true
		}
	}
	return func(r int) bool { return want[r] }, nil
}

// outputs writes the files that were asked for.
func (s *sweep) outputs(ctx context.Context, last line) error {
	o, p := &s.flags.out, last.point
	if o.trace != "" || o.profile != "" {
		if err := s.writeTrace(ctx, p); err != nil {
			return err
		}
	}
	if o.ops != "" {
		done, err := s.pool.wait(p)
		if err == nil && done.plan == nil {
			err = usage("--ops: the last size is too small for %d ranks; there are no operations", s.m.comm.NRanks)
		}
		if err == nil {
			err = writeOps(o.ops, done.plan)
		}
		if err != nil {
			return err
		}
		how := "the point-to-point operations in SimCCL's columns"
		if strings.HasSuffix(o.ops, ".goal") {
			how = "the point-to-point operations as a GOAL schedule, for LogGOPSim and ATLAHS"
		}
		s.app.wrote(o.ops, how)
	}
	if o.report != "" {
		if err := s.writeReport(ctx, last); err != nil {
			return err
		}
	}
	return s.app.writeJSON(s.report(), s.flags.test.output)
}

// writeJSON writes nccl-tests' JSON: with --json on standard output, and to the
// file of -J.
func (a *app) writeJSON(doc *nccltests.Report, name string) error {
	if a.json {
		if err := nccltests.WriteJSON(a.out, doc); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(a.out); err != nil {
			return err
		}
	}
	if name == "" {
		return nil
	}
	f, err := newfile.CreateNew(a.path(name)) // NAME, NAME.0, …: as nccl-tests does for -J
	if err != nil {
		return input(err)
	}
	if err := f.Finish(nccltests.WriteJSON(f, doc)); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	fmt.Fprintf(a.err, "# Writing JSON output to %s\n", f.Name())
	return nil
}

// report is the whole run. A simulation has no clock: its start is the epoch.
func (s *sweep) report() *nccltests.Report {
	r := &nccltests.Report{Start: "1970-01-01 00:00:00", End: "1970-01-01 00:00:00", Args: append([]string{"simccl"}, s.app.args...),
		Config: s.config, Devices: s.devices(), Rows: s.rows, Own: s.own, Summary: s.summary,
		Whole: toJSON(map[string]any{"machine_class": map[string]any{
			"name": s.m.class.Name, "machine": s.m.class.Machine, "source": s.m.class.Source, "uncertainty": s.m.class.Sure}})}
	for _, v := range s.m.settings() {
		r.Env = append(r.Env, v[0]+"="+v[1])
	}
	return r
}

// traceFiles are the sinks of a traced operation and what becomes of them.
type traceFiles struct {
	trace   *chrome.Writer  // nil: no trace
	profile *profile.Writer // nil: no profile
}

// open creates the files that were asked for.
func (t *traceFiles) open(s *sweep) (err error) {
	o := &s.flags.out
	if o.trace != "" {
		meta := chrome.Meta{Source: "sim", Version: version, NCCLRules: s.m.cfg.Rules.Version(), Topo: "sha256:" + s.m.digest, Seed: int64(s.flags.seed), Clock: "sim"}
		for _, v := range s.m.settings() {
			meta.Env = append(meta.Env, trace.Str(v[0], v[1]))
		}
		opt := chrome.Options{Meta: meta, MaxEvents: o.events, NCCLStyle: o.style == "nccl", Cancelled: s.app.cancelled}
		if t.trace, err = chrome.Create(o.trace, opt); err != nil {
			return input(err)
		}
	}
	if o.profile != "" {
		if t.profile, err = profile.Create(o.profile, profile.Options{Cancelled: s.app.cancelled}); err != nil {
			return input(err)
		}
	}
	return nil
}

// abort gives up what Close has not finished.
func (t *traceFiles) abort() {
	if t.trace != nil {
		t.trace.Abort()
	}
	if t.profile != nil {
		t.profile.Abort()
	}
}

// sink sends everything to all files.
func (t *traceFiles) sink() trace.Sink {
	var sinks []trace.Sink
	if t.trace != nil {
		sinks = append(sinks, t.trace)
	}
	if t.profile != nil {
		sinks = append(sinks, t.profile)
	}
	return trace.Tee(sinks...)
}

// writeTrace simulates one operation again, with everything told.
func (s *sweep) writeTrace(ctx context.Context, p point) error {
	opt, err := s.flags.out.options(s.m.comm.NRanks)
	if err != nil {
		return err
	}
	var files traceFiles
	defer files.abort()
	if err := files.open(s); err != nil {
		return err
	}
	sink := files.sink()
	if opt.Detail >= nccltrace.DetailStep && opt.Ranks == nil && opt.Mask == 0 {
		sink = nccltrace.CriticalPath(sink, s.app.cancelled) // of a part of the steps it would be another
	}
	var planned outcome
	if p.count > 0 {
		var err error
		planned, err = s.plan(p, false)
		if err != nil {
			return err
		}
		opt.Predicted, opt.Tuner = units.FromMicros(float64(planned.choice.TimeUs)), s.m.tuner()
	}
	told := s.app.progress("events", 0)
	defer told.end()
	var part atomic.Uint64
	told.phase("simulating for the trace", nil)
	told.follow(func() float64 { return math.Float64frombits(part.Load()) })
	calls := &callSink{Sink: sink, shift: s.hostTime(planned.plan)}
	done, err := s.simulateTold(ctx, p, calls, opt, func(f float64) { part.Store(math.Float64bits(f)) })
	if err != nil {
		return err
	}
	if table, err := s.pool.wait(p); err == nil && table.result.Account.Method == exec.Near {
		told.clear()
		fmt.Fprintf(s.app.err, "simccl: the trace has every rank by itself: %.2f us; the table's %.2f us are near\n",
			done.result.Elapsed.Micros(), table.result.Elapsed.Micros())
	}
	s.tellCalls(calls, p, &done, opt)
	if files.trace != nil {
		files.trace.Overflow(int64(len(calls.over)))
		told.phase("writing trace", files.trace.Progress)
	}
	if err := sink.Close(); err != nil {
		return err
	}
	told.end()
	s.app.wroteTrace(s.flags.out.trace, files.trace)
	if files.profile != nil {
		s.app.wrote(s.flags.out.profile, "look at it with `go tool pprof -http=: "+s.flags.out.profile+"`")
	}
	return nil
}

// tuner says who chooses: NCCL's model, or settings that leave it less to choose
// from.
func (m *machine) tuner() string {
	for _, v := range m.settings() {
		if v[0] == "NCCL_ALGO" || v[0] == "NCCL_PROTO" {
			return "env"
		}
	}
	return "model"
}
