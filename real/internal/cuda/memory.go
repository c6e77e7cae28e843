package cuda

import (
	"runtime"
	"unsafe"

	"github.com/simccl/simccl/units"
)

// Alloc allocates n bytes of device memory.
func (dev *Device) Alloc(n units.Bytes) (Ptr, error) {
	var p Ptr
	err := dev.call("cuMemAlloc", dev.d.fn.memAlloc, addr(&p), uintptr(max(n, 1)))
	return p, err
}

// Free frees device memory.
func (dev *Device) Free(p Ptr) error { return dev.call("cuMemFree", dev.d.fn.memFree, uintptr(p)) }

// MemInfo returns free and total device memory.
func (dev *Device) MemInfo() (free, total units.Bytes, err error) {
	var f, t uint64
	err = dev.call("cuMemGetInfo", dev.d.fn.memGetInfo, addr(&f), addr(&t))
	return units.Bytes(f), units.Bytes(t), err
}

// HostAlloc allocates page-locked host memory that all devices can access, as a slice outside the Go heap.
func (dev *Device) HostAlloc(n units.Bytes) ([]byte, error) {
	const portable, deviceMap = 1, 2
	var p unsafe.Pointer
	if err := dev.call("cuMemHostAlloc", dev.d.fn.memHostAlloc, addr(&p), uintptr(max(n, 1)),
		portable|deviceMap); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), int(max(n, 1)))[:n], nil
}

// HostFree frees page-locked memory.
func (dev *Device) HostFree(b []byte) error {
	return dev.call("cuMemFreeHost", dev.d.fn.memFreeHost, uintptr(unsafe.Pointer(unsafe.SliceData(b))))
}

// Upload copies host memory to the device and waits. The driver returns once pageable memory is staged, not
// when it has arrived, and our streams do not wait for the default stream; so Upload waits explicitly.
func (dev *Device) Upload(dst Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	if err := dev.call("cuMemcpyHtoD", dev.d.fn.memcpyHtoD, uintptr(dst), uintptr(unsafe.Pointer(&src[0])),
		uintptr(len(src))); err != nil {
		return err
	}
	return dev.Sync(0)
}

// Download copies device memory to the host and waits.
func (dev *Device) Download(dst []byte, src Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	return dev.call("cuMemcpyDtoH", dev.d.fn.memcpyDtoH, uintptr(unsafe.Pointer(&dst[0])), uintptr(src),
		uintptr(len(dst)))
}

// CopyAsync queues a copy between any two addresses.
func (dev *Device) CopyAsync(dst, src Ptr, n units.Bytes, s Stream) error {
	return dev.call("cuMemcpyAsync", dev.d.fn.memcpyAsync, uintptr(dst), uintptr(src), uintptr(n), uintptr(s))
}

// Set queues filling n bytes with a value.
func (dev *Device) Set(p Ptr, value byte, n units.Bytes, s Stream) error {
	return dev.call("cuMemsetD8Async", dev.d.fn.memsetD8, uintptr(p), uintptr(value), uintptr(n), uintptr(s))
}

// IPCHandle identifies device memory to another process.
type IPCHandle [64]byte

// Export returns a handle by which another process can open p, the start of an allocation.
func (dev *Device) Export(p Ptr) (IPCHandle, error) {
	var h IPCHandle
	err := dev.call("cuIpcGetMemHandle", dev.d.fn.ipcGetMemHandle, addr(&h), uintptr(p))
	return h, err
}

// Import maps another process's memory; Unmap unmaps it. The handle is a structure of 64 bytes passed by
// value: on amd64 it is on the stack after the six argument registers, on arm64 its address is passed.
func (dev *Device) Import(h IPCHandle) (Ptr, error) {
	const lazyPeerAccess = 1
	var p Ptr
	fn := dev.d.fn.ipcOpenMemHandle
	if runtime.GOARCH != "amd64" {
		err := dev.call("cuIpcOpenMemHandle", fn, addr(&p), addr(&h), lazyPeerAccess)
		return p, err
	}
	w := (*[8]uintptr)(unsafe.Pointer(&h))
	err := dev.call("cuIpcOpenMemHandle", fn, addr(&p), lazyPeerAccess, 0, 0, 0, 0,
		w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7])
	return p, err
}

// Unmap unmaps memory of another process.
func (dev *Device) Unmap(p Ptr) error {
	return dev.call("cuIpcCloseMemHandle", dev.d.fn.ipcCloseMemHandle, uintptr(p))
}
