package scenario

import (
	"bytes"
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/simccl/simccl/workload/transform"
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
	j, err := PrepareJob(spec, opt)
	if err != nil {
		return nil, err
	}
	r, err := j.Machine.Run(ctx, j.Program, j.Options)
	if err != nil {
		return nil, err
	}
	if j.Note != "" {
		r.Notes = append(r.Notes, j.Note)
	}
	if spec.Outputs.Trace == "" {
		return r, nil
	}
	return r, j.Site.TraceJob(&spec, opt, r)
}

// ReadyJob is a job that was read, and the machine that it runs on.
type ReadyJob struct {
	Site    *Site
	Machine *job.Machine
	// Program has the compute times of the machine's GPU where these are known: Scaled says how, Note
	// what was done or why it was not, "" where there is nothing to say.
	Program *workload.Program
	Scaled  *transform.OnGPU
	Note    string
	Options job.Options
}

// PrepareJob reads the job of a Spec, loads its machine and checks all that can be checked before time
// is spent. Errors are those of RunJob.
func PrepareJob(spec Spec, opt Options) (*ReadyJob, error) {
	if len(spec.Grid) > 0 {
		return nil, ErrGrid
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	var p *workload.Program
	if spec.Workload.Job != "" { // before the machine is loaded, which takes longer
		var err error
		if p, err = ReadJob(&spec, opt); err != nil {
			return nil, err
		}
	}
	site, err := Load(&spec, opt)
	if err != nil {
		return nil, err
	}
	if p == nil {
		if p, err = site.Made(&spec); err != nil {
			return nil, err
		}
	}
	return JobOn(site, spec, p)
}

// IsJob reports whether a workload is a job: a file, or the training of a model.
func (w *Workload) IsJob() bool { return w.Job != "" || w.Train != (gen.Request{}) }

// Training is the configuration that Workload.Train is on the machine. The error is an *InputError.
func (m *Site) Training(spec *Spec) (gen.Config, error) {
	of, _ := m.GPU()
	c, err := spec.Workload.Train.Config(m.Cluster.NRanks(), of.Name)
	return c, bad(err)
}

// Made is the job that Workload.Train is on the machine.
func (m *Site) Made(spec *Spec) (*workload.Program, error) {
	c, err := m.Training(spec)
	if err != nil {
		return nil, err
	}
	j, err := gen.Make(c)
	if err != nil {
		return nil, bad(err)
	}
	return j.Program(), nil
}

// ReadJob reads the job of a Spec.
func ReadJob(spec *Spec, opt Options) (*workload.Program, error) {
	name := spec.Workload.Job
	if name == "" {
		return nil, &FieldError{Path: "workload.job", Problem: "is missing",
			Hint: "name a file with a job, or run an operation with Run"}
	}
	if o := &spec.Outputs; o.Profile != "" || o.Ops != "" {
		return nil, &FieldError{Path: "outputs", Problem: "a job has a trace alone"}
	}
	data, err := opt.ReadAs(name, maxJob, inputs.Native)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(data) {
		return nil, bad(fmt.Errorf("%s: it is no text", name))
	}
	p, err := workload.Read(bytes.NewReader(data), name)
	return p, bad(err)
}

// JobOn prepares a job for a machine that is already loaded: that of another Spec with the same
// Machine, NCCL and Network.
func JobOn(site *Site, spec Spec, p *workload.Program) (j *ReadyJob, err error) {
	j = &ReadyJob{Site: site, Options: job.Options{Observe: spec.Outputs.Trace != ""}}
	if f := spec.Engine.Fidelity; f != "" {
		if j.Options.Fidelity, err = job.ParseFidelity(f); err != nil {
			return nil, err
		}
	}
	if j.Machine, err = site.Session(&spec); err != nil {
		return nil, err
	}
	j.Program, j.Scaled, j.Note, err = site.OnGPU(p)
	return j, err
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
	o := chrome.Options{Meta: m.Meta(opt.Program, spec.seed()), MaxEvents: defaultEvents,
		Cancelled: opt.Cancelled}
	if opt.Scratch != nil {
		o.Spool = func() (chrome.Spool, error) { return opt.Scratch(name) }
	}
	w := chrome.To(file, name, o)
	t.Write(w, rank)
	w.LeaveOut("counter", t.LeftOut())
	return w.Close()
}
