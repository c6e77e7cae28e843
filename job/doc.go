// Package job runs jobs of several communicators on a machine: it makes the communicators, plans their calls
// as NCCL does, finds the time of each call, and runs the workload.Program on a virtual clock.
//
// In: a Machine (cluster, settings, machine class) and a workload.Program. Out: when each step of each rank
// begins and ends, and the bytes that links carried. There are three fidelities. Share, the default,
// simulates each distinct call once by itself and lets calls in progress share links and GPUs (job/streams).
// Step runs all plans in one engine, with links that live as long as the job. Alpha takes NCCL's own formula
// for each call and shares nothing.
//
// Example: TP groups within nodes and DP groups across them. Equal groups are one shape: NCCL's search, its
// choices and the simulations are done once for all.
//
// It knows no files, flags or reports. NCCL counterpart: ncclCommInitRank and ncclCommSplit, and the order of
// launches in enqueue.cc.
package job
