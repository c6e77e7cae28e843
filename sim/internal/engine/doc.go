// Package engine runs jobs on a virtual clock: thread groups walk the programs
// of a plan, their bytes move over the links of a wire.Model, and steps that
// leave a host go through sim/internal/host.
//
// In: a plan, its Systems and machine class, and which ranks run: all of them
// (LayAll), or representatives that a Folding has laid out. Out: when every
// device ends, and reports to an Observer. It does not know how folding finds
// representatives, what a trace looks like, or how operations are launched.
//
// The model, op by op, is that of NCCL's kernels (device/prims_*.h). An op starts
// when its group is free, its data has arrived and its FIFO has room; it lasts as
// long as its bytes take at the least of the group's own rate, its part of the SM
// and its part of every link; then the receiver sees the data after a hop and the
// sender gets its credit back after a flag. Example: a slice of Simple on a ring
// waits for slice k of the rank before it and for slice k-8 to be read by the
// rank behind it; its workers copy and reduce it; one warp fences and posts the
// flag while the others continue with the next slice (step.go).
package engine
