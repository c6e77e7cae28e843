package intercept

import (
	"fmt"
	"os"
	"sync"
)

// ProcMemory is the memory of processes as the system shows it in files
// (/proc/PID/mem): the collector started them, so it may read and write it.
type ProcMemory struct {
	mu    sync.Mutex
	files map[int]*os.File
}

func (m *ProcMemory) file(pid int) (*os.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f, ok := m.files[pid]; ok {
		return f, nil
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("--data: memory of process %d: %w; it needs the permission that a debugger needs (kernel.yama.ptrace_scope of at most 1)", pid, err)
	}
	if m.files == nil {
		m.files = map[int]*os.File{}
	}
	m.files[pid] = f
	return f, nil
}

// Read implements data.Memory.
func (m *ProcMemory) Read(pid int, at uint64, to []byte) error {
	f, err := m.file(pid)
	if err == nil && len(to) > 0 {
		_, err = f.ReadAt(to, int64(at))
	}
	return wrap(err, "read", pid, at, len(to))
}

// Write implements data.Memory.
func (m *ProcMemory) Write(pid int, at uint64, from []byte) error {
	f, err := m.file(pid)
	if err == nil && len(from) > 0 {
		_, err = f.WriteAt(from, int64(at))
	}
	return wrap(err, "write", pid, at, len(from))
}

func wrap(err error, what string, pid int, at uint64, n int) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %d bytes at 0x%x of process %d: %w", what, n, at, pid, err)
}
