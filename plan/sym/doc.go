// Package sym decides how NCCL executes collectives over symmetric windows: whether it has a kernel for them,
// which of its kernels it chooses, with how many blocks, and how the data of one or several tasks is
// distributed over the blocks. It also says which collectives copy engines execute.
//
// In: a Comm, the properties of a communicator that matter, and tasks. Out: Launches. All functions are pure;
// they know no topology, no buffers and no times but NCCL's own estimate. NCCL's counterpart is
// sym_kernels.cc and scheduler/symmetric_sched.cc; line numbers are those of v2.28.9-1, and the differences
// of other releases are in rules.Symmetric.
package sym
