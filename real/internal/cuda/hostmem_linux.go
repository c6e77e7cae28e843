package cuda

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/units"
)

// memfdCreate is the system call's number, which package syscall lacks.
var memfdCreate = map[string]uintptr{"amd64": 319, "arm64": 279}[runtime.GOARCH]

// ShareHost allocates n bytes of zeroed host memory, for this process and those that open its handle.
func (dev *Device) ShareHost(n units.Bytes) (*HostMemory, error) {
	name, closeOnExec := []byte("simccl\x00"), uintptr(1)
	fd, _, errno := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(&name[0])), closeOnExec, 0)
	if errno != 0 {
		return nil, &exec.UnsupportedError{Feature: "host memory between processes",
			Needs: "memfd_create of Linux", Found: errno.Error()}
	}
	m := &HostMemory{dev: dev, file: int(fd)}
	page := units.Bytes(os.Getpagesize())
	size := (max(n, 1) + page - 1) / page * page
	if err := syscall.Ftruncate(m.file, int64(size)); err != nil {
		syscall.Close(m.file)
		return nil, fmt.Errorf("host memory of %d bytes: %w", size, err)
	}
	if err := m.open(m.file, size); err != nil {
		return nil, err
	}
	return m, nil
}

// open maps and registers a file; after an error nothing stays mapped.
func (m *HostMemory) open(file int, n units.Bytes) (err error) {
	if m.bytes, err = syscall.Mmap(file, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED); err != nil {
		err = fmt.Errorf("host memory of %d bytes: %w", n, err)
	} else if err = m.register(); err != nil {
		_ = syscall.Munmap(m.bytes)
		m.bytes = nil
	}
	if err != nil && m.file >= 0 {
		syscall.Close(m.file)
		m.file = -1
	}
	return err
}

// Handle returns a handle for other processes, valid until Close.
func (m *HostMemory) Handle() (h HostHandle, err error) {
	var st syscall.Stat_t
	if err := syscall.Fstat(m.file, &st); err != nil {
		return h, fmt.Errorf("host memory: %w", err)
	}
	h.put(uint64(os.Getpid()), uint64(m.file), st.Ino, uint64(len(m.bytes)))
	return h, nil
}

// OpenHost maps another process's host memory and registers it here. This requires a process of the same user
// that sees the other one in /proc.
func (dev *Device) OpenHost(h HostHandle) (*HostMemory, error) {
	pid, file, inode, n := h.get()
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, file)
	refuse := func(found string) error {
		return &exec.UnsupportedError{Feature: "host memory between processes",
			Needs: "processes of one host, user and PID namespace", Found: found}
	}
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, refuse(path + ": " + err.Error())
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Ino != inode || st.Size != int64(n) {
		return nil, refuse(path + " is something else")
	}
	m := &HostMemory{dev: dev, file: -1}
	if err := m.open(fd, n); err != nil {
		return nil, err
	}
	return m, nil
}

// Close unmaps the memory in this process; other processes keep it. No kernel may use it.
func (m *HostMemory) Close() error {
	var errs []error
	if m.bytes != nil {
		errs = append(errs, m.unregister(), syscall.Munmap(m.bytes))
		m.bytes = nil
	}
	if m.file >= 0 {
		errs = append(errs, syscall.Close(m.file))
		m.file = -1
	}
	return errors.Join(errs...)
}
