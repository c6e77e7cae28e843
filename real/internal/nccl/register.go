package nccl

import (
	"unsafe"

	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/units"
)

// CanRegister returns nil if the library can register buffers (2.19 or later), else an *exec.UnsupportedError
// that names the missing functions.
func (l *Lib) CanRegister() error { return l.lib.Bind("buffer registration", l.fn.registration()) }

// MemAlloc allocates device memory of the kind that NCCL can register, on the device of the calling thread's
// context. CanRegister must have returned nil.
func (l *Lib) MemAlloc(size units.Bytes) (cuda.Ptr, error) {
	p := new(cuda.Ptr)
	err := l.check("ncclMemAlloc", 0, l.fn.memAlloc.Call(uintptr(unsafe.Pointer(p)), uintptr(size)))
	return *p, err
}

// MemFree frees memory of MemAlloc.
func (l *Lib) MemFree(p cuda.Ptr) error {
	return l.check("ncclMemFree", 0, l.fn.memFree.Call(uintptr(p)))
}

// Register registers a buffer with a communicator.
func (l *Lib) Register(c Handle, p cuda.Ptr, size units.Bytes) (handle uintptr, err error) {
	h := new(uintptr)
	err = l.check("ncclCommRegister", c, l.fn.register.Call(uintptr(c), uintptr(p), uintptr(size),
		uintptr(unsafe.Pointer(h))))
	return *h, err
}

// Deregister undoes Register.
func (l *Lib) Deregister(c Handle, handle uintptr) error {
	return l.check("ncclCommDeregister", c, l.fn.deregister.Call(uintptr(c), handle))
}

// CanWindow returns nil if the library has windows (2.27 or later), else an error like CanRegister's.
func (l *Lib) CanWindow() error { return l.lib.Bind("symmetric windows", l.fn.windows()) }

// Window registers with a communicator a buffer that every rank has at the same offset of memory from
// MemAlloc, so that NCCL's kernels can access all ranks' buffers (NCCL_WIN_COLL_SYMMETRIC, nccl.h.in:59). All
// ranks must call it together, with the same size. On machines without such shared memory, NCCL registers the
// buffer as Register does.
func (l *Lib) Window(c Handle, p cuda.Ptr, size units.Bytes) (handle uintptr, err error) {
	const symmetric = 1
	h := new(uintptr)
	err = l.check("ncclCommWindowRegister", c,
		l.fn.windowRegister.Call(uintptr(c), uintptr(p), uintptr(size), uintptr(unsafe.Pointer(h)),
			symmetric))
	return *h, err
}

// CloseWindow undoes Window.
func (l *Lib) CloseWindow(c Handle, handle uintptr) error {
	return l.check("ncclCommWindowDeregister", c, l.fn.windowDeregister.Call(uintptr(c), handle))
}
