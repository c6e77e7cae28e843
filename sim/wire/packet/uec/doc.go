// Package uec simulates Ultra Ethernet transport on a leaf-spine network: NSCC
// congestion control, trimming switches, selective acknowledgements and packets
// sprayed over paths.
//
// In: a Network of hosts, leaves and spines, Flows, and a Config. Out: when each
// flow's last acknowledgement arrives, trims, marks and retransmissions. It
// knows nothing of ranks, plans or files.
//
// Time is cut into windows as in package packet, which take turns on two tiers. Draws (marks, trims, paths) are
// functions of the seed, the link or flow, and their number there. So hashed paths
// are not those of the peer, which draws them from one generator: compare ECMP
// over several seeds.
//
// Peer: htsim_uec of spcl/HTSIM, commit 8a33f33 (sim/uec.cpp, sim/uec_mp.cpp,
// sim/compositequeue.cpp), with sender-based congestion control.
package uec
