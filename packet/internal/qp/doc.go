// Package qp models queue pairs: the sending half (window, gaps, retransmission), the receiving half (in
// order or selective), the messages they carry, a host's round robin over them, CNPs, and flows that depend
// on others.
//
// In: sequence numbers, times in ps, settings of congestion control. Out: what may be sent, what is missing,
// which messages are complete. It must not know links, switches or what a network looks like.
package qp
