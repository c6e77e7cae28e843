// Package symk finds how long a kernel over symmetric windows takes, and a
// collective by copy engines.
//
// In: a launch (plan/sym), the communicator's routes, a machine class. Out: the time
// of a kernel, and what each link carried. All ranks do the same at the same time
// between two barriers, so there are no events: the passes of the busiest block are
// counted as NCCL's kernels make them (device/symmetric of v2.28.9-1), each has its
// round trips and the bytes of its SM, and the fullest link bounds them all. It knows
// no clock and no proxy.
package symk
