// Package replay runs recorded jobs on a machine and compares the simulated times with the recorded ones:
// iterations, compute, communication by group, the host.
//
// In: a load.Job and a session.Machine. Out: a Report, whose JSON the command replay prints. If the recording
// names its GPUs, Machine returns the built-in machine that has them.
//
// What it must not know: flags, files, streams.
package replay
