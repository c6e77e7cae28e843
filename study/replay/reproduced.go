package replay

import (
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/load"
)

// missed is the relative error of an iteration up to which a replay is still comparable with its recording.
// The recordings of docs/REPLAY.md are within 1 %.
const missed = 0.15

// buffered is the largest message, in bytes, that a sender does not wait with until it is received.
const buffered = 32 << 20

// Reproduced adds a first note if the simulation does not reproduce the recording: this run, if it is the
// recorded job unchanged, else a run with the recorded times of calls and without sharing, which does not
// depend on a machine.
func (r *Report) Reproduced(ctx context.Context, j *load.Job, asRecorded bool) {
	how, simulated, recorded := "simulated", 0.0, 0.0
	switch {
	case j.Rebuilt == nil || len(j.Rebuilt.Steps) == 0:
		return
	case asRecorded && r.RecordedUs != nil:
		simulated, recorded = r.IterationUs, *r.RecordedUs
	default:
		how = "with the recorded times of calls"
		if simulated, recorded = played(ctx, j); simulated == 0 {
			return
		}
	}
	if off := simulated/max(recorded, 1e-9) - 1; off > missed || off < -missed {
		r.Notes = slices.Insert(r.Notes, 0, fmt.Sprintf("the recording is not reproduced, do not compare "+
			"this job with anything: an iteration takes %.3f ms %s and took %.3f (%+.1f %%)", simulated/1000,
			how, recorded/1000, 100*off))
	}
}

// played returns the time of an iteration with the recorded times of calls and host, and its recorded time,
// in microseconds; 0 if unknown.
func played(ctx context.Context, j *load.Job) (us, took float64) {
	res, err := streams.Run(ctx, streams.Apart(j.Program, streams.Recorded, buffered))
	if err != nil { // the simulation says it, too
		return 0, 0
	}
	_, sums := between(j.Program, Options{Host: 1}, func(rank, step int) units.Time {
		return res.Spans[rank][step].End
	})
	if n := min(len(sums), len(j.Rebuilt.Steps)); n > 0 {
		for i := range n {
			us, took = us+sums[i]/float64(n), took+float64(j.Rebuilt.Steps[i].Mean)/1e6/float64(n)
		}
	}
	return us, took
}
