//go:build !linux || !(amd64 || arm64)

// Package dl opens a vendor's shared library at run time; on this platform there is none to open.
package dl

import (
	"runtime"
	"syscall"

	"github.com/simccl/simccl/exec"
)

// Lib is an open library.
type Lib struct{}

// Proc is the address of a C function.
type Proc uintptr

// Open always returns an *exec.UnsupportedError here.
func Open(feature string, names ...string) (*Lib, error) {
	return nil, &exec.UnsupportedError{Feature: feature, Needs: "linux on amd64 or arm64",
		Found: runtime.GOOS + "/" + runtime.GOARCH}
}

// Name returns the library's name.
func (l *Lib) Name() string { return "" }

// Bind always fails here.
func (l *Lib) Bind(feature string, table map[string]*Proc) error {
	_, err := Open(feature, "")
	return err
}

// Call returns a status that no library uses for success: no function can be bound.
func (p Proc) Call(args ...uintptr) uintptr { return ^uintptr(0) }

// CallErrno returns the status of Call, and ENOSYS.
func (p Proc) CallErrno(args ...uintptr) (uintptr, syscall.Errno) { return ^uintptr(0), syscall.ENOSYS }

// String is empty: nothing owns a string here.
func String(uintptr) string { return "" }
