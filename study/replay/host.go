package replay

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// profilerSlow is by how much longer the host takes with PyTorch's profiler, on the rank
// where it costs least. Ten recordings of 2 x H200 with and without it: eight from 1.2 to
// 1.8, 1.5 in the median, two of them 2.8 and 3.3. A rank that records an execution trace
// too takes 1.8 to 6.9 times as long (testdata/measured/h200x2/replay/README.md).
const profilerSlow = 1.5

// What the host takes of an iteration from which on it is said to be the limit, and to
// be near it: the estimate is no better.
const (
	hostLimits = 1.15
	hostNear   = 0.75
)

// Limits of an iteration.
const (
	LimitGPU  = "gpu"
	LimitHost = "host"
	LimitNear = "gpu or host"
)

// hostWork returns the time of a list's host threads, in microseconds, and the number of launches.
func hostWork(l *workload.List) (us float64, launches int) {
	for i := range l.Steps {
		switch s := &l.Steps[i]; {
		case !workload.OnHost(s.Stream):
			if s.Kind == workload.Compute || s.Kind == workload.Issue {
				launches++
			}
		case s.Kind == workload.Compute:
			us += float64(s.Time) / 1e6
		}
	}
	return us, launches
}

// Unprofiled estimates the host time of a recorded job without profiler: a factor for each list, and the
// microseconds per iteration of the busiest rank. The profiler's overhead differs by rank, so every launch is
// assumed to cost as much as on the rank where it is cheapest, less the profiler's part there. A job without
// profiler recordings has no factors.
func Unprofiled(j *load.Job) (factors []float64, us float64) {
	if j.Rebuilt == nil {
		return nil, 0
	}
	p := j.Program
	least := -1.0
	for _, i := range p.Of {
		if t, n := hostWork(&p.Lists[i]); n > 0 && t > 0 && (least < 0 || t/float64(n) < least) {
			least = t / float64(n)
		}
	}
	if least < 0 {
		return nil, 0
	}
	marks := make([]int, len(p.Lists))
	for _, m := range p.Marks {
		marks[m.List]++
	}
	factors = make([]float64, len(p.Lists))
	for i := range p.Lists {
		t, n := hostWork(&p.Lists[i])
		factors[i] = 1 / profilerSlow
		if t > 0 {
			factors[i] = min(float64(n)*least/t, 1) / profilerSlow
		}
		us = max(us, t*factors[i]/float64(max(marks[i]-1, 1)))
	}
	return factors, us
}

// Short reports a job on a machine without its bounds.
func Short(ctx context.Context, j *load.Job, m *job.Machine, o Options) (*Report, error) {
	p, err := Change(j.Program, o)
	if err != nil {
		return nil, err
	}
	res, err := m.Run(ctx, p, job.Options{Fidelity: o.Fidelity})
	if err != nil {
		return nil, err
	}
	return Summary(j, res, o), nil
}

// Auto returns the options with the host of --host auto: no host time, or the estimate without profiler if
// that makes the host the limit.
func Auto(ctx context.Context, j *load.Job, m *job.Machine, o Options) (Options, error) {
	o.Host, o.Hosts = 0, nil
	r, err := Short(ctx, j, m, o)
	if err == nil && r.Limit == LimitHost {
		o.Hosts, _ = Unprofiled(j)
	}
	return o, err
}

// limit sets whether the GPUs or the host limit an iteration, and adds a note with the reason.
func (r *Report) limit(j *load.Job, o Options) {
	if factors, us := Unprofiled(j); factors != nil {
		r.HostAloneUs = &us
	}
	r.Limit = LimitGPU
	switch {
	case o.Host != 0 || o.Hosts != nil:
		r.Limit = pathLimit(r.Path, r.IterationUs)
	case r.HostAloneUs != nil && *r.HostAloneUs > hostLimits*r.IterationUs:
		r.Limit = LimitHost
		r.Notes = append(r.Notes, fmt.Sprintf("the host is the limit: it takes about %.1f ms an iteration "+
			"without a profiler (estimated), the GPUs %.1f; --host unprofiled has both", *r.HostAloneUs/1000,
			r.IterationUs/1000))
	case r.HostAloneUs != nil && *r.HostAloneUs > hostNear*r.IterationUs:
		r.Limit = LimitNear
		r.Notes = append(r.Notes, fmt.Sprintf("the host may be the limit: it takes about %.1f ms an "+
			"iteration without a profiler (estimated), the GPUs %.1f; --host unprofiled has both",
			*r.HostAloneUs/1000, r.IterationUs/1000))
	}
}

// pathLimit derives the limit from the critical path of a job with host steps: the host if it is the longest
// part, near if it is more than a quarter.
func pathLimit(path []Share, iteration float64) string {
	for i, s := range path {
		switch {
		case s.What != "host":
		case i == 0:
			return LimitHost
		case s.Us > iteration/4:
			return LimitNear
		}
	}
	return LimitGPU
}
