package collector

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Kinds of requests; shim.h has the same numbers.
const (
	reqHello = iota + 1
	reqInit
	reqWaitInit
	reqState
	reqSplit
	reqShrink
	reqGroup
	reqLeave
	reqSyncComm
)

// Requests about streams, events and graphs.
const (
	_ = iota + 20 // streams are made in the program
	reqStreamEnd
	reqSync
	reqQuery
	reqEventRecord
	reqEventWait
	reqEventSync
	reqEventQuery
	reqElapsed
	reqCopy
	reqSet
	reqFunction
	reqFunctionDone
	reqKernel
	reqCapture
	reqCaptureEnd
	reqGraph
	reqCapturing
	reqBye = 60
)

// Results of NCCL (ncclResult_t), and of CUDA's runtime.
const (
	success         = 0
	systemError     = 2
	internalError   = 3
	invalidArgument = 4
	invalidUsage    = 5
	remoteError     = 6
	inProgress      = 7

	cudaInvalidValue   = 1
	cudaInvalidHandle  = 400
	cudaNotReady       = 600
	cudaLaunchFailure  = 719
	cudaNotSupported   = 801
	statusFunction     = 1000
	leaveDestroy       = 0
	leaveAbort         = 1
	leaveRevoke        = 2
	leaveEnded         = 3 // its process has
	maxPayload         = 64 << 20
	requestSize        = 64
	replySize          = 48
	opSize             = 96
	nameOfWholeProcess = 0 // of a connection: that of the process, and not of a thread
)

// request is a call of a thread, with arguments by kind and what follows them.
type request struct {
	kind    uint32
	now     int64 // its clock, ps
	a       [6]int64
	payload []byte
}

// reply is the answer to a request: a result of NCCL or CUDA, and the thread's new clock in ps.
type reply struct {
	status int32
	now    int64
	a      [4]int64
	text   string
}

// readRequest reads a request. The error is that of r, or says what is wrong.
func readRequest(r io.Reader) (*request, error) {
	var b [requestSize]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	size := le.Uint32(b[:])
	if size > maxPayload {
		return nil, fmt.Errorf("a request of %d bytes; at most %d", size, maxPayload)
	}
	q := parseRequest(b[:])
	if size > 0 {
		var b bytes.Buffer // as long as what has come: what is announced takes no memory
		if n, err := io.CopyN(&b, r, int64(size)); n < int64(size) {
			return nil, err
		}
		q.payload = b.Bytes()
	}
	return q, nil
}

// parseRequest reads a request of requestSize bytes without what follows it.
func parseRequest(b []byte) *request {
	le := binary.LittleEndian
	q := &request{kind: le.Uint32(b[4:]), now: int64(le.Uint64(b[8:]))}
	for i := range q.a {
		q.a[i] = int64(le.Uint64(b[16+8*i:]))
	}
	return q
}

func (p *reply) write(w io.Writer) error {
	le := binary.LittleEndian
	b := make([]byte, replySize, replySize+len(p.text))
	le.PutUint32(b, uint32(len(p.text)))
	le.PutUint32(b[4:], uint32(p.status))
	le.PutUint64(b[8:], uint64(p.now))
	for i, v := range p.a {
		le.PutUint64(b[16+8*i:], uint64(v))
	}
	_, err := w.Write(append(b, p.text...))
	return err
}

// wireOp is an operation as the shim sends it.
type wireOp struct {
	comm, stream, count, send, recv, scalar uint64
	time                                    int64 // ns, of a record
	group, thread                           uint32
	fn, typ                                 int16
	redop, root, dev                        int32
	flags                                   uint32
	shared                                  []byte // its buffers as other processes find them
}

// names are those of NCCL's functions by number.
var names = [...]string{"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
	"AlltoAll", "Gather", "Scatter", "Send", "Recv"}

func name(o *wireOp) string {
	if o.fn >= 0 && int(o.fn) < len(names) {
		return names[o.fn]
	}
	return fmt.Sprintf("function %d", o.fn)
}

// Flags of operations.
const (
	flagInPlace = 1 << iota
	flagRegistered
	flagWindow
	flagScalarPointer
	flagComm = 8 // bits above: which communicator of its group
)

// readOp reads one operation of opSize bytes.
func readOp(b []byte) wireOp {
	le := binary.LittleEndian
	return wireOp{comm: le.Uint64(b), stream: le.Uint64(b[8:]), count: le.Uint64(b[16:]),
		send: le.Uint64(b[24:]), recv: le.Uint64(b[32:]), scalar: le.Uint64(b[40:]),
		time: int64(le.Uint64(b[48:])), group: le.Uint32(b[56:]), thread: le.Uint32(b[60:]),
		fn: int16(le.Uint16(b[64:])), typ: int16(le.Uint16(b[66:])),
		redop: int32(le.Uint32(b[68:])), root: int32(le.Uint32(b[72:])), dev: int32(le.Uint32(b[76:])),
		flags: le.Uint32(b[80:])}
}

// readOps reads a list of operations.
func readOps(b []byte, n int64) ([]wireOp, error) {
	const sharing = opSize + 3*sharedSize
	// Divided, not multiplied: n is a program's word, and 1<<60 times a size wraps to 0.
	if n > 0 && len(b)%sharing == 0 && n == int64(len(b))/sharing {
		out, err := readOps(b[:n*opSize], n)
		for i := range out {
			out[i].shared = b[n*opSize+int64(i)*3*sharedSize:][:3*sharedSize]
		}
		return out, err
	}
	if n < 0 || n != int64(len(b))/opSize || len(b)%opSize != 0 {
		return nil, fmt.Errorf("%d operations in %d bytes", n, len(b))
	}
	out := make([]wireOp, n)
	for i := range out {
		out[i] = readOp(b[i*opSize:])
	}
	return out, nil
}
