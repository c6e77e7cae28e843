// Package packet simulates a network frame by frame: hosts with queue pairs, NICs, store-and-forward switches
// with a shared buffer, PFC or InfiniBand credits, ECN marking, congestion control and loss recovery.
//
// In: a Network of hosts, switches and cables, Flows between hosts, and a Config. Out: when each flow starts
// and ends, the deepest queues, pause frames, marks and losses. It knows nothing of ranks, plans or files.
//
// Time is divided into windows no longer than the shortest link delay, or of two delays where two groups of
// nodes take turns. An action of a node within a window cannot reach another node before the window ends. So
// nodes are simulated one after the other, each over its whole window, without a common event queue. They can
// also be simulated in parallel: results have the same bits for any number of workers.
//
// Random draws (marks, losses) are functions of the seed, the link and the frame's number there, so they do
// not depend on the order in which nodes are simulated.
//
// Reference: the HPCC simulator on ns-3 (alibaba-edu, commit 9f4be2a). EventOrder keeps its order of
// simultaneous events.
package packet
