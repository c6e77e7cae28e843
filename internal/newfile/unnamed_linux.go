package newfile

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	// tmpfileBit is __O_TMPFILE, which package syscall lacks; it is the same on
	// every architecture that Go has for Linux.
	tmpfileBit = 0o20000000
	// atFdcwd and atSymlinkFollow are of linkat(2).
	atFdcwd         = -100
	atSymlinkFollow = 0x400
)

// openUnnamed opens a file without a name in a directory (O_TMPFILE).
func openUnnamed(dir string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(dir, os.O_RDWR|syscall.O_DIRECTORY|tmpfileBit, mode)
}

// linkUnnamed links an unnamed file to a path, which must not exist. It needs /proc.
func linkUnnamed(f *os.File, to string) error {
	from, err := syscall.BytePtrFromString(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return err
	}
	name, err := syscall.BytePtrFromString(to)
	if err != nil {
		return err
	}
	at := atFdcwd
	if _, _, errno := syscall.Syscall6(syscall.SYS_LINKAT, uintptr(at), uintptr(unsafe.Pointer(from)),
		uintptr(at), uintptr(unsafe.Pointer(name)), atSymlinkFollow, 0); errno != 0 {
		return &fs.PathError{Op: "create", Path: to, Err: errno}
	}
	return nil
}
