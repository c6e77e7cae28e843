package verbs

import (
	"fmt"
	"unsafe"
)

// Arena is anonymous memory outside the Go heap: the NIC reads and writes it
// without Go code involved, and libibverbs keeps pointers into it.
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

// HostMemory gives n bytes that a NIC may use, and how to free them.
func HostMemory(n int) ([]byte, func(), error) {
	a, err := NewArena(n)
	if err != nil {
		return nil, nil, err
	}
	return a.Bytes()[:n], func() { _ = a.Close() }, nil
}

// Take cuts n bytes, aligned to 64, from the arena.
func (a *Arena) Take(n int) ([]byte, error) {
	at := (a.used + 63) &^ 63
	if at+n > len(a.mem) {
		return nil, fmt.Errorf("arena of %d bytes is full: %d more wanted at %d", len(a.mem), n, at)
	}
	a.used = at + n
	return a.mem[at : at+n : at+n], nil
}

// Bytes is the whole arena.
func (a *Arena) Bytes() []byte { return a.mem }

// Close unmaps the arena; nothing may point into it any more.
func (a *Arena) Close() error { return unmapped(a.mem) }

// AddressOf is where a slice lies.
func AddressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Values views arena memory as n values of T.
func Values[T any](a *Arena, n int) ([]T, error) {
	var zero T
	b, err := a.Take(n * int(unsafe.Sizeof(zero)))
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n), nil
}

// Pointer is an address for C. What it points to is made to live in the heap:
// a goroutine's stack may move before C reads the address.
func Pointer[T any](p *T) uintptr {
	if never {
		leak, _ = unsafe.Pointer(p), leak
	}
	return uintptr(unsafe.Pointer(p))
}

var (
	never bool // the compiler does not know
	leak  unsafe.Pointer
)

// peek reads a value of C memory.
func peek[T any](base uintptr, off int) T {
	return *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&base)), off))
}

func cString(p uintptr) string {
	if p == 0 {
		return ""
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	n := 0
	for *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}
