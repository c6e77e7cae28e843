// Package qp models queue pairs: the sending half (window, gaps, retransmission), the receiving half (in
// order or selective), the messages they carry, a host's round robin over them, CNPs, and dependencies
// between flows.
//
// In: sequence numbers, times in ps, settings of congestion control. Out: which frames may be sent, which are
// missing, which messages are complete. It must not know links, switches or the network's layout.
package qp
