// Package sim runs a plan on a virtual clock. It is the executor that needs no
// hardware.
//
// In: the Systems of the hosts, the communicator, a class of machine, and a
// plan. Out: an exec.Result and, where asked for, a trace. It knows nothing of
// search, tuning or how the plan was chosen. Result = f(input, seed): no
// goroutine, no wall clock, no map order.
//
// Package sim holds the settings, checks them and puts the parts together:
//
//	sim/gpu              machine classes: what kernels, links and NICs cost
//	sim/param            what a user sets of the network: sockets, retries, faults
//	sim/internal/event            the virtual clock
//	sim/wire             the model of links: an interface, with fluid and ideal
//	sim/internal/route   which links the bytes of a connection cross
//	sim/internal/host    proxy threads, NICs and transports: RDMA, TCP, SHARP
//	sim/internal/engine  thread groups, FIFOs, kernels
//	sim/internal/fold    representatives of equal ranks
//	sim/internal/tap     the trace
//
// Each imports only those above it, fold and tap not each other.
package sim
