// Package packet simulates a network frame by frame: hosts with queue pairs,
// NICs, store-and-forward switches with a shared buffer, PFC or InfiniBand
// credits, ECN marking, congestion control and loss recovery.
//
// In: a Network of hosts, switches and cables, Flows between hosts, and a
// Config. Out: when each flow starts and ends, the deepest queues, pause frames,
// marks and losses. It knows nothing of ranks, plans or files.
//
// Time is divided into windows no longer than the shortest link delay, or of two
// delays where two groups of nodes take turns. What a node does within a window
// cannot reach another node before the window ends. So nodes are simulated one
// after the other, each over its whole window, without an event queue. They can
// also be simulated in parallel: results have the same bits for any number of
// workers.
//
// Random draws (marks, losses) are functions of the seed, the link and the
// frame's number there, so they depend on no order between nodes.
//
// Reference: the HPCC simulator on ns-3 (alibaba-edu, commit 9f4be2a), whose
// order of simultaneous events EventOrder keeps.
package packet
