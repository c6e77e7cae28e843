// Package packet simulates a network frame by frame: hosts with queue pairs,
// NICs, switches with a shared buffer, priority flow control, ECN marks,
// congestion control and go-back-N.
//
// In: a Network of hosts, switches and cables, Flows between hosts, and a
// Config. Out: when each flow starts and ends, the deepest queues, the pause
// frames, the marks and the losses. It knows nothing of ranks, plans or files.
//
// Time is cut into windows no longer than the least delay of a link; of two
// delays where nodes on two sides take turns. What a node does within a window
// cannot reach another node before the window ends, so nodes are simulated one
// after the other, each over its whole window, without a queue of events. The same
// holds for nodes in parallel: the results have the same bits for any number of
// workers.
//
// Random draws (marks, losses) are functions of the seed, the link and the
// number of the frame there, so they depend on no order between nodes.
//
// Peers: the HPCC simulator on ns-3 (alibaba-edu, commit 9f4be2a), whose order
// of events Compat keeps.
package packet
