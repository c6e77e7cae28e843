// Package sim runs a plan on a virtual clock. It is the executor that needs no
// hardware: thread groups (sim/gpu) walk their programs, slices move over
// shared links (sim/net), network steps pass through proxy threads (sim/rdma),
// all driven by one queue of events (sim/event).
//
// In: the Systems of the hosts, the communicator, a class of machine, and a
// plan. Out: an exec.Result and, where asked for, a trace. It knows nothing of
// search, tuning or how the plan was chosen. Result = f(input, seed): no
// goroutine, no wall clock, no map order.
//
// The model, op by op, is that of NCCL's kernels (device/prims_*.h): an op
// starts when its group is free, its data has arrived and its FIFO has room;
// it lasts as long as its bytes take at the least of the group's own rate, its
// part of the SM and its part of every link; then the receiver sees the data
// after a hop and the sender gets its credit back after a flag.
package sim
