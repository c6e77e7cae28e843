//go:build unix

package verbs

import "syscall"

// mapped returns zeroed memory outside the Go heap.
func mapped(n int) ([]byte, error) {
	return syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
}

func unmapped(b []byte) error { return syscall.Munmap(b) }

// ownFile returns a duplicate of a file descriptor, set to non-blocking.
func ownFile(fd int) (int, error) {
	if err := syscall.SetNonblock(fd, true); err != nil {
		return -1, err
	}
	return syscall.Dup(fd)
}
