// Package tap writes what an engine does as a trace of NCCL's profiler events: it
// is the engine.Observer behind --trace.
//
// In: an engine that is laid out, a sink, and how much is wanted. Out: the events
// of the last simulated operation, shifted to begin at zero, with the terms of the
// timing model that each slice consists of. It reads the engine and changes
// nothing of it.
package tap
