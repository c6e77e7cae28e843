// Package sym decides what collectives over symmetric windows become: whether NCCL
// has a kernel for them, which of its kernels it takes, on how many blocks, and how
// the data of one or several tasks is spread over these. It also says which
// collectives go by copy engines.
//
// In: a Comm, which is what of a communicator bears on it, and tasks. Out: Kernels.
// All of it is a pure function; it knows no topology, no buffers and no times but
// NCCL's own estimate. NCCL has it in sym_kernels.cc and
// scheduler/symmetric_sched.cc; line numbers are those of v2.28.9-1, and what other
// releases do differently is in rules.Symmetric.
package sym
