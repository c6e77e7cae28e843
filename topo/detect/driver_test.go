//go:build linux && (amd64 || arm64)

package detect

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// driver compiles the driver of tests under a library's name and opens it: what is opened by that name later
// is this. It returns one of its variables.
func driver(t *testing.T, library, variable string) *int32 {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler to build the driver of tests with")
	}
	file := filepath.Join(t.TempDir(), library)
	out, err := exec.Command("cc", "-shared", "-fPIC", "-Wl,-Bsymbolic,-soname,"+library, "-o", file,
		"testdata/driver.c").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := purego.Dlopen(file, purego.RTLD_NOW); err != nil {
		t.Fatal(err)
	}
	h, err := purego.Dlopen(library, purego.RTLD_NOW) // the first of this name, of an earlier test
	if err != nil {
		t.Fatal(err)
	}
	at, err := purego.Dlsym(h, variable)
	if err != nil {
		t.Fatal(err)
	}
	return *(**int32)(unsafe.Pointer(&at))
}

// TestWhatNICsReachIsTheDrivers: CUDA's attributes 116 and 124 of the GPU with a bus ID say whether NICs
// reach its memory and whether it is exported as DMA-BUF (init.cc, cuda.h); where a query fails, and before
// cuInit succeeds, nothing is claimed.
func TestWhatNICsReachIsTheDrivers(t *testing.T) {
	fails := driver(t, "libcuda.so.1", "cuda_init")
	ask := func() (said []string) {
		var gpus []GPU
		for _, id := range []string{"0000:1b:00.0", "0000:1c:00.0", "10000:1d:00.0", "0000:1e:00.0",
			"0000:ff:00.0"} {
			gpus = append(gpus, GPU{BusID: id})
		}
		for _, g := range withGDR(gpus) {
			is := g.BusID
			if g.GDR {
				is += " GDR"
			}
			if g.DMABuf {
				is += " DMA-BUF"
			}
			said = append(said, is)
		}
		return said
	}
	if *fails = 100; len(strings.Fields(strings.Join(ask(), " "))) != 5 {
		t.Errorf("without cuInit: %v", ask())
	}
	*fails = 0
	want := []string{"0000:1b:00.0 GDR DMA-BUF", "0000:1c:00.0 GDR", "10000:1d:00.0 DMA-BUF", "0000:1e:00.0",
		"0000:ff:00.0"}
	if got := ask(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
