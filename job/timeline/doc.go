// Package timeline explains what became of a job: which ranks waited for which, how
// each rank spent its time, the chain of steps that the end waited for, and all of
// it as a trace.
//
// In: a session.Result. Out: Account by rank, Path, and events of package trace.
//
// What it must not know: files, flags, how a job was simulated.
package timeline
