package cuda

import (
	"encoding/binary"

	"github.com/simccl/simccl/units"
)

// HostMemory is page-locked host memory that other processes of the host can map too, and that their GPUs can
// access, as in NCCL's SHM transport (2.28.9 transport/shm.cc). NCCL uses a file in /dev/shm; here it is a
// nameless file, which no crash leaves behind and the size of /dev/shm does not limit.
type HostMemory struct {
	dev   *Device
	bytes []byte // mapping in this process
	at    Ptr    // address on its GPUs
	file  int    // -1: another process's
}

// Device returns the memory's address on the GPU.
func (m *HostMemory) Device() Ptr { return m.at }

// HostHandle identifies HostMemory to another process: process, file, inode, bytes. Zero identifies none.
type HostHandle [32]byte

// Some reports whether the handle identifies any memory.
func (h HostHandle) Some() bool { return h != HostHandle{} }

func (h *HostHandle) put(fields ...uint64) {
	for i, v := range fields {
		binary.LittleEndian.PutUint64(h[8*i:], v)
	}
}

func (h *HostHandle) get() (pid, file int, inode uint64, n units.Bytes) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(h[8*i:]) }
	return int(word(0)), int(word(1)), word(2), units.Bytes(word(3))
}

// register locks the memory's pages and makes them accessible to all GPUs of the process.
func (m *HostMemory) register() error {
	const portable, deviceMap = 1, 2
	at := addr(&m.bytes[0])
	if err := m.dev.call("cuMemHostRegister", m.dev.d.fn.memHostRegister, at, uintptr(len(m.bytes)),
		portable|deviceMap); err != nil {
		return err
	}
	err := m.dev.call("cuMemHostGetDevicePointer", m.dev.d.fn.memHostGetDevicePointer, addr(&m.at), at, 0)
	if err != nil {
		_ = m.unregister()
	}
	return err
}

func (m *HostMemory) unregister() error {
	return m.dev.call("cuMemHostUnregister", m.dev.d.fn.memHostUnregister, addr(&m.bytes[0]))
}
