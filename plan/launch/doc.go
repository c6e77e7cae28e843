// Package launch plans a group: which kernels NCCL 2.28.9 launches for the calls that
// a communicator's members issue between ncclGroupStart and ncclGroupEnd, which of the
// calls share a kernel, and which channels of it each call gets.
//
// In: a communicator, its choice of algorithms as a function, and the calls in program
// order. Out: kernels in the order of their launch; Kernel.Plan makes the plan.Plan of
// one. A group of one call is launched as that call alone.
//
// What NCCL does to the calls of a group (ncclPrepareTasks, enqueue.cc:347;
// ncclLaunchPrepare, enqueue.cc:1417):
//
//   - collectives are sorted by size, gathered by function, reduction and type, and of
//     each of these the ones within a factor of four get one algorithm (prepare.go);
//   - they are laid on the channels one after another until the works of a kernel are
//     full, then on those of the next kernel (coll.go);
//   - sends and receives follow in the last of these kernels and in further ones, in
//     the rounds of the communicator's schedule (p2p.go);
//   - collectives on symmetric windows have kernels of their own, which come first.
//
// It knows no topology, no time and no cost model.
package launch
