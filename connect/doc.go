// Package connect joins the graphs of all hosts into channels over all ranks:
// rings, double binary trees, NVLS heads, point-to-point channels, and the
// transport and NIC of every connection.
//
// Input: the NCCL nodes of a communicator, each one System with its searched
// graphs (Input), and the user's settings (Params). Output: Comm, whose arrays
// are dense by rank; nodes with equal Systems share theirs, so that a hundred
// thousand ranks stay small. Pure: no clock, no environment.
//
// NCCL counterpart: init.cc (initTransportsRank), graph/connect.cc,
// graph/trees.cc, graph/rings.cc, transport/* (who can connect) at v2.28.9.
// It knows no bandwidth tables, no message sizes and no operations.
package connect
