package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	programs "github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
	"github.com/simccl/simccl/workload/transform"
)

// Words of --host.
const (
	hostRecorded   = "recorded"
	hostUnprofiled = "unprofiled"
	hostAuto       = "auto"
)

// ready is a job with the machine and the options to simulate it with.
type ready struct {
	f         *Choice
	a         *cli.App
	j         *load.Job // with the variant
	recorded  *load.Job // as it was read
	o         replay.Options
	spec      scenario.Spec
	site      *scenario.Site
	elsewhere bool   // on another machine or GPU than it was recorded on
	host      string // the word of --host, or of its default
}

// outcome is the result of a job that ran.
type outcome struct {
	report *replay.Report
	line   *timeline.Timeline
	site   *scenario.Site
	spec   scenario.Spec
	rank   func(place int) string // the name of the rank at a position
}

// prepare loads the machine that the choice selects.
func (f *Choice) prepare(a *cli.App, j *load.Job) (r *ready, err error) {
	r = &ready{f: f, a: a, recorded: j, host: f.Host}
	if r.o, err = f.options(); err != nil {
		return nil, err
	}
	if r.j, err = f.vary(j); err != nil {
		return nil, err
	}
	if err := f.unprofiled(r.j, &r.o); err != nil {
		return nil, err
	}
	p := r.j.Program
	if r.o.Replicas > 0 {
		if p, err = transform.DataParallel(p, r.o.Replicas); err != nil {
			return nil, fail.Argument(err)
		}
	}
	if r.spec, err = f.spec(a, r.j, p.Ranks()); err != nil {
		return nil, err
	}
	if r.site, err = scenario.Load(&r.spec, a.Options(nil)); err != nil {
		return nil, a.AsFlags(err)
	}
	r.elsewhere = f.GPU != "" || p.Ranks() != j.Program.Ranks() || replay.Elsewhere(r.site, &j.Meta,
		p.Ranks())
	return r, nil
}

// settle sets the host if no flag does: the recorded one, or on another machine, where no profiler runs, the
// estimate without profiler.
func (r *ready) settle(auto bool) {
	if r.host != "" {
		return
	}
	if r.host, r.o.Host = hostRecorded, 1; auto && r.recorded.Rebuilt != nil {
		r.host, r.o.Host = hostAuto, 0
	}
}

// run runs the job. With --host auto a job whose GPUs turn out to wait for the host runs again, with the
// host as it is estimated.
func (r *ready) run(ctx context.Context) (*outcome, error) {
	out, err := r.simulate(ctx)
	if err == nil && r.host == hostAuto && out.report.Limit == replay.LimitHost {
		r.o.Hosts, _ = replay.Unprofiled(r.j)
		quiet := *r.a // the line on the machine is out
		quiet.Err = io.Discard
		r.a = &quiet
		out, err = r.simulate(ctx)
	}
	if err != nil {
		return nil, err
	}
	if r.f.Host == "" && r.host == hostAuto {
		out.report.Notes = append(out.report.Notes, fmt.Sprintf("the host is %s, as --host auto finds it, "+
			"since another machine or GPU is asked for; --host recorded keeps what it took beside the "+
			"profiler", out.report.Host))
	}
	out.report.Reproduced(ctx, r.recorded, r.same() && out.report.Host == hostRecorded)
	return out, nil
}

// same reports whether the job runs as it was recorded, but for the host: on its machine, unchanged, with
// no other settings of NCCL.
func (r *ready) same() bool {
	for _, kv := range r.a.Env {
		if k, v, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "NCCL_") && r.recorded.Meta.Env[k] != v {
			return false
		}
	}
	f := r.f
	return !r.elsewhere && len(f.Variants)+len(f.Slow) == 0 && f.Place == "" && f.Machine.NCCL == "" &&
		f.Machine.LibNCCL == ""
}

// simulate runs the job with its options.
func (r *ready) simulate(ctx context.Context) (*outcome, error) {
	o := r.o
	p, err := replay.Change(r.j.Program, o)
	if err == nil && r.f.Place != "" {
		p, o.At, err = replay.Place(p, r.f.Place)
	}
	if err != nil {
		return nil, fail.Argument(err)
	}
	out := &outcome{site: r.site, spec: r.spec, rank: func(place int) string {
		return fmt.Sprintf("rank %d", place)
	}}
	if o.At != nil {
		ranks := make([]int, len(o.At))
		for rank, place := range o.At {
			ranks[place] = rank
		}
		out.rank = func(place int) string { return fmt.Sprintf("rank %d", ranks[place]) }
	}
	from, to := r.f.gpus(r.j)
	p, scaled, note, err := replay.OnGPU(r.site, p, from, to, r.f.Machine.Topo != "")
	if err != nil {
		return nil, fail.Argument(fmt.Errorf("--gpu %s: %w", r.f.GPU, err))
	}
	m, err := r.site.Session(&r.spec)
	if err != nil {
		return nil, r.a.AsFlags(err)
	}
	report, res, err := replay.Run(ctx, r.j, p, m, o)
	var wrong *programs.Problem
	if errors.As(err, &wrong) {
		return nil, fail.Input(err)
	}
	if err != nil {
		return nil, err
	}
	out.report, out.line = report, timeline.Of(res)
	report.On(r.site, scaled, note)
	if report.RecordedUs != nil {
		report.RecordedAs = r.recordedAs(report.Host)
	}
	var unknown *transform.Error
	if err := report.Free(ctx, p, m, o, r.f.Ideal); errors.As(err, &unknown) {
		return nil, fail.Argument(fmt.Errorf("--ideal: %w", err))
	} else if err != nil {
		return nil, err
	}
	return out, nil
}

// recordedAs describes what the recorded time was measured on; "" if that is what is simulated.
func (r *ready) recordedAs(host string) string {
	var parts []string
	if r.elsewhere {
		parts = append(parts, "on "+cmp.Or(r.recorded.Meta.GPU, "its own machine"))
	}
	if host != hostRecorded && r.recorded.Rebuilt != nil {
		parts = append(parts, "with the host that the profiler slowed")
	}
	return strings.Join(parts, ", ")
}

// spec returns the machine that the flags select, else that of the recording.
func (f *Choice) spec(a *cli.App, j *load.Job, ranks int) (scenario.Spec, error) {
	spec, err := f.Machine.Spec(a)
	if err != nil {
		return spec, err
	}
	if f.Machine.NCCL == "" && f.Machine.LibNCCL == "" && j.Meta.NCCL != "" {
		spec.NCCL.Version = a.Recorded(j.Meta.NCCL)
	}
	if f.Machine.Topo != "" || f.Machine.Nodes != 0 {
		return spec, nil
	}
	meta := j.Meta
	if f.GPU != "" { // the machine is that of the GPUs which compute
		_, to := f.gpus(j)
		meta.GPU = cmp.Or(replay.MachineName(to), meta.GPU)
	}
	note, err := replay.Machine(&spec, &meta, ranks)
	if err != nil {
		return spec, a.AsFlags(err)
	}
	if meta.GPU != j.Meta.GPU {
		note = strings.Replace(note, "the recording's "+meta.GPU, "--gpu", 1)
	}
	if j.Rebuilt == nil {
		note = strings.Replace(note, "the recording's ", "the job's ", 1)
	}
	fmt.Fprintf(a.Notes(), "simccl: %s\n", note)
	return spec, nil
}
