// Package chrome writes and reads timelines in the Chrome trace event format,
// which Perfetto, chrome://tracing and speedscope open, and in Perfetto's own
// (TracePackets, see perfetto.go), whose events come to readers as those of the
// former.
//
// The writer takes events in any order and any number: it keeps them packed, sorts
// them in bounded memory through a spool file, and makes them text or packets, and
// compressed data, by several goroutines, so the finished file has its metadata
// first, then one event per line in time order, and equal input gives equal
// bytes. Times are printed from integers, never through a float.
//
// The reader takes other people's files too, among them those of NCCL's
// example profiler plugin, which are not valid JSON before NCCL 2.30.
//
// What viewers force on the format (bounds, sorting, ids) is described in
// docs/TRACE.md.
package chrome
