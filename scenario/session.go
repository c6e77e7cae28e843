package scenario

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// maxJob bounds what is read of a job's file.
const maxJob = 1 << 30

// JobResult is what became of a job: when each step of each rank began and ended,
// what each call takes by itself, and what links carried.
type JobResult = job.Result

// Session is where jobs of several communicators run on a loaded machine: what
// spec says of engine, network and seed.
func (m *Site) Session(spec *Spec) (*job.Machine, error) {
	cfg, err := m.SimConfig(spec)
	if err != nil {
		return nil, err
	}
	p := m.Config.Topo
	if k := spec.Machine.GPUs; k > 0 {
		p.GPUs = units.Some(k)
	}
	return &job.Machine{Cluster: m.Cluster, Topo: p, Params: m.Comm.Params, Sim: cfg, World: m.Comm}, nil
}

// RunJob runs the job of a Spec, Workload.Job, and writes its timeline where
// Outputs names one. Errors are those of Load, *workload.TextErrors and
// *workload.Problems of the file, and *job.DeadlockError.
func RunJob(ctx context.Context, spec Spec, opt Options) (*JobResult, error) {
	if len(spec.Grid) > 0 {
		return nil, ErrGrid
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	name := spec.Workload.Job
	if name == "" {
		return nil, &FieldError{Path: "workload.job", Problem: "is missing", Hint: "name a file with a job, or run an operation with Run"}
	}
	if o := &spec.Outputs; o.Profile != "" || o.Ops != "" {
		return nil, &FieldError{Path: "outputs", Problem: "a job has a trace alone"}
	}
	data, err := opt.read(name, maxJob)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, bad(fmt.Errorf("%s: it is no text", name))
	}
	p, err := workload.Parse(string(data), name)
	if err != nil {
		return nil, bad(err)
	}
	site, err := Load(&spec, opt)
	if err != nil {
		return nil, err
	}
	m, err := site.Session(&spec)
	if err != nil {
		return nil, err
	}
	o := job.Options{Observe: spec.Outputs.Trace != ""}
	if f := spec.Engine.Fidelity; f != "" {
		if o.Fidelity, err = job.ParseFidelity(f); err != nil {
			return nil, err
		}
	}
	r, err := m.Run(ctx, p, o)
	if err != nil || spec.Outputs.Trace == "" {
		return r, err
	}
	return r, site.TraceJob(&spec, opt, r)
}

// TraceJob writes the timeline of a job.
func (m *Site) TraceJob(spec *Spec, opt Options, r *JobResult) error {
	return m.TraceRanks(spec, opt, timeline.Of(r), nil)
}

// TraceRanks writes the timeline of a job; rank is what the rank at a place is called,
// nil for its number.
func (m *Site) TraceRanks(spec *Spec, opt Options, t *timeline.Timeline, rank func(int) string) error {
	name := spec.Outputs.Trace
	file, err := opt.create(name)
	if err != nil {
		return bad(fmt.Errorf("create trace: %w", err))
	}
	o := chrome.Options{Meta: m.Meta(opt.Program, spec.seed()), MaxEvents: defaultEvents, Cancelled: opt.Cancelled}
	if opt.Scratch != nil {
		o.Spool = func() (chrome.Spool, error) { return opt.Scratch(name) }
	}
	w := chrome.To(file, name, o)
	t.Write(w, rank)
	w.LeaveOut("counter", t.LeftOut())
	return w.Close()
}
