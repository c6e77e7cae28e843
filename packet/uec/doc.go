// Package uec simulates Ultra Ethernet transport on leaf-spine networks of two or
// three tiers: NSCC congestion control, trimming switches, selective
// acknowledgements and packet spraying.
//
// In: a Network of hosts, leaves and spines, Flows, and a Config. Out: when each
// flow's last acknowledgement arrives, trims, marks and retransmissions. It
// knows nothing of ranks, plans or files.
//
// Time is divided into windows as in package packet; on two tiers they take turns.
// Random draws (marks, trims, paths) are functions of the seed, the link or flow,
// and a number there. Frames that arrive at a switch at one instant are in the peer's order (order.go).
// Only flows are set up with htsim's generator, so that equal seeds hash them to equal paths.
//
// Reference: htsim_uec of spcl/HTSIM, commit 8a33f33 (sim/uec.cpp, sim/uec_mp.cpp,
// sim/compositequeue.cpp), with sender-based congestion control.
package uec
