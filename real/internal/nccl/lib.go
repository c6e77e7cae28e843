// Package nccl runs collectives through NVIDIA's own library, libnccl.so.2, opened at run time: the reference
// for simulated and our own schedules.
package nccl

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/real/internal/dl"
)

// UniqueID is ncclUniqueId, the identifier that all ranks of a communicator share.
type UniqueID [128]byte

// Handle is an ncclComm_t.
type Handle uintptr

// Error reports a failed NCCL call, with NCCL's error text and its last error message.
type Error struct {
	Call   string
	Code   int
	Text   string // ncclGetErrorString
	Detail string // ncclGetLastError
}

func (e *Error) Error() string {
	if e.Detail != "" {
		return fmt.Sprintf("nccl: %s: %s (%d): %s", e.Call, e.Text, e.Code, e.Detail)
	}
	return fmt.Sprintf("nccl: %s: %s (%d)", e.Call, e.Text, e.Code)
}

// Lib is the open libnccl with the functions used.
type Lib struct {
	lib     *dl.Lib
	version int
	fn      procs
}

type procs struct {
	getVersion, getErrorString, getLastError, getUniqueID, commInit, commDestroy, commAbort, asyncError,
	groupStart, groupEnd, allReduce, allGather, reduceScatter, broadcast, reduce, send, recv dl.Proc
	// Since NCCL 2.19; 0 if missing.
	memAlloc, memFree, register, deregister dl.Proc
	// Since 2.27.
	windowRegister, windowDeregister dl.Proc
	// Since 2.28: operations that were groups of sends and receives before.
	allToAll, gather, scatter dl.Proc
}

// registration returns the functions for buffers registered in advance.
func (p *procs) registration() map[string]*dl.Proc {
	return map[string]*dl.Proc{"ncclMemAlloc": &p.memAlloc, "ncclMemFree": &p.memFree,
		"ncclCommRegister": &p.register, "ncclCommDeregister": &p.deregister}
}

// windows returns the functions for buffers that all ranks register together.
func (p *procs) windows() map[string]*dl.Proc {
	return map[string]*dl.Proc{"ncclMemAlloc": &p.memAlloc, "ncclMemFree": &p.memFree,
		"ncclCommWindowRegister": &p.windowRegister, "ncclCommWindowDeregister": &p.windowDeregister}
}

// whole returns the functions of operations that older libraries have only as groups.
func (p *procs) whole() map[string]*dl.Proc {
	return map[string]*dl.Proc{"ncclAlltoAll": &p.allToAll, "ncclGather": &p.gather,
		"ncclScatter": &p.scatter}
}

func (p *procs) table() map[string]*dl.Proc {
	return map[string]*dl.Proc{
		"ncclGetVersion": &p.getVersion, "ncclGetErrorString": &p.getErrorString,
		"ncclGetLastError": &p.getLastError,
		"ncclGetUniqueId":  &p.getUniqueID,
		// The scalable form takes the id by pointer; ncclCommInitRank takes 128 bytes by value, which a plain
		// register call cannot pass.
		"ncclCommInitRankScalable": &p.commInit,
		"ncclCommDestroy":          &p.commDestroy, "ncclCommAbort": &p.commAbort,
		"ncclCommGetAsyncError": &p.asyncError,
		"ncclGroupStart":        &p.groupStart, "ncclGroupEnd": &p.groupEnd,
		"ncclAllReduce": &p.allReduce, "ncclAllGather": &p.allGather, "ncclReduceScatter": &p.reduceScatter,
		"ncclBroadcast": &p.broadcast, "ncclReduce": &p.reduce, "ncclSend": &p.send, "ncclRecv": &p.recv,
	}
}

// Open loads libnccl.so.2 or, if path is given, only the library at path.
func Open(path string) (*Lib, error) {
	const feature = "NCCL"
	lib, err := dl.Open(feature, cmp.Or(path, "libnccl.so.2"))
	if err != nil {
		return nil, err
	}
	l := &Lib{lib: lib}
	if err := lib.Bind(feature, l.fn.table()); err != nil {
		return nil, err
	}
	v := new(int32)
	if err := l.check("ncclGetVersion", 0, l.fn.getVersion.Call(uintptr(unsafe.Pointer(v)))); err != nil {
		return nil, err
	}
	l.version = int(*v)
	if l.version >= 22800 {
		err = lib.Bind(feature, l.fn.whole())
	}
	return l, err
}

