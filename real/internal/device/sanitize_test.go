package device

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/simccl/simccl/real/realtest"
)

// again starts this test binary anew with tests under GCC's address sanitizer,
// which ends it at the first byte that is read or written outside of a buffer,
// or of one that is freed.
func again(t *testing.T, tests string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-sanitize", "-test.run=^("+tests+")$")
	cmd.Env = append(os.Environ(), realtest.Sanitizer(t)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestKernelsKeepToTheirBuffers runs kernels and the driver of tests sanitized.
func TestKernelsKeepToTheirBuffers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds of two CPUs")
	}
	out, err := again(t, "TestOneByteTooMany")
	if err == nil || !strings.Contains(out, "AddressSanitizer: use-after-poison") {
		t.Fatalf("a byte behind a buffer is not seen: %v\n%.8000s", err, out)
	}
	if out, err = again(t,
		"TestShapesAreRightOnMadeUpGPUs|TestADeadRankEndsKernels|TestWithoutPeerAccess"); err != nil {
		t.Fatalf("%v\n%.8000s", err, out)
	}
}

// TestOneByteTooMany is written behind a buffer: the sanitized run must end.
func TestOneByteTooMany(t *testing.T) {
	if !realtest.Sanitized() {
		t.Skip("TestKernelsKeepToTheirBuffers runs it")
	}
	d, _ := driver(t)
	dev, err := d.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := dev.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dev.Set(p, 1, 1001, 0), dev.Sync(0)); err != nil {
		t.Fatal(err)
	}
}
