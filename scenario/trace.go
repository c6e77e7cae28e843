package scenario

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/export"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/profile"
	"github.com/simccl/simccl/units"
)

// Files lists the files that are asked for.
func (o *Outputs) Files() []Written {
	var out []Written
	for _, f := range []Written{{Member: "trace", Name: o.Trace}, {Member: "profile", Name: o.Profile},
		{Member: "ops", Name: o.Ops}} {
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
		err = &FieldError{Path: "outputs.ops", Value: o.Ops,
			Problem: fmt.Sprintf("the last size is too small for %d ranks; there are no operations",
				r.Site.Comm.NRanks)}
	}
	if err == nil {
		err = r.writeOps(done.Plan)
	}
	if err == nil {
		listen.made(Written{Member: "ops", Name: o.Ops})
	}
	return err
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
func (r *Running) traceOptions() (nccl.Options, error) {
	o := &r.Spec.Outputs
	detail, periods := nccl.DetailOf(o.Detail)
	which, bad, ok := parseRanks(o.Ranks, r.Site.Comm.NRanks)
	var err error
	if !ok {
		err = &FieldError{Path: "outputs.ranks", Value: bad,
			Problem: fmt.Sprintf("write ranks from 0 to %d, for example 0-7, or %s", r.Site.Comm.NRanks-1,
				allRanks)}
	}
	return nccl.Options{Detail: detail, Ranks: which, Mask: o.EventMask, Deps: o.Deps, Periods: periods}, err
}

// defaultEvents bounds a trace that names no bound.
const defaultEvents = 20e6

// Meta is what a trace of the machine says of itself.
func (m *Site) Meta(program string, seed uint64) chrome.Meta {
	meta := chrome.Meta{Source: "sim", Version: program, NCCLRules: m.Config.Rules.Version(),
		Topo: "sha256:" + m.Digest, Seed: int64(seed), Clock: "sim"}
	for _, v := range m.Settings() {
		meta.Env = append(meta.Env, trace.Str(v[0], v[1]))
	}
	return meta
}

// tracedSeed is the seed of the operation that is traced.
func (r *Running) tracedSeed() uint64 {
	if r.MayDraw() && r.pool.Load() != nil {
		if o, err := r.Outcome(r.lines[len(r.lines)-1].Operation); err == nil {
			return r.drawn(&o).Spec.seed()
		}
	}
	return r.Spec.seed()
}

// open creates the files.
func (r *Running) open(t *eventFiles, seed uint64) error {
	o := &r.Spec.Outputs
	if o.Trace != "" {
		opt := chrome.Options{Meta: r.Site.Meta(r.opt.Program, seed), MaxEvents: o.MaxEvents,
			NCCLStyle: o.Style == "nccl", Cancelled: r.opt.Cancelled}
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
		t.Trace = chrome.To(file, o.Trace, opt)
	}
	if o.Profile != "" {
		file, err := r.opt.create(o.Profile)
		if err != nil {
			return bad(fmt.Errorf("create profile: %w", err))
		}
		t.Profile = profile.To(file, o.Profile, profile.Options{Cancelled: r.opt.Cancelled})
	}
	return nil
}

// traced is an operation whose events are on their way to files.
type traced struct {
	at      Operation
	seed    uint64
	opt     nccl.Options
	planned Outcome // without a result
	done    Outcome // with one, after its simulation
	files   eventFiles
	calls   *callSink // what the simulation's events go to
	collect func()    // ends nccltrace.CollectOften
}

// begin opens the files of an operation that is simulated with a seed.
func (r *Running) begin(at Operation, seed uint64) (*traced, error) {
	t := &traced{at: at, seed: seed, collect: nccl.CollectOften()}
	err := r.prepare(t)
	if err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// end gives up what is not written.
func (t *traced) end() {
	t.files.Abort()
	t.collect()
}

func (r *Running) prepare(t *traced) (err error) {
	if t.opt, err = r.traceOptions(); err != nil {
		return err
	}
	if err := r.open(&t.files, t.seed); err != nil {
		return err
	}
	sink := t.files.All()
	if t.opt.Detail >= nccl.DetailStep && t.opt.Ranks == nil && t.opt.Mask == 0 && !t.opt.Periods {
		// of a part of the steps, or without some periods, it would be another
		sink = nccl.CriticalPath(sink, r.opt.Cancelled)
	}
	if t.at.Count > 0 {
		if t.planned, err = r.Plan(t.at, false); err != nil {
			return err
		}
		t.opt.Predicted, t.opt.Tuner = units.FromMicros(float64(t.planned.Choice.TimeUs)), r.Site.tuner()
	}
	t.calls = &callSink{Sink: sink, Shift: r.hostTime(t.planned.Plan)}
	return nil
}

// summarised reports whether a trace shows one rank for all that do the same.
func (r *Running) summarised(t *traced) bool {
	o := &r.Spec.Outputs
	return summarised(r.Site.Comm.NRanks, &t.opt) && o.Ranks == "" && o.Profile == "" && t.at.Count > 0
}

// beginRow opens the files where a row's own simulation has the events that they show: it
// is the only one of the run, and simulates everything as one with a trace does. It
// returns nil where Write is to simulate again.
func (r *Running) beginRow(at Operation, only bool) *traced {
	o, e := &r.Spec.Outputs, &r.Spec.Engine
	if !r.Records || !only || at.InPlace || at.Count == 0 || o.Trace == "" && o.Profile == "" ||
		e.Fold != "off" || e.Skip != "off" ||
		e.Fidelity == "alpha" || e.Rivals || r.Site.split != nil || r.grouped() {
		return nil
	}
	t, err := r.begin(at, r.Spec.seed())
	if err != nil {
		return nil // Write meets the error again, behind the table
	}
	if p := &t.planned; p.Plan == nil || p.Kernel != nil || p.Copies != nil || t.opt.Periods ||
		r.summarised(t) {
		t.end()
		return nil
	}
	return t
}

// simulateRow simulates an operation for its row; only: it is the only one of the run.
func (r *Running) simulateRow(ctx context.Context, at Operation, only bool, progress func(float64)) (Outcome,
	error) {
	t := r.beginRow(at, only)
	if t == nil {
		return r.Simulate(ctx, at, trace.Discard, nccl.Options{}, progress)
	}
	out, err := r.Simulate(ctx, at, t.calls, t.opt, progress)
	if t.done = out; err == nil {
		err = r.prove(at, &out)
	}
	if err != nil {
		t.end()
		return out, err
	}
	r.recorded.Store(t)
	if ctx.Err() != nil { // Rows has ended
		r.forget()
	}
	return out, nil
}

// forget gives up what a row has recorded.
func (r *Running) forget() {
	if t := r.recorded.Swap(nil); t != nil {
		t.end()
	}
}

// writeTrace writes the files of an operation's events, which it simulates again unless
// its row has them.
func (r *Running) writeTrace(ctx context.Context, at Operation, listen Listener) error {
	t := r.recorded.Swap(nil)
	if t == nil {
		var err error
		if t, err = r.begin(at, r.tracedSeed()); err != nil {
			return err
		}
	}
	defer t.end()
	if t.done.Plan == nil {
		if err := r.simulateAgain(ctx, t, listen); err != nil {
			return err
		}
	}
	r.addCalls(t.calls, at, &t.done, t.opt)
	files := &t.files
	if files.Trace != nil {
		files.Trace.Overflow(int64(len(t.calls.Over)))
		listen.began(Phase{Name: "writing trace", Counts: files.Trace.Progress})
	}
	if err := t.calls.Sink.Close(); err != nil {
		return err
	}
	if files.Trace != nil {
		n, _ := files.Trace.Progress()
		listen.made(Written{Member: "trace", Name: r.Spec.Outputs.Trace, Events: n})
	}
	if files.Profile != nil {
		listen.made(Written{Member: "profile", Name: r.Spec.Outputs.Profile})
	}
	return nil
}

// simulateAgain simulates an operation with all events.
func (r *Running) simulateAgain(ctx context.Context, t *traced, listen Listener) (err error) {
	if table, err := r.Outcome(t.at); err == nil {
		return r.drawn(&table).again(ctx, t, listen, &table)
	}
	return r.again(ctx, t, listen, nil)
}

// again simulates an operation for a trace; table is what its row has, nil where it has none.
func (r *Running) again(ctx context.Context, t *traced, listen Listener, table *Outcome) (err error) {
	var share atomic.Uint64
	progress := func(part float64) { share.Store(math.Float64bits(part)) }
	if r.summarised(t) {
		listen.began(Phase{Name: "looking for equivalent ranks", Later: 1, Share: func() float64 {
			return math.Float64frombits(share.Load())
		}})
		seen := watchRanks(r.Site.Comm.NodeOf, r.opt.Cancelled)
		if _, err = r.Simulate(ctx, t.at, seen, t.opt, progress); err == nil {
			err = seen.Close()
		}
		if err != nil {
			return err
		}
		t.opt.Ranks, t.calls.Sink = seen.Drawn, seen.Draw(t.files.All())
		progress(0)
		r.opt.warn(seen)
	}
	listen.began(Phase{Name: "simulating for the trace", Share: func() float64 {
		return math.Float64frombits(share.Load())
	}})
	if t.done, err = r.Simulate(ctx, t.at, t.calls, t.opt, progress); err != nil {
		return err
	}
	if table != nil {
		r.compareTimes(&table.Result, t.done.Result.Elapsed, t.opt.Periods)
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