// Setenv sets a variable for C libraries, which do not see changes of Go's environment. It must be called
// before the library reads the variable.
func Setenv(name, value string) error {
	setenv, err := libc("setenv")
	if err != nil {
		return err
	}
	k, v := append([]byte(name), 0), append([]byte(value), 0)
	return refused("set", name, setenv.Call(uintptr(unsafe.Pointer(&k[0])), uintptr(unsafe.Pointer(&v[0])),
		1))
}

// Unsetenv removes a variable for C libraries.
func Unsetenv(name string) error {
	unsetenv, err := libc("unsetenv")
	if err != nil {
		return err
	}
	k := append([]byte(name), 0)
	return refused("unset", name, unsetenv.Call(uintptr(unsafe.Pointer(&k[0]))))
}

func refused(what, name string, code uintptr) error {
	if int32(code) != 0 {
		return fmt.Errorf("nccl: %s %s: refused by the C library", what, name)
	}
	return nil
}

// libc returns a function of the C library, for its environment.
func libc(name string) (f dl.Proc, err error) {
	const feature = "environment of C"
	lib, err := dl.Open(feature, "libc.so.6")
	if err == nil {
		err = lib.Bind(feature, map[string]*dl.Proc{name: &f})
	}
	return f, err
}

// Version returns NCCL's version code, 22809 for 2.28.9.
func (l *Lib) Version() int { return l.version }

// Name returns the name under which the library was found.
func (l *Lib) Name() string { return l.lib.Name() }

func (l *Lib) check(call string, c Handle, code uintptr) error {
	n := int(int32(code))
	if n == 0 {
		return nil
	}
	e := &Error{Call: call, Code: n, Text: dl.String(l.fn.getErrorString.Call(uintptr(n)))}
	if c != 0 {
		e.Detail = dl.String(l.fn.getLastError.Call(uintptr(c)))
	}
	return e
}

// NewID returns a new unique id and starts its root in this process.
func (l *Lib) NewID() (UniqueID, error) {
	id := new(UniqueID)
	err := l.check("ncclGetUniqueId", 0, l.fn.getUniqueID.Call(uintptr(unsafe.Pointer(id))))
	return *id, err
}

// Init joins a communicator; the rank uses the device of the calling thread's context. All ranks must call it
// at the same time.
func (l *Lib) Init(id UniqueID, rank, n int) (Handle, error) {
	c, ids := new(Handle), &id
	err := l.check("ncclCommInitRankScalable", 0,
		l.fn.commInit.Call(uintptr(unsafe.Pointer(c)), uintptr(n), uintptr(rank), 1,
			uintptr(unsafe.Pointer(ids)), 0))
	return *c, err
}

// Destroy frees a communicator; it waits for its peers (see Abort).
func (l *Lib) Destroy(c Handle) error {
	return l.check("ncclCommDestroy", 0, l.fn.commDestroy.Call(uintptr(c)))
}

// Abort ends a communicator without waiting for its peers.
func (l *Lib) Abort(c Handle) error {
	return l.check("ncclCommAbort", 0, l.fn.commAbort.Call(uintptr(c)))
}

// AsyncError returns an error that occurred after a call had returned; nil if none.
func (l *Lib) AsyncError(c Handle) error {
	code := new(int32)
	if err := l.check("ncclCommGetAsyncError", c, l.fn.asyncError.Call(uintptr(c),
		uintptr(unsafe.Pointer(code)))); err != nil {
		return err
	}
	return l.check("asynchronous operation", c, uintptr(*code))
}

// Group starts all operations that f queues as one group.
func (l *Lib) Group(c Handle, f func() error) error {
	if err := l.check("ncclGroupStart", c, l.fn.groupStart.Call()); err != nil {
		return err
	}
	err := f()
	if e := l.check("ncclGroupEnd", c, l.fn.groupEnd.Call()); err == nil {
		err = e
	}
	return err
}

// Call is one operation of a rank with its buffers, counts and types.
type Call struct {
	Func       coll.Func
	Send, Recv cuda.Ptr
	Count      int64 // NCCL's count; for alltoall, gather, scatter per peer
	Type       coll.DataType
	Size       int64 // bytes of one element
	Red        coll.RedOp
	Root       int
	Rank, N    int
	Pairs      *coll.Pairs // elements by pair, if an alltoall's parts are unequal
}

