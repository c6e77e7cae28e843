// Package streams runs a workload.Program on a virtual clock: it computes when every rank's streams execute
// their steps, given the cost of each call by itself.
//
// In: a Program, a Cost for each of its calls (how long it takes alone, which share of links it uses, how
// many SMs its kernels hold), and the GPUs. Out: when each step of each rank begins and ends, or which ranks
// wait for each other forever. It knows no plan, topology or protocol: sim and job find the Costs.
//
// The model is a fluid one. Streams, events, dependencies and the order of a communicator's kernels make a
// graph of steps for each list (graph.go). A call progresses once the kernels that it needs have begun, at a
// rate from 0 to 1: the least of the rate of its kernels while compute runs on their GPUs (gpu.go) and of its
// max-min share of every link (fluid.go). Events are begins and ends.
//
// Example: two all-reduces that need 0.96 of the same links run at 0.52 each while both run; one that needs
// 0.3 runs at 1 while one that needs 0.96 runs at 0.73.
//
// With a Backend, calls are simulated elsewhere, step by step, and only streams and GPUs are kept here.
//
// Clock has the same order for a program that is not known yet: one that is intercepted (clock.go).
//
// NCCL counterpart: the order in which ncclLaunchKernel and streams run kernels (enqueue.cc:1493-1503).
package streams
