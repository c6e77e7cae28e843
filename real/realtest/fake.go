//go:build linux && (amd64 || arm64)

package realtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// sanitize builds the driver with GCC's address sanitizer, for a test binary that has its runtime preloaded
// (Sanitizer).
var sanitize = flag.Bool("sanitize", false,
	"build the fake CUDA driver under the address sanitizer, whose runtime is preloaded")

// units returns the driver's translation units: sources with flags. Two element types represent all.
func units(here, kernels string) [][]string {
	return [][]string{
		{filepath.Join(kernels, "free.cu"), "-DELEM=F32", "-DNAME=f32"},
		{filepath.Join(kernels, "plan.cu"), "-DELEM=F16", "-DNAME=f16"},
		{filepath.Join(kernels, "plan.cu"), "-DELEM=F32", "-DNAME=f32"},
		{filepath.Join(here, "driver.cu")},
		{filepath.Join(kernels, "plan.cu"), "-DMOVES"},
		{filepath.Join(kernels, "plan.cu"), "-DFLAGGED", "-DELEM=F32", "-DNAME=f32"},
		{filepath.Join(kernels, "plan.cu"), "-DFLAGGED", "-DELEM=F16", "-DNAME=f16"},
		{filepath.Join(kernels, "plan.cu"), "-DFLAGGED", "-DMOVES"},
		{filepath.Join(kernels, "free.cu"), "-DMOVES"},
		{filepath.Join(kernels, "parts.cu"), "-DELEM=F32", "-DNAME=f32"},
		{filepath.Join(kernels, "parts.cu"), "-DMOVES"},
		{filepath.Join(kernels, "check.cu")},
		{filepath.Join(kernels, "clock.cu")},
		{filepath.Join(kernels, "compute.cu")},
	}
}

// compiler returns the C++ compiler. Without one the test is skipped.
func compiler(t testing.TB) string {
	t.Helper()
	for _, c := range []string{"g++", "clang++", "clang++-16"} {
		if path, err := exec.LookPath(c); err == nil {
			return path
		}
	}
	t.Skip("no C++ compiler (g++ or clang++) to build the driver of tests with")
	return ""
}

// Library returns the path of the built driver, for cuda.OpenFrom. Without a C++ compiler the test is
// skipped. The file is cached by its sources' digest in the directory for temporary files, since building
// takes seconds.
func Library(t testing.TB) string {
	t.Helper()
	here := folder(t)
	kernels := filepath.Join(here, "..", "internal", "cuda", "kernels")
	cxx := compiler(t)
	flags := []string{"-O1"}
	if *sanitize {
		flags = []string{"-O0", "-fsanitize=address"}
	}
	name, err := digest(append(flags, here, kernels, cxx)...)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(os.TempDir(), "simccl-fake-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	unlock := lock(t, filepath.Join(dir, "lock"))
	defer unlock()
	lib := filepath.Join(dir, "libcuda.so.1")
	if _, err := os.Stat(lib); err == nil {
		return lib
	}
	if err := build(cxx, flags, units(here, kernels), lib); err != nil {
		t.Fatal(err)
	}
	return lib
}

// folder returns the directory of this package's sources. With -trimpath the compiler's paths do not contain
// it; but a test runs in its package's folder, below the root of the module.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		here := filepath.Join(dir, "real", "realtest")
		if _, err := os.Stat(filepath.Join(here, "driver.cu")); err == nil {
			return here
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("the driver's sources are in no folder above the test's")
		}
		dir = up
	}
}

// lock prevents test binaries of several packages from building the same library at once.
func lock(t testing.TB, path string) func() {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}