// Queue queues the operation on the stream.
func (l *Lib) Queue(c Handle, o *Call, s cuda.Stream) error {
	send, recv, n, typ, st := uintptr(o.Send), uintptr(o.Recv), uintptr(o.Count), uintptr(o.Type), uintptr(s)
	comm, red, root := uintptr(c), uintptr(o.Red), uintptr(o.Root)
	switch o.Func {
	case coll.AllReduce:
		return l.check("ncclAllReduce", c, l.fn.allReduce.Call(send, recv, n, typ, red, comm, st))
	case coll.AllGather:
		return l.check("ncclAllGather", c, l.fn.allGather.Call(send, recv, n, typ, comm, st))
	case coll.ReduceScatter:
		return l.check("ncclReduceScatter", c, l.fn.reduceScatter.Call(send, recv, n, typ, red, comm, st))
	case coll.Broadcast:
		return l.check("ncclBroadcast", c, l.fn.broadcast.Call(send, recv, n, typ, root, comm, st))
	case coll.Reduce:
		return l.check("ncclReduce", c, l.fn.reduce.Call(send, recv, n, typ, red, root, comm, st))
	}
	if l.fn.allToAll == 0 || o.Pairs != nil {
		return l.queueP2P(c, o, s)
	}
	switch o.Func {
	case coll.AllToAll:
		return l.check("ncclAlltoAll", c, l.fn.allToAll.Call(send, recv, n, typ, comm, st))
	case coll.Gather:
		return l.check("ncclGather", c, l.fn.gather.Call(send, recv, n, typ, root, comm, st))
	case coll.Scatter:
		return l.check("ncclScatter", c, l.fn.scatter.Call(send, recv, n, typ, root, comm, st))
	}
	return l.queueP2P(c, o, s)
}

// sends returns the number of elements that go to a peer.
func (o *Call) sends(peer int) int64 {
	if o.Pairs != nil {
		return o.Pairs.At(int32(o.Rank), int32(peer))
	}
	return o.Count
}

// receives returns the number of elements that come from a peer.
func (o *Call) receives(peer int) int64 {
	if o.Pairs != nil {
		return o.Pairs.At(int32(peer), int32(o.Rank))
	}
	return o.Count
}

// queueP2P queues, as one group, the sends and receives of operations that consist of point-to-point calls
// (nccl-tests sendrecv.cu, alltoall.cu, …).
func (l *Lib) queueP2P(c Handle, o *Call, s cuda.Stream) (err error) {
	if err := l.check("ncclGroupStart", c, l.fn.groupStart.Call()); err != nil {
		return err
	}
	defer func() {
		if e := l.check("ncclGroupEnd", c, l.fn.groupEnd.Call()); err == nil {
			err = e
		}
	}()
	part := func(i int) uintptr { return uintptr(int64(i) * o.Count * o.Size) }
	send := func(peer int, off uintptr) error {
		return l.check("ncclSend", c, l.fn.send.Call(uintptr(o.Send)+off, uintptr(o.sends(peer)),
			uintptr(o.Type), uintptr(peer), uintptr(c), uintptr(s)))
	}
	recv := func(peer int, off uintptr) error {
		return l.check("ncclRecv", c, l.fn.recv.Call(uintptr(o.Recv)+off, uintptr(o.receives(peer)),
			uintptr(o.Type), uintptr(peer), uintptr(c), uintptr(s)))
	}
	if x, me := o.Pairs, int32(o.Rank); x != nil {
		for p := range int32(o.N) {
			if err := send(int(p), uintptr(x.From(me, p)*o.Size)); err != nil {
				return err
			}
			if err := recv(int(p), uintptr(x.To(p, me)*o.Size)); err != nil {
				return err
			}
		}
		return nil
	}
	switch o.Func {
	case coll.SendRecv:
		if err := send((o.Rank+1)%o.N, 0); err != nil {
			return err
		}
		return recv((o.Rank+o.N-1)%o.N, 0)
	case coll.AllToAll, coll.Gather, coll.Scatter:
		for p := range o.N {
			sending, recvs, sendOff, recvOff := true, true, part(p), part(p)
			switch o.Func {
			case coll.Gather:
				sending, recvs, sendOff = p == o.Root, o.Rank == o.Root, 0
			case coll.Scatter:
				sending, recvs, recvOff = o.Rank == o.Root, p == o.Root, 0
			}
			if sending {
				if err := send(p, sendOff); err != nil {
					return err
				}
			}
			if recvs {
				if err := recv(p, recvOff); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return &exec.NotImplementedError{Feature: fmt.Sprintf("NCCL operation %d", o.Func),
		Missing: "its NCCL call"}
}
