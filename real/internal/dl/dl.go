//go:build linux && (amd64 || arm64)

// Package dl opens a vendor's shared library at run time and calls it without
// headers or cgo. A library or symbol that is not there is a typed
// *exec.UnsupportedError, never a crash.
package dl

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/simccl/simccl/exec"
)

// Lib is a shared library opened at run time.
type Lib struct {
	name   string
	handle uintptr
}

// Proc is the address of a C function.
type Proc uintptr

// Open tries the names in order ("libcuda.so.1", a full path, …) and returns
// the first that loads.
func Open(feature string, names ...string) (*Lib, error) {
	var why []string
	for _, n := range names {
		if n == "" {
			continue
		}
		h, err := purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err == nil {
			return &Lib{name: n, handle: h}, nil
		}
		why = append(why, err.Error())
	}
	return nil, &exec.UnsupportedError{Feature: feature, Needs: names[len(names)-1],
		Found: strings.Join(why, "; ")}
}

// Name returns the name under which the library was opened.
func (l *Lib) Name() string { return l.name }

// Bind fills the table's targets with the addresses of the named functions and
// returns one error naming all that are missing.
func (l *Lib) Bind(feature string, table map[string]*Proc) error {
	var missing []string
	for name, p := range table {
		a, err := purego.Dlsym(l.handle, name)
		if err != nil {
			missing = append(missing, name)
			continue
		}
		*p = Proc(a)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return &exec.UnsupportedError{Feature: feature, Needs: l.name + " with " + strings.Join(missing,
			", "), Found: "an older or different library"}
	}
	return nil
}

// Call calls a C function of up to 15 integer or pointer arguments. A pointer
// converted to uintptr in the argument list stays valid during the call.
//
//go:uintptrescapes
func (p Proc) Call(args ...uintptr) uintptr {
	if p == 0 {
		panic(fmt.Sprintf("dl: call of an unbound function with %d arguments", len(args)))
	}
	r, _, _ := purego.SyscallN(uintptr(p), args...)
	return r
}

// CallErrno is Call for functions that say in errno why they failed.
//
//go:uintptrescapes
func (p Proc) CallErrno(args ...uintptr) (uintptr, syscall.Errno) {
	if p == 0 {
		panic(fmt.Sprintf("dl: call of an unbound function with %d arguments", len(args)))
	}
	r, _, errno := purego.SyscallN(uintptr(p), args...)
	return r, syscall.Errno(errno)
}

// String copies a C string that a library owns.
func String(p uintptr) string {
	if p == 0 {
		return ""
	}
	base := *(*unsafe.Pointer)(unsafe.Pointer(&p)) // C memory, not Go's
	n := 0
	for *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}