// build compiles the units, two at a time, and links them; the library appears complete or not at all.
func build(cxx string, flags []string, units [][]string, lib string) error {
	work, err := os.MkdirTemp(filepath.Dir(lib), "build")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	next := filepath.Join(work, "lib.so")
	link := append([]string{"-shared", "-pthread", "-o", next}, flags...)
	errs := make([]error, len(units))
	var wg sync.WaitGroup
	turn := make(chan struct{}, 2)
	for i, u := range units {
		obj := filepath.Join(work, fmt.Sprint(i, ".o"))
		link = append(link, obj)
		turn <- struct{}{}
		wg.Go(func() {
			args := append([]string{"-x", "c++", "-std=c++17", "-fPIC", "-pthread", "-ffp-contract=off", "-w",
				"-DHOST", "-c", "-o", obj}, flags...)
			errs[i] = compile(cxx, append(append(args, u[1:]...), u[0]))
			<-turn
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := compile(cxx, link); err != nil {
		return err
	}
	return os.Rename(next, lib)
}

func compile(cxx string, args []string) error {
	if out, err := exec.Command(cxx, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%.4000s", cxx, args, err, out)
	}
	return nil
}

// Sanitizer returns the environment that a test binary, restarted with -sanitize, needs to run with a driver
// under the address sanitizer, which detects each byte that a kernel accesses outside of buffers. Without GCC
// and the sanitizer's runtime the test is skipped.
func Sanitizer(t testing.TB) []string {
	t.Helper()
	out, err := exec.Command("g++", "-print-file-name=libasan.so").Output()
	path := strings.TrimSpace(string(out))
	if err != nil || !filepath.IsAbs(path) {
		t.Skip("no g++ with libasan to find bad accesses with")
	}
	return []string{"LD_PRELOAD=" + path, "ASAN_OPTIONS=detect_leaks=0"}
}

// Sanitized reports whether the address sanitizer is used.
func Sanitized() bool { return *sanitize }

// digest returns a hash of the sources and the compiler.
func digest(parts ...string) (string, error) {
	h := sha256.New()
	for _, p := range parts {
		files, _ := filepath.Glob(filepath.Join(p, "*"))
		for _, f := range files {
			switch filepath.Ext(f) {
			case ".cu", ".h", ".go":
				in, err := os.Open(f)
				if err != nil {
					return "", err
				}
				_, err = io.Copy(h, in)
				in.Close()
				if err != nil {
					return "", err
				}
			}
		}
		fmt.Fprintln(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// Control controls the driver of a test.
type Control struct{ lib uintptr }

// Open returns the driver's file and its control, which is reset when the test ends.
func Open(t testing.TB) (string, *Control) {
	t.Helper()
	path := Library(t)
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		t.Fatal(err)
	}
	c := &Control{h}
	c.call(t, "fakeReset")
	t.Cleanup(func() { c.call(t, "fakeReset") })
	return path, c
}

func (c *Control) call(t testing.TB, name string, args ...uintptr) {
	t.Helper()
	f, err := purego.Dlsym(c.lib, name)
	if err != nil {
		t.Fatal(err)
	}
	purego.SyscallN(f, args...)
}

// Peers sets whether GPUs can access each other's memory.
func (c *Control) Peers(t testing.TB, can bool) {
	v := uintptr(0)
	if can {
		v = 1
	}
	c.call(t, "fakePeers", v)
}

// Apart makes a GPU unable to access others' memory, and others unable to access its own.
func (c *Control) Apart(t testing.TB, dev int) { c.call(t, "fakeApart", uintptr(dev)) }

// Room sets the memory of each device in bytes.
func (c *Control) Room(t testing.TB, n int64) { c.call(t, "fakeRoom", uintptr(n)) }

// Fail lets a driver function fail once with a code, after the given number of successful calls.
func (c *Control) Fail(t testing.TB, function string, code, after int) {
	name := append([]byte(function), 0)
	c.call(t, "fakeFail", uintptr(unsafe.Pointer(&name[0])), uintptr(code), uintptr(after))
	runtime.KeepAlive(name)
}

// Used returns the allocated bytes of a device's memory.
func (c *Control) Used(t testing.TB, dev int) int64 {
	n := new(int64)
	c.call(t, "fakeUsed", uintptr(dev), uintptr(unsafe.Pointer(n)))
	return *n
}
