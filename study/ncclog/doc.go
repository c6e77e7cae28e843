// Package ncclog prints what NCCL itself would log under NCCL_DEBUG=INFO:
// system, paths, graphs, trees, rings, the tuning table and one line per
// operation, in NCCL 2.28.9's order and in the words of the communicator's
// release (rules.Log).
//
// Input: a comm.Comm and a rank. Output: lines without the prefix, each with
// the subsystem that NCCL_DEBUG_SUBSYS selects it by. Lines about
// addresses, processes, plugins or connections are left out: a simulated rank
// has none. Pure. NCCL counterpart: every INFO of topo.cc, paths.cc,
// search.cc, connect.cc, init.cc, tuning.cc and enqueue.cc that these print.
package ncclog
