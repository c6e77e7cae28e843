package sweep

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/simccl/simccl/internal/fail"
)

// TestFullDisk: a disk that fills up in the middle of a line ends the process with an error
// of input; what was written counts, the torn line does not, and with room the same
// command goes on to the same results.
func TestFullDisk(t *testing.T) {
	whole, disk := t.TempDir(), t.TempDir()
	if _, err := start(t, small, whole).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", 0, oneOfResults(t, whole)); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	dir := filepath.Join(disk, "r")
	_, err := start(t, small, dir).Do(t.Context())
	var bad *fail.Error
	if !errors.As(err, &bad) || bad.Kind != fail.BadInput || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
		t.Fatal(err)
	}
	s, err := StatusOf(dir)
	if err != nil || s.Done == 0 || s.Left == 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	out, err := start(t, small, dir).Do(t.Context())
	if err != nil || out.Done != s.Done || out.Ran != s.Left || jsonl(t, dir) != jsonl(t, whole) {
		t.Errorf("%+v, %v", out, err)
	}
}

// oneOfResults is the size of a disk that takes a sweep's other files and a page of results.
func oneOfResults(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	pages, page := 1, os.Getpagesize()
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(f.Name()) != ".jsonl" {
			pages += (int(info.Size()) + page - 1) / page
		}
	}
	return fmt.Sprintf("size=%d", pages*page)
}

// TestManyProcesses: processes that run the same points at the same time, in one folder, do
// not disturb each other.
func TestManyProcesses(t *testing.T) {
	if dir := os.Getenv("SWEEP_TEST_DIR"); dir != "" { // one of the processes
		if _, err := start(t, small, dir).Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		return
	}
	one, many := t.TempDir(), t.TempDir()
	var all []*exec.Cmd
	for range 3 {
		c := exec.Command(os.Args[0], "-test.run=^TestManyProcesses$")
		c.Env = append(os.Environ(), "SWEEP_TEST_DIR="+many)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	if _, err := start(t, small, one).Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := parts(many)
	if err != nil || len(files) == 0 || jsonl(t, one) != jsonl(t, many) {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// TestManyPoints: beside what simulates it a point costs less than a millisecond of a
// processor, and of a finished sweep less than a tenth of one. SIMCCL_BUDGET=1 takes ten
// thousand points.
func TestManyPoints(t *testing.T) {
	n := 1000
	if os.Getenv("SIMCCL_BUDGET") != "" {
		n = 10_000
	}
	text := fmt.Sprintf("base: {workload: {op: all_reduce, sizes: [8]}, machine: {nodes: [{count: 1}]}, "+
		"engine: {fidelity: alpha, noProof: true}}\nseeds: 1..%d\n", n)
	dir := t.TempDir()
	used := func(f func()) float64 {
		var a, b syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &a)
		f()
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &b)
		return float64(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano()) / 1e9
	}
	took := used(func() {
		if out, err := start(t, text, dir).Do(t.Context()); err != nil || out.Ran != n {
			t.Fatalf("%+v, %v", out, err)
		}
	})
	again := used(func() {
		if out, err := start(t, text, dir).Do(t.Context()); err != nil || out.Done != n || out.Ran != 0 {
			t.Fatalf("%+v, %v", out, err)
		}
	})
	s, err := StatusOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	simulated := s.CPU
	t.Logf("%d points: %.2f s of CPU, %.2f s of it in the points; again: %.3f s", n, took, simulated, again)
	// Twenty times what is promised: 1 ms a point, and a second for 10,000 that are done.
	if over := (took - simulated) / float64(n); over > 20*1e-3 || again > 20*1e-4*float64(n) {
		t.Errorf("%.2g s a point beside it, %.3f s for a sweep that is finished", over, again)
	}
}
