package jobs

import (
	"context"
	"fmt"
	"strconv"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// hosted returns the job with the host of --host. With the recorded host it prints a note if the job waits
// for the profiler-slowed host, which no setting of NCCL changes.
func (o *AdviseOptions) hosted(ctx context.Context, a *cli.App, j *load.Job,
	spec scenario.Spec) (*workload.Program,
	error) {
	how := replay.Options{Host: 1}
	switch o.Host {
	case "recorded", "auto":
		if j.Rebuilt == nil {
			return j.Program, nil
		}
		spec.Workload = scenario.Workload{}
		opt := a.Options(nil)
		opt.Warn = nil // advise says it
		site, err := scenario.Load(&spec, opt)
		if err != nil {
			return nil, a.AsFlags(err)
		}
		m, err := site.Session(&spec)
		if err != nil {
			return nil, a.AsFlags(err)
		}
		if o.Host == "auto" {
			if how, err = replay.Auto(ctx, j, m, how); err != nil {
				return nil, err
			}
			break
		}
		r, err := replay.Short(ctx, j, m, how)
		if err != nil {
			return nil, err
		}
		if r.Limit != replay.LimitGPU {
			fmt.Fprintln(a.Notes(), "simccl: the end of the job waits for the host as the profiler recorded "+
				"it, which hides what settings of NCCL gain; --host auto advises for the host without one")
		}
		return j.Program, nil
	case "ideal":
		how.Host = 0
	case "unprofiled":
		if how.Hosts, _ = replay.Unprofiled(j); how.Hosts == nil {
			return nil, fail.Usage("--host unprofiled: the job is no recording of a profiler; write " +
				"recorded, ideal or a factor")
		}
	default:
		x, err := strconv.ParseFloat(o.Host, 64)
		if how.Host = x; err != nil || !(x >= 0 && x <= 1000) {
			return nil,
				fail.Usage("--host %s: write recorded, ideal, unprofiled, auto or a factor from 0 to 1000",
					o.Host)
		}
	}
	p, err := replay.Change(j.Program, how)
	if err != nil {
		return nil, fail.Argument(err)
	}
	return p, nil
}
