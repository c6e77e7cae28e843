package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/realtest"
)

// freePort finds a port that is free now, nor is given before it is used:
// connections get theirs from 32768 up (ip_local_port_range).
func freePort(t *testing.T) int {
	t.Helper()
	for range 100 {
		port := 12000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// rankProcess is one rank of a run.
type rankProcess struct {
	*exec.Cmd
	out, err locked
	ended    chan error
}

type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// processes starts n ranks as torchrun would.
func processes(t *testing.T, n int, args ...string) []*rankProcess {
	t.Helper()
	port := freePort(t)
	var all []*rankProcess
	for r := range n {
		p := &rankProcess{Cmd: exec.Command("simccl", args...), ended: make(chan error, 1)}
		p.Stdout, p.Stderr = &p.out, &p.err
		p.Env = append(p.Environ(), fmt.Sprint("RANK=", r), fmt.Sprint("WORLD_SIZE=", n),
			"MASTER_ADDR=127.0.0.1",
			fmt.Sprint("MASTER_PORT=", port-1), "SIMCCL_SECRET=test")
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		go func() { p.ended <- p.Wait() }()
		all = append(all, p)
	}
	return all
}

// processTime bounds what a process of a test may take. It only keeps a hang from
// holding up the other tests: what a process does is the test's subject, and not
// how soon.
const processTime = 20 * time.Minute

func (p *rankProcess) wait(t *testing.T, limit time.Duration) error {
	t.Helper()
	select {
	case err := <-p.ended:
		return err
	case <-time.After(limit):
		_ = p.Process.Signal(syscall.SIGQUIT) // where it hangs
		select {
		case <-p.ended:
		case <-time.After(time.Minute):
		}
		t.Fatalf("no end after %v\n%s%s", limit, p.out.String(), p.err.String())
		return nil
	}
}

// TestBenchOverProcesses runs a sweep over four processes and sockets; rank 0
// prints the table, and no element is wrong. The ranks' traces become one, with
// arrows between them.
func TestBenchOverProcesses(t *testing.T) {
	for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
		"alltoall", "sendrecv"} {
		t.Run(op, func(t *testing.T) {
			dir := t.TempDir()
			all := processes(t, 3, "bench", op, "--backend", "sockets", "-b", "96", "-e", "96K", "-f", "32",
				"-n", "2", "--trace", filepath.Join(dir, "t.json"))
			for r, p := range all {
				if err := p.wait(t, processTime); err != nil {
					t.Fatalf("rank %d: %v\n%s", r, err, p.err.String())
				}
				if r > 0 && p.out.String() != "" {
					t.Errorf("rank %d prints %q", r, p.out.String())
				}
			}
			if s := all[0].out.String(); !strings.Contains(s, "# Out of bounds values : 0 OK") {
				t.Errorf("rank 0 prints\n%s", s)
			}
			joinTraces(t, dir, 4) // ports too
		})
	}
}

// joinTraces wants every arrow of three ranks' files to be whole when they are
// one, or to be left out because the clocks are not sure enough; and at least so
// many processes in it.
func joinTraces(t *testing.T, dir string, processes int) {
	t.Helper()
	var out, errs bytes.Buffer
	file := func(name string) string { return filepath.Join(dir, name) }
	a := appOf(process.Process{Out: &out, Err: &errs})
	if code := run(context.Background(), []string{"trace", "merge", "-o", file("all.json"),
		file("t.rank0.json"), file("t.rank1.json"), file("t.rank2.json")}, a); code != 0 {
		t.Fatal(code, errs.String())
	}
	got := count(t, file("all.json"))
	var between, early int
	fmt.Sscanf(errs.String(), "simccl: files of 3 processes, 3 ranks in all, %d arrows between them",
		&between)
	if _, rest, ok := strings.Cut(errs.String(), "to ranks that are not here, "); ok {
		fmt.Sscanf(rest, "%d shorter", &early)
	}
	if len(got.processes) < processes || between+early == 0 || got.arrows != between {
		t.Errorf("%d processes, %d arrows, between ranks %d: %s", len(got.processes), got.arrows, between,
			errs.String())
	}
	if code := run(context.Background(), []string{"trace", "validate", file("all.json")}, a); code != 0 {
		t.Error(code, out.String())
	}
}

// TestKilledRankIsNamedByAll: SIGKILL of a process in the middle of a run ends
// all others within seconds, each with the dead rank's number.
func TestKilledRankIsNamedByAll(t *testing.T) {
	for _, c := range []struct {
		backend string
		victim  int
	}{{"sockets", 2}, {"sockets", 0}, {"verbs", 1}} {
		victim := c.victim
		t.Run(fmt.Sprint(c.backend, " rank ", victim), func(t *testing.T) {
			if c.backend == "verbs" {
				realtest.NeedRDMA(t)
			}
			all := processes(t, 4, "bench", "all_reduce", "--backend", c.backend, "-b", "64K", "-e", "64K",
				"-n", "1000000")
			killOne(t, all, victim)
		})
	}
}

// killOne kills a rank of a run that does not end, and wants all others to end
// and to name it.
func killOne(t *testing.T, all []*rankProcess, victim int) {
	t.Helper()
	for end := time.Now().Add(processTime); !strings.Contains(all[0].out.String(),
		"Using devices"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the ranks have not met: %s", all[0].err.String())
		}
	}
	time.Sleep(300 * time.Millisecond) // into the run
	if err := all[victim].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for r, p := range all {
		err := p.wait(t, processTime)
		if r == victim {
			continue
		}
		if got := p.err.String(); err == nil || !strings.Contains(got, fmt.Sprintf("rank %d died", victim)) {
			t.Errorf("rank %d ends with %v and says %q", r, err, got)
		}
	}
}

