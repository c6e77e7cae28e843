// Package qp is queue pairs: the sending and the receiving half, the messages they carry, the round robin of
// a host, CNPs, and when a flow that depends on others may start.
//
// In: numbers of frames, times in ps, settings of congestion control. Out: what may be sent, what is
// missing, which messages are complete. It must not know links, switches or what a network looks like.
package qp
