//go:build unix

package newfile

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets the owner and group of a file to those of the one that it replaces, if the process may do
// that (as root).
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if is, err := f.Stat(); err == nil {
		if s, ok := is.Sys().(*syscall.Stat_t); ok && (s.Uid != was.Uid || s.Gid != was.Gid) {
			_ = f.Chown(int(was.Uid), int(was.Gid))
		}
	}
}

// flush retrieves errors that a network file system keeps until the file is
// closed, before it gets its name.
func flush(f *os.File) error {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil // too many open files: Close reports it later
	}
	if err := syscall.Close(fd); err != nil {
		return &fs.PathError{Op: "close", Path: f.Name(), Err: err}
	}
	return nil
}
