package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/real/realtest"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
)

// lanesOf counts a trace's network slices by process, thread (without the lane
// that time chose) and name, and its work requests by opcode.
func lanesOf(t *testing.T, file string) map[string]int {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := map[[2]int64]string{}
	out := map[string]int{}
	_, err = chrome.Read(f, func(e *chrome.Event) error {
		switch {
		case e.Phase == 'M' && e.Name == "thread_name":
			a, _ := e.Arg("name")
			names[[2]int64{e.PID, e.TID}], _, _ = strings.Cut(a.Str, " · step ")
		case e.Phase == 'X' && (e.Cat == "NET" || e.Cat == "NET_IB" || e.Cat == "NET_SOCK" ||
			e.Cat == "PROXY" && e.Name != "Idle"):
			what := e.Name
			for _, key := range []string{"opcode", "op"} {
				if a, ok := e.Arg(key); ok && e.Cat != "NET" {
					what = a.Str
				}
			}
			thread := names[[2]int64{e.PID, e.TID}]
			if e.Cat == "PROXY" {
				thread, _, _ = strings.Cut(thread, " · op ")
			}
			out[fmt.Sprintf("%d %s %s", e.PID, thread, what)]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func runOK(t *testing.T, args ...string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(context.Background(), append(args, "--no-env"),
		appOf(process.Process{Out: &out, Err: &errs})); code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, errs.String())
	}
}

// A real run over sockets or verbs has the simulated run's processes, threads
// and slices: as many waits of each kind on each channel of each rank, and over
// verbs as many work requests of each kind on each queue pair of each port.
func TestRealLanesAreTheSimulatedOnes(t *testing.T) {
	dir := t.TempDir()
	sim, real := filepath.Join(dir, "sim.json"), filepath.Join(dir, "real.json")
	common := []string{"all_reduce", "--topo", "../../testdata/topos/dgx-a100.xml", "--nodes", "4", "-g", "1",
		"--sizes", "200K", "--env", "NCCL_IB_ADAPTIVE_ROUTING=0",
		"--env", "NCCL_IB_QPS_PER_CONNECTION=2", "--env", "NCCL_PROTO=Simple", "--env", "NCCL_ALGO=Ring"}
	runOK(t, append([]string{"run", "-c", "0", "--trace", sim}, common...)...)
	want := lanesOf(t, sim)
	for _, backend := range []string{"sockets", "verbs"} {
		t.Run(backend, func(t *testing.T) {
			if backend == "verbs" {
				realtest.NeedRDMA(t)
			}
			runOK(t, append([]string{"bench", "--backend", backend, "-n", "1", "-w", "0", "--trace", real},
				common...)...)
			got := lanesOf(t, real)
			if offers := compareLanes(t, got, want, backend == "verbs"); backend == "verbs" && offers == 0 {
				t.Error("no clear-to-send in the real run")
			}
		})
	}
}

// Over sockets, too, a real run has the simulated run's messages on each socket:
// sizes on the control socket, and parts of messages on those of two helpers.
func TestRealSocketsAreTheSimulatedOnes(t *testing.T) {
	for _, env := range [][]string{nil, {"--env", "NCCL_SOCKET_NTHREADS=2", "--env",
		"NCCL_NSOCKS_PERTHREAD=2", "--env", "NCCL_SOCKET_MIN_TASKSIZE=2048"}} {
		dir := t.TempDir()
		sim, real := filepath.Join(dir, "sim.json"), filepath.Join(dir, "real.json")
		common := append([]string{"all_reduce", "--topo", "../../testdata/topos/h200x4-h4x1.xml", "--nodes",
			"4", "--sizes", "100K", "--env", "NCCL_PROTO=Simple", "--env", "NCCL_ALGO=Ring"}, env...)
		runOK(t, append([]string{"run", "-c", "0", "--trace", sim}, common...)...)
		runOK(t, append([]string{"bench", "--backend", "sockets", "-n", "1", "-w", "0", "--trace", real},
			common...)...)
		want, sockets := lanesOf(t, sim), 0
		compareLanes(t, lanesOf(t, real), want, true)
		for k := range want {
			if strings.Contains(k, " socket ") {
				sockets++
			}
		}
		if sockets == 0 {
			t.Error("no sockets in the simulated run")
		}
	}
}

// compareLanes wants the same on both sides, but for what depends on time (how
// long an operation was scheduled, how far ahead buffers are offered) and, where
// the networks are not the same, what only one has. It counts clear-to-sends.
func compareLanes(t *testing.T, got, want map[string]int, same bool) (offers int) {
	t.Helper()
	all := map[string]bool{}
	for k := range got {
		all[k] = true
	}
	for k := range want {
		all[k] = true
	}
	for k := range all {
		switch {
		case strings.Contains(k, " Schedule"):
		case strings.Contains(k, nccl.OpCTS):
			offers += got[k]
			if same && (got[k] == 0) != (want[k] == 0) {
				t.Errorf("%s: %d real, %d simulated", k, got[k], want[k])
			}
		case !same && (strings.Contains(k, "socket ") || strings.Contains(k, "QP ") ||
			strings.HasSuffix(k, "RecvFlushWait")):
		case got[k] != want[k]:
			t.Errorf("%s: %d real, %d simulated", k, got[k], want[k])
		}
	}
	return offers
}
