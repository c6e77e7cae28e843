package nccl

import (
	"unsafe"

	"github.com/simccl/simccl/real/cuda"
	"github.com/simccl/simccl/units"
)

// CanRegister tells whether the library registers buffers (from 2.19 on): the
// error is an *exec.UnsupportedError that names what is missing.
func (l *Lib) CanRegister() error { return l.lib.Bind("buffer registration", l.fn.registration()) }

// MemAlloc takes device memory of the kind that NCCL can register, on the
// device of the calling thread's context. CanRegister must have been asked.
func (l *Lib) MemAlloc(size units.Bytes) (cuda.Ptr, error) {
	p := new(cuda.Ptr)
	err := l.check("ncclMemAlloc", 0, l.fn.memAlloc.Call(uintptr(unsafe.Pointer(p)), uintptr(size)))
	return *p, err
}

// MemFree gives memory of MemAlloc back.
func (l *Lib) MemFree(p cuda.Ptr) error {
	return l.check("ncclMemFree", 0, l.fn.memFree.Call(uintptr(p)))
}

// Register tells a communicator of a buffer that operations will use.
func (l *Lib) Register(c Comm, p cuda.Ptr, size units.Bytes) (handle uintptr, err error) {
	h := new(uintptr)
	err = l.check("ncclCommRegister", c, l.fn.register.Call(uintptr(c), uintptr(p), uintptr(size), uintptr(unsafe.Pointer(h))))
	return *h, err
}

// Deregister takes a buffer back.
func (l *Lib) Deregister(c Comm, handle uintptr) error {
	return l.check("ncclCommDeregister", c, l.fn.deregister.Call(uintptr(c), handle))
}
