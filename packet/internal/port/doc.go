// Package port models the ports of switches and hosts. A Link is one direction of a cable with the egress
// port that feeds it; a switch adds a SharedBuffer for its ingress side:
//
//	cable ──▶ ingress accounting (SharedBuffer: PFC thresholds) ──▶ egress queue ──▶ Link.Wire
//	◀── PAUSE/RESUME, credits
//
// In: a network and its settings, frames and times. Out: frames on links, pauses, marks, losses, statistics.
// It must not know how frames are routed through a network, or which caller runs it.
package port
