package scenario

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/scenario/internal/ranks"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/profile"
	"github.com/simccl/simccl/units"
)

// Phase is a part of writing the outputs that takes long.
type Phase struct {
	Name string // "writing trace"
	// Share is the part that is done; nil where Counts has how many of how many.
	Share  func() float64
	Counts func() (done, total int64)
	// Later is about how many times as long the parts that are sure to follow take.
	Later float64
}

// Written is a file of Outputs that is complete.
type Written struct {
	Member string // of Outputs: "trace", "profile", "ops"
	Name   string
	Events int64 // of a trace
}

// Listener is called with the progress of writing outputs. Its members may be nil.
type Listener struct {
	Phase func(Phase)   // is called as each part begins
	Wrote func(Written) // is called with each file once it is there
}

// Files lists the files that are asked for.
func (o *Outputs) Files() []Written {
	var out []Written
	for _, f := range []Written{{Member: "trace", Name: o.Trace}, {Member: "profile", Name: o.Profile}, {Member: "ops", Name: o.Ops}} {
		if f.Name != "" {
			out = append(out, f)
		}
	}
	return out
}

// Write writes the files of Outputs, of the last line out of place. Rows must have
// ended.
func (r *Running) Write(ctx context.Context, listen Listener) error {
	o, lines := &r.Spec.Outputs, r.Lines()
	if len(lines) == 0 {
		return nil
	}
	last := lines[len(lines)-1].Operation
	if o.Trace != "" || o.Profile != "" {
		if err := r.writeTrace(ctx, last, listen); err != nil {
			return err
		}
	}
	if o.Ops == "" {
		return nil
	}
	done, err := r.Outcome(last)
	if err == nil && done.Plan == nil {
		err = &FieldError{Path: "outputs.ops", Value: o.Ops, Problem: fmt.Sprintf("the last size is too small for %d ranks; there are no operations", r.Site.Comm.NRanks)}
	}
	if err == nil {
		err = r.writeOps(done.Plan)
	}
	if err == nil {
		listen.wrote(Written{Member: "ops", Name: o.Ops})
	}
	return err
}

func (l *Listener) wrote(w Written) {
	if l.Wrote != nil {
		l.Wrote(w)
	}
}

func (l *Listener) phase(p Phase) {
	if l.Phase != nil {
		l.Phase(p)
	}
}

