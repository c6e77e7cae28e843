package packet

import (
	"testing"
	"unsafe"
)

// TestSizes bounds the memory of what there is most of: 32 bytes a frame, less
// than 1 KB a port and 512 bytes a queue pair; whole lines of a cache.
func TestSizes(t *testing.T) {
	frame, port, qp := unsafe.Sizeof(frame{}), unsafe.Sizeof(link{})+2*unsafe.Sizeof(queue{}),
		unsafe.Sizeof(sender{})+unsafe.Sizeof(receiver{})
	if frame > 32 || port > 1024 || qp > 512 {
		t.Errorf("%d bytes a frame, %d a port, %d a queue pair", frame, port, qp)
	}
	for _, size := range []uintptr{unsafe.Sizeof(link{}), unsafe.Sizeof(sender{}), unsafe.Sizeof(receiver{}),
		unsafe.Sizeof(host{})} {
		if size%64 != 0 {
			t.Errorf("%d bytes are no whole lines of a cache", size)
		}
	}
	t.Logf("%d bytes a frame, %d a port, %d a queue pair", frame, port, qp)
}
