// Package timeline explains the outcome of a job: which ranks waited for which, how each rank spent its time,
// the critical path, and a trace of all of it.
//
// In: a job.Result. Out: Account by rank, Path, and events of package trace.
//
// It must not know files, flags, or how a job was simulated.
package timeline
