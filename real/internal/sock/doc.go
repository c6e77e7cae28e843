// Package sock is the transport over TCP sockets, like NCCL 2.28.9's net_socket.cc: a connection has a
// control socket, which carries each message's size and small payloads, and NCCL_SOCKET_NTHREADS x
// NCCL_NSOCKS_PERTHREAD data sockets, over which larger messages are split. Interfaces are selected by
// NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY (misc/socket.cc).
//
// Beyond NCCL: a connection is only accepted from a peer that proves the handle's key, and a peer that has
// failed ends every request with an error.
package sock
