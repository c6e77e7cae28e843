package verbs

import (
	"fmt"
	"unsafe"
)

// Arena is anonymous memory outside the Go heap: the NIC accesses it without Go code involved, and libibverbs
// stores pointers into it.
type Arena struct {
	mem  []byte
	used int
}

// NewArena maps n bytes of zeroed memory.
func NewArena(n int) (*Arena, error) {
	mem, err := mapped((n + 4095) &^ 4095)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	return &Arena{mem: mem}, nil
}

// HostMemory allocates n bytes that a NIC may use; it returns them and the function that frees them.
func HostMemory(n int) ([]byte, func(), error) {
	a, err := NewArena(n)
	if err != nil {
		return nil, nil, err
	}
	return a.Bytes()[:n], func() { _ = a.Close() }, nil
}

// Take allocates n bytes of the arena, aligned to 64.
func (a *Arena) Take(n int) ([]byte, error) {
	at := (a.used + 63) &^ 63
	if at+n > len(a.mem) {
		return nil, fmt.Errorf("arena of %d bytes is full: %d more wanted at %d", len(a.mem), n, at)
	}
	a.used = at + n
	return a.mem[at : at+n : at+n], nil
}

// Bytes returns the whole arena.
func (a *Arena) Bytes() []byte { return a.mem }

// Close unmaps the arena; no pointer into it may be used any more.
func (a *Arena) Close() error { return unmapped(a.mem) }

// AddressOf returns the address of a slice's memory.
func AddressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Values allocates n values of T in the arena.
func Values[T any](a *Arena, n int) ([]T, error) {
	var zero T
	b, err := a.Take(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}

// Pointer returns the address of *p for C. It makes *p escape to the heap: a goroutine's stack may move
// before C reads the address.
func Pointer[T any](p *T) uintptr {
	if never {
		leak, _ = unsafe.Pointer(p), leak
	}
	return uintptr(unsafe.Pointer(p))
}

var (
	never bool // always false, which the compiler does not know
	leak  unsafe.Pointer
)

// peek reads a value of C memory.
func peek[T any](base uintptr, off int) T {
	return *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&base)), off))
}
