// Package replay runs recorded jobs on a machine and compares what they take with
// what was recorded: iterations, compute, communication by group, the host.
//
// In: a load.Job and a session.Machine. Out: a Report, whose JSON the command
// replay prints. Where the recording names its machine, Machine says which built-in
// one that is.
//
// What it must not know: flags, files, streams.
package replay