// writeOps writes the list of point-to-point operations.
func (r *Running) writeOps(p *plan.Plan) error {
	name := r.Spec.Outputs.Ops
	file, err := r.opt.create(name)
	if err != nil {
		return bad(err)
	}
	write := export.WriteFlows
	if strings.HasSuffix(name, ".goal") {
		write = export.WriteGOAL
	}
	w := bufio.NewWriterSize(file, 1<<16)
	if err = write(w, p); err == nil {
		err = w.Flush()
	}
	if err = file.Finish(err); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// traceOptions are the nccltrace.Options that Outputs requests.
func (r *Running) traceOptions() (nccltrace.Options, error) {
	o := &r.Spec.Outputs
	detail, periods := nccltrace.DetailOf(o.Detail)
	which, bad, ok := ranks.Parse(o.Ranks, r.Site.Comm.NRanks)
	var err error
	if !ok {
		err = &FieldError{Path: "outputs.ranks", Value: bad, Problem: fmt.Sprintf("write ranks from 0 to %d, for example 0-7, or %s", r.Site.Comm.NRanks-1, ranks.All)}
	}
	return nccltrace.Options{Detail: detail, Ranks: which, Mask: o.EventMask, Deps: o.Deps, Periods: periods}, err
}

// sinks are the files that get the events of an operation.
type sinks struct {
	trace   *chrome.Writer  // nil: no trace
	profile *profile.Writer // nil: no profile
}

// defaultEvents bounds a trace that names no bound.
const defaultEvents = 20e6

// Meta is what a trace of the machine says of itself.
func (m *Site) Meta(program string, seed uint64) chrome.Meta {
	meta := chrome.Meta{Source: "sim", Version: program, NCCLRules: m.Config.Rules.Version(), Topo: "sha256:" + m.Digest, Seed: int64(seed), Clock: "sim"}
	for _, v := range m.Settings() {
		meta.Env = append(meta.Env, trace.Str(v[0], v[1]))
	}
	return meta
}

// open creates the files.
func (t *sinks) open(r *Running) error {
	o := &r.Spec.Outputs
	if o.Trace != "" {
		opt := chrome.Options{Meta: r.Site.Meta(r.opt.Program, r.Spec.seed()), MaxEvents: o.MaxEvents, NCCLStyle: o.Style == "nccl", Cancelled: r.opt.Cancelled}
		switch opt.MaxEvents {
		case 0:
			opt.MaxEvents = defaultEvents
		case -1:
			opt.MaxEvents = 0
		}
		if r.opt.Scratch != nil {
			opt.Spool = func() (chrome.Spool, error) { return r.opt.Scratch(o.Trace) }
		}
		file, err := r.opt.create(o.Trace)
		if err != nil {
			return bad(fmt.Errorf("create trace: %w", err))
		}
		t.trace = chrome.To(file, o.Trace, opt)
	}
	if o.Profile != "" {
		file, err := r.opt.create(o.Profile)
		if err != nil {
			return bad(fmt.Errorf("create profile: %w", err))
		}
		t.profile = profile.To(file, o.Profile, profile.Options{Cancelled: r.opt.Cancelled})
	}
	return nil
}

// abort gives up what Close has not finished.
func (t *sinks) abort() {
	if t.trace != nil {
		t.trace.Abort()
	}
	if t.profile != nil {
		t.profile.Abort()
	}
}

// all sends everything to all files.
func (t *sinks) all() trace.Sink {
	var list []trace.Sink
	if t.trace != nil {
		list = append(list, t.trace)
	}
	if t.profile != nil {
		list = append(list, t.profile)
	}
	return trace.Tee(list...)
}

// writeTrace simulates one operation again, with all events.
func (r *Running) writeTrace(ctx context.Context, at Operation, listen Listener) error {
	opt, err := r.traceOptions()
	if err != nil {
		return err
	}
	defer nccltrace.CollectOften()()
	var files sinks
	defer files.abort()
	if err := files.open(r); err != nil {
		return err
	}
	sink := files.all()
	if opt.Detail >= nccltrace.DetailStep && opt.Ranks == nil && opt.Mask == 0 && !opt.Periods {
		sink = nccltrace.CriticalPath(sink, r.opt.Cancelled) // of a part of the steps, or without some periods, it would be another
	}
	var planned Outcome
	if at.Count > 0 {
		if planned, err = r.Plan(at, false); err != nil {
			return err
		}
		opt.Predicted, opt.Tuner = units.FromMicros(float64(planned.Choice.TimeUs)), r.Site.tuner()
	}
	var share atomic.Uint64
	progress := func(part float64) { share.Store(math.Float64bits(part)) }
	if o := &r.Spec.Outputs; ranks.Summarised(r.Site.Comm.NRanks, &opt) && o.Ranks == "" && o.Profile == "" && at.Count > 0 {
		listen.phase(Phase{Name: "looking for equivalent ranks", Later: 1, Share: func() float64 { return math.Float64frombits(share.Load()) }})
		seen := ranks.Watch(r.Site.Comm.NodeOf, r.opt.Cancelled)
		if _, err = r.Simulate(ctx, at, seen, opt, progress); err == nil {
			err = seen.Close()
		}
		if err != nil {
			return err
		}
		opt.Ranks, sink = seen.Drawn, seen.Draw(files.all())
		progress(0)
		r.opt.warn(seen)
	}
	listen.phase(Phase{Name: "simulating for the trace", Share: func() float64 { return math.Float64frombits(share.Load()) }})
	calls := &callSink{Sink: sink, shift: r.hostTime(planned.Plan)}
	done, err := r.Simulate(ctx, at, calls, opt, progress)
	if err != nil {
		return err
	}
	if table, err := r.Outcome(at); err == nil {
		r.compareTimes(&table.Result, done.Result.Elapsed, opt.Periods)
	}
	r.addCalls(calls, at, &done, opt)
	if files.trace != nil {
		files.trace.Overflow(int64(len(calls.over)))
		listen.phase(Phase{Name: "writing trace", Counts: files.trace.Progress})
	}
	if err := sink.Close(); err != nil {
		return err
	}
	if files.trace != nil {
		n, _ := files.trace.Progress()
		listen.wrote(Written{Member: "trace", Name: r.Spec.Outputs.Trace, Events: n})
	}
	if files.profile != nil {
		listen.wrote(Written{Member: "profile", Name: r.Spec.Outputs.Profile})
	}
	return nil
}

// compareTimes warns where a trace's time is not that of its row in the table.
func (r *Running) compareTimes(row *exec.Result, traced units.Time, lockstep bool) {
	switch {
	case row.Account.Method == exec.Near:
		r.opt.warn(&NearError{Exact: traced, Near: row.Elapsed})
	case row.Elapsed != traced:
		r.opt.warn(&WindowError{Whole: traced, Window: row.Elapsed, Lockstep: lockstep})
	}
}

// WindowError warns that a trace shows another time than its row, of which a window was
// simulated; NearError, than its row's approximate one.
type (
	WindowError = ranks.WindowError
	NearError   = ranks.NearError
)

// tuner says who chooses: NCCL's model, or settings that leave it less to choose
// from.
func (m *Site) tuner() string {
	for _, v := range m.Settings() {
		if v[0] == "NCCL_ALGO" || v[0] == "NCCL_PROTO" {
			return "env"
		}
	}
	return "model"
}