// TestRanksMustAgree: other options on one rank are refused by all.
func TestRanksMustAgree(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // for the key that they share
	port := fmt.Sprint("127.0.0.1:", freePort(t))
	var all []*rankProcess
	for r, size := range []string{"1K", "2K"} {
		p := &rankProcess{Cmd: exec.Command("simccl", "bench", "all_reduce", "--backend", "sockets", "--rank",
			fmt.Sprint(r), "--nranks", "2",
			"--root-address", port, "-b", size, "-e", size), ended: make(chan error, 1)}
		p.Stderr = &p.err
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Process.Kill() })
		go func() { p.ended <- p.Wait() }()
		all = append(all, p)
	}
	for r, p := range all {
		if err := p.wait(t, processTime); err == nil || !strings.Contains(p.err.String(), "differ") {
			t.Errorf("rank %d ends with %v and says %q", r, err, p.err.String())
		}
	}
}

// TestUnequalAlltoallOverSockets: 4 and 8 ranks exchange unequal counts over sockets, and
// every element is right; JSON says how unequal they are.
func TestUnequalAlltoallOverSockets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts.csv")
	if err := os.WriteFile(file, []byte("0,300,20,1\n0,0,0,0\n7,70000,1,0\n9,9,0,9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		most int64
	}{
		{[]string{"--nranks", "4", "--counts", file}, 70000},
		{[]string{"--nranks", "8", "--imbalance", "5", "--sizes", "64K", "-d", "int8"}, 40960},
	} {
		out := simccl(t, append([]string{"bench", "all_to_all_v", "--backend", "sockets", "-n", "1", "-w",
			"0", "--json"}, x.args...)...)
		var doc struct {
			Results []struct {
				Out struct {
					Wrong *float64 `json:"nwrong"`
				} `json:"out_of_place"`
				Own struct {
					Counts coll.Spread `json:"counts"`
				} `json:"simccl"`
			} `json:"results"`
		}
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Results) != 1 {
			t.Fatalf("%v: %v\n%s", x.args, err, out)
		}
		if r := doc.Results[0]; r.Out.Wrong == nil || *r.Out.Wrong != 0 || r.Own.Counts.Most != x.most {
			t.Errorf("%v: %+v, want none wrong and %d at most\n%s", x.args, r, x.most, out)
		}
	}
}
