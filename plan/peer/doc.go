// Package peer plans kernels of serving that move data directly between the memories of ranks, without NCCL:
// one-shot and two-shot all_reduce, dispatch and combine of tokens to experts, transfers of KV caches.
//
// In: sizes and ranks. Out: a Plan, a sequence of phases of moves between buffers of ranks, in which each
// part of the data has a place. Check proves that every rank ends with the content that the operation
// promises. It knows no topology and no times.
package peer
