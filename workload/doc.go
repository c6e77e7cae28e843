// Package workload represents what the ranks of a job do: calls on communicators, compute, events and groups,
// in order, on streams. One operation of one communicator is the smallest Program.
//
// A Program is data. It names no machine, plan or communication time: the same Program runs on any topology
// with as many ranks. Ranks that do the same share one List, so a job of 1,024 equal ranks is as small as one
// of 2.
//
// Communicators have kinds and parents, compute states its demand on a GPU, and host threads are streams too
// (HostStream).
//
// Lint checks what the type cannot express (members of a communicator that call in different orders, waits
// for events that are never recorded); Format and Parse convert the text form, one step a line.
//
// What it must not know: topologies, plans, executors, files.
package workload
