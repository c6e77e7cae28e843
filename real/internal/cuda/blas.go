package cuda

import (
	"fmt"
	"unsafe"

	"github.com/simccl/simccl/real/internal/dl"
)

// BlasLib is the open cuBLAS library, whose matrix products fill a GPU.
type BlasLib struct {
	lib                              *dl.Lib
	create, destroy, setStream, gemm dl.Proc
}

// OpenBlas opens cuBLAS of CUDA 13 or 12. A missing library is an *exec.UnsupportedError.
func OpenBlas() (*BlasLib, error) {
	const feature = "products of matrices"
	lib, err := dl.Open(feature, "libcublas.so.13", "libcublas.so.12")
	if err != nil {
		return nil, err
	}
	b := &BlasLib{lib: lib}
	return b, lib.Bind(feature, map[string]*dl.Proc{"cublasCreate_v2": &b.create,
		"cublasDestroy_v2":   &b.destroy,
		"cublasSetStream_v2": &b.setStream, "cublasHgemm": &b.gemm})
}

// Blas is cuBLAS on the current device.
type Blas struct {
	lib    *BlasLib
	handle uintptr
}

func (l *BlasLib) open() (*Blas, error) {
	b := &Blas{lib: l}
	return b, blasError("cublasCreate", l.create.Call(addr(&b.handle)))
}

func (b *Blas) close() error { return blasError("cublasDestroy", b.lib.destroy.Call(b.handle)) }

// multiply queues c = a·b of n x n matrices of half-precision floats.
func (b *Blas) multiply(n int, x, y, z Ptr, s Stream) error {
	if err := blasError("cublasSetStream", b.lib.setStream.Call(b.handle, uintptr(s))); err != nil {
		return err
	}
	const half = 0x3c00
	one, zero := uint16(half), uint16(0)
	m := uintptr(n)
	return blasError("cublasHgemm", b.lib.gemm.Call(b.handle, 0, 0, m, m, m, uintptr(unsafe.Pointer(&one)),
		uintptr(x), m, uintptr(y), m,
		uintptr(unsafe.Pointer(&zero)), uintptr(z), m))
}

func blasError(call string, status uintptr) error {
	if code := int32(status); code != 0 {
		return fmt.Errorf("cuda: %s: status %d", call, code)
	}
	return nil
}
