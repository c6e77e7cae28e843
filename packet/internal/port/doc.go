// Package port is the ports of switches and hosts: links (directions of cables, each with the egress port
// that feeds it), egress queues, the shared buffer of a switch with PFC and credits, pause timers,
// watchdogs, and the port of a host.
//
// In: a network and its settings, frames and times. Out: frames on links, pauses, marks, losses, and
// statistics. It must not know how frames are routed through a network, or who asks for a run.
package port
