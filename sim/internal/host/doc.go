// Package host simulates the network part of a run: proxy threads, NICs, and
// the transports that carry a connection's steps from host to host.
//
// In: a connection of a plan, the steps that its sending kernel posts and its
// receiving kernel frees. Out: when data can be read and when room is there
// again (Kernels), flows on the links of a wire.Model, and reports to an
// Observer. It knows nothing of ops, channels' schedules or thread groups.
//
// A step over RDMA walks: kernel posts → sender's proxy polls it, holds a
// clear-to-send, posts the write → bytes on the wire → receiver's proxy polls
// the completion, flushes if it must, raises the tail → kernel reads. Back: the
// kernel frees a slot → receiver's proxy posts the receive and sends the
// clear-to-send; and the sender's proxy polls its own completion and returns the
// credit.
//
// Three transports differ in what a stage costs and what goes over the wire:
// RDMA (rdma.go), TCP (tcp.go), and reduction in the network (reduce.go), where
// the heads of all nodes meet on rails (rail.go).
//
// NCCL counterparts: proxy.cc, transport/net.cc, transport/net_ib.cc,
// transport/net_socket.cc, transport/coll_net.cc.
package host
