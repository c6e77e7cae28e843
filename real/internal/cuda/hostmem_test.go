package cuda

import (
	"errors"
	"os"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/real/realtest"
)

// madeUp opens GPU 0 of the driver of tests on this goroutine's thread.
func madeUp(t *testing.T) (*Device, *realtest.Control) {
	t.Helper()
	path, control := realtest.Open(t)
	d, err := OpenFrom(path)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	unbind, err := dev.Bind()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unbind)
	return dev, control
}

// files counts this process's open files.
func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestHostMemoryIsShared: what one mapping writes another reads, also after the
// owner has left; a handle that names something else, or nothing any more, is
// refused by type, and what failed leaves no file open.
func TestHostMemoryIsShared(t *testing.T) {
	dev, control := madeUp(t)
	before := files(t)
	own, err := dev.ShareHost(10_000)
	if err != nil {
		t.Fatal(err)
	}
	h, err := own.Handle()
	if err != nil || !h.Some() {
		t.Fatal(h, err)
	}
	other, err := dev.OpenHost(h)
	if err != nil {
		t.Fatal(err)
	}
	own.bytes[9_999] = 7
	if other.bytes[9_999] != 7 || other.bytes[0] != 0 || own.Device() == other.Device() {
		t.Errorf("read %d and %d", other.bytes[9_999], other.bytes[0])
	}
	wrong := h
	wrong[16]++ // the inode
	var u *exec.UnsupportedError
	if _, err := dev.OpenHost(wrong); !errors.As(err, &u) {
		t.Errorf("another file: %v, want *exec.UnsupportedError", err)
	}
	var c *Error
	control.Fail(t, "cuMemHostRegister", 2, 0)
	if _, err := dev.OpenHost(h); !errors.As(err, &c) || !c.OutOfMemory() {
		t.Errorf("no memory to register: %v", err)
	}
	control.Fail(t, "cuMemHostRegister", 2, 0)
	if _, err := dev.ShareHost(1); !errors.As(err, &c) || !c.OutOfMemory() {
		t.Errorf("no memory to register: %v", err)
	}
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dev.OpenHost(h); !errors.As(err, &u) {
		t.Errorf("closed memory: %v, want *exec.UnsupportedError", err)
	}
	if other.bytes[9_999] != 7 {
		t.Error("the memory went with its owner")
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if n := files(t); n != before {
		t.Errorf("%d open files, %d before", n, before)
	}
}
