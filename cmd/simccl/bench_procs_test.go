package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/real/realtest"
)

// onMadeUpGPUs starts three processes, each with a GPU of the driver of tests,
// that run the plan of an operation.
func onMadeUpGPUs(t *testing.T, args ...string) []*rankProcess {
	t.Helper()
	t.Setenv("LD_LIBRARY_PATH", realtest.FakeDriver(t))
	t.Setenv("NCCL_NVLS_ENABLE", "0")
	topo := filepath.Join(golden.Root(t, "testdata", "topos"), "h200x4-4.xml")
	return processes(t, 3, append([]string{"bench", "all_reduce", "--backend", "cuda", "--algo", "plan",
		"--topo", topo, "-g", "1"}, args...)...)
}

// TestBenchOnGPUsOverProcesses: the plan over peer memory of other processes,
// and over the host where the settings say so; verified, and traced so that the
// ranks' files become one.
func TestBenchOnGPUsOverProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles kernels and runs processes")
	}
	for _, c := range []struct{ name, disable, transport string }{{"peer memory", "0", "P2P/CUMEM"},
		{"host memory", "1", "SHM"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("NCCL_P2P_DISABLE", c.disable)
			dir := t.TempDir()
			all := onMadeUpGPUs(t, "-b", "64K", "-e", "64K", "-n", "1", "-w", "1", "--trace",
				filepath.Join(dir, "t.json"))
			for r, p := range all {
				if err := p.wait(t, processTime); err != nil {
					t.Fatalf("rank %d: %v\n%s", r, err, p.err.String())
				}
			}
			if s := all[0].out.String(); !strings.Contains(s, "# Out of bounds values : 0 OK") {
				t.Errorf("rank 0 prints\n%s", s)
			}
			if s, err := os.ReadFile(filepath.Join(dir, "t.rank1.json")); err != nil ||
				!strings.Contains(string(s), `"`+c.transport+`"`) {
				t.Errorf("no message of rank 1 goes over %s (%v)", c.transport, err)
			}
			joinTraces(t, dir, 3)
		})
	}
}

// TestGPUsAreGivenUp: --limit ends a measurement on all ranks, by their own
// limit or by what another reports.
func TestGPUsAreGivenUp(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four seconds, most of them waiting")
	}
	all := onMadeUpGPUs(t, "-b", "64K", "-e", "64K", "-n", "100000", "-w", "1", "--limit", "1s")
	first := 0
	for r, p := range all {
		if p.wait(t, processTime) == nil {
			t.Errorf("rank %d: no error", r)
		}
		switch code := p.ProcessState.ExitCode(); code {
		case cli.StatusTimeout:
			first++
		case cli.StatusNCCL:
			if !strings.Contains(p.err.String(), "aborted: all_reduce: no end within 1s") {
				t.Errorf("rank %d: %s", r, p.err.String())
			}
		default:
			t.Errorf("rank %d: exit status %d: %s", r, code, p.err.String())
		}
	}
	if first == 0 {
		t.Error("no rank's own limit ran out")
	}
}

// TestAKilledGPURankIsNamedByAll, though the others' kernels wait for it; it is
// the one by which they met.
func TestAKilledGPURankIsNamedByAll(t *testing.T) {
	if testing.Short() {
		t.Skip("takes four seconds, most of them waiting")
	}
	killOne(t, onMadeUpGPUs(t, "-b", "64K", "-e", "64K", "-n", "100000"), 0)
}
