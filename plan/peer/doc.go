// Package peer plans kernels of serving: those that move data between the memories of
// ranks themselves, without NCCL. One-shot and two-shot all_reduce, dispatch and combine of
// tokens to experts, transfers of KV caches.
//
// In: sizes and ranks. Out: a Plan, which is phases of moves between buffers of ranks, in
// which each part of the data has a place. Check proves that every rank ends with what the
// operation promises. It knows no topology and no times.
package peer
