package sim

import "github.com/simccl/simccl/units"

// Thread is a proxy thread: one server. What arrives at one instant is served
// as one round of its loop and is done together, so that equal connections
// stay equal.
type Thread struct {
	busy  units.Time
	total units.Time
	batch []Job
}

// Job is something a thread has to do for a connection; the words are the
// caller's.
type Job struct{ Conn, Stage int32 }

// Add takes a job of the given cost, and tells whether it is the first of its
// round: the caller then calls Round at the end of the instant.
func (t *Thread) Add(j Job, cost units.Time) bool {
	t.total += cost
	t.batch = append(t.batch, j)
	return len(t.batch) == 1
}

// Round serves what has come since the last one: jobs, in order of arrival,
// and when they are done. The slice is good until the next Add.
func (t *Thread) Round(now units.Time) ([]Job, units.Time) {
	t.busy = max(t.busy, now) + t.total
	jobs := t.batch
	t.total, t.batch = 0, t.batch[:0]
	return jobs, t.busy
}
