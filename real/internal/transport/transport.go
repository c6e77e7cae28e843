// Package transport declares the interface to networks between ranks of different processes, modelled on
// NCCL's net plugin interface v11 (net/net_v11.h): devices with properties; listen, connect, accept;
// registered memory; non-blocking isend, irecv, iflush and test. real/internal/ibv and real/internal/sock
// implement it; real/internal/host runs plans over it.
//
// A receive may take several messages at once, distinguished by tag; a send is matched with the receive of
// its tag. A message never overtakes another of its connection.
package transport

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// MaxRecvs is the largest number of messages of one receive (net_ib.cc, NCCL_NET_IB_MAX_RECVS).
const MaxRecvs = 8

// ErrClosed is returned by requests of a connection that was closed.
var ErrClosed = errors.New("connection closed")

// TruncatedError reports a message that is longer than the buffer of its receive.
type TruncatedError struct {
	Tag        int32
	Sent, Room int
}

func (e *TruncatedError) Error() string {
	return fmt.Sprintf("message of %d bytes with tag %d does not fit the %d bytes of its receive", e.Sent,
		e.Tag, e.Room)
}

// Properties describe a device (ncclNetProperties_v11_t).
type Properties struct {
	Name     string
	Mbps     int
	Port     int
	MaxRecvs int
}

// Handle is the address for a peer to connect to; it travels through the bootstrap.
type Handle []byte

// Memory is a registered buffer. If Properties.Regs is set, its bytes must be outside the Go heap.
type Memory interface {
	Bytes() []byte
	Release() error
}

// Buf is a range of a registered buffer.
type Buf struct {
	Mem  Memory
	Off  int
	Size int
}

// Request is an outstanding send, receive or flush.
type Request interface {
	// Test reports whether the request has ended; sizes are the bytes received by message. It must be called
	// until it reports true or an error.
	Test() (done bool, sizes []int, err error)
}

// SendComm is the sending end of a connection.
type SendComm interface {
	Register(mem []byte) (Memory, error)
	// Isend starts sending a message. A nil Request without error means that the receiver is not ready: try
	// again.
	Isend(b Buf, tag int32) (Request, error)
	Close() error
}

// RecvComm is the receiving end of a connection.
type RecvComm interface {
	Register(mem []byte) (Memory, error)
	// Irecv offers buffers for messages with the given tags. A nil Request without error means that too many
	// are outstanding: try again.
	Irecv(bufs []Buf, tags []int32) (Request, error)
	// Iflush makes received data visible to other readers of the memory (a GPU); a nil Request means that no
	// flush is needed.
	Iflush(bufs []Buf) (Request, error)
	Close() error
}

// Work is a completed request of a device, for timelines.
type Work struct {
	Device string
	QP     uint32
	// Lane is the index of the queue pair in its connection, of Lanes that carry data; a flush has the lane
	// after them.
	Lane, Lanes  int
	Opcode       string // RDMA_WRITE, RDMA_WRITE_WITH_IMM, RDMA_READ; send, recv
	ID           uint64
	Size         int
	Posted, Done time.Time
}

// Opcodes of Work that are no requests of their own: an offer of buffers, from before to after its posting
// (its completion is not reported), and the moment at which a receiver is notified of its data.
const (
	OpCTS     = "CTS RDMA_WRITE"
	OpArrival = "RECV_RDMA_WRITE_WITH_IMM"
)

// Watched is implemented by ends of connections that can report their work. The caller of Test calls the
// function; nil ends reporting.
type Watched interface{ Watch(func(Work)) }

// Listener waits for one peer.
type Listener interface {
	Handle() Handle
	Accept(ctx context.Context) (RecvComm, error)
	Close() error
}

// Net is a transport over the devices of this machine.
type Net interface {
	Name() string
	Devices() ([]Properties, error)
	Listen(dev int) (Listener, error)
	Connect(ctx context.Context, dev int, to Handle) (SendComm, error)
	Close() error
}
