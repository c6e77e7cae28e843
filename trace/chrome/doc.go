// Package chrome writes and reads timelines in the Chrome trace event format, which Perfetto,
// chrome://tracing and speedscope open, and in Perfetto's own format (TracePackets, see perfetto.go), whose
// events are returned to readers in the form of the former.
//
// The writer takes events in any order and number: it stores them packed, sorts them in bounded memory
// through a spool file, and converts them to text or packets, and compressed data, in several goroutines. The
// finished file has its metadata first, then one event per line in time order, and equal input gives equal
// bytes. Times are printed from integers, never through a float.
//
// The reader accepts foreign files too, among them those of NCCL's example profiler plugin, which are not
// valid JSON before NCCL 2.30.
//
// docs/TRACE.md describes the requirements of viewers on the format (bounds, sorting, ids).
package chrome
