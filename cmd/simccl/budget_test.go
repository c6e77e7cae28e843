package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/dev/golden"
)

// TestBudget prints the seconds of what an issue limits in seconds: `make budget`.
// It holds nothing to a limit, for a busy machine's seconds mean little.
func TestBudget(t *testing.T) {
	if os.Getenv("SIMCCL_BUDGET") == "" {
		t.Skip("prints seconds that only mean something on a quiet machine: make budget")
	}
	root := t.TempDir()
	prepare(t, root)
	fmt.Printf("%-60s %8s %8s\n", "from the first SIGTERM to the end, worst of 10 moments", "limit",
		"seconds")
	for _, c := range append([]longCommand{
		{"run, 7 MB of trace",
			"run all_reduce --nodes 8 --fold off --sizes 16M --trace t.json.gz --profile p.pb.gz", ""},
		{"run, 160,000 ranks", "run all_reduce --nodes 20000 --sizes 1K", ""},
		{"report, 32 ranks", "report all_reduce --nodes 4 -b 64K -e 16M -f 4", ""},
	}, longCommands...) {
		dir := filepath.Join(root, "here")
		placeFiles(t, dir, "")
		begun := time.Now()
		_ = simcclIn(dir, c.args).Run()
		took := time.Since(begun)
		worst := time.Duration(0)
		for m := range 10 {
			placeFiles(t, dir, "")
			end, status, _ := endsAfter(t, dir, c, syscall.SIGTERM, took*time.Duration(2*m+1)/20)
			if status == 128+int(syscall.SIGTERM) {
				worst = max(worst, end)
			}
		}
		fmt.Printf("%-60s %8s %8.3f\n", c.name, "1", worst.Seconds())
	}
	budgetOfInputs(t, filepath.Join(root, "here"))
}

// budgetOfInputs prints the CPU seconds of large inputs.
func budgetOfInputs(t *testing.T, dir string) {
	t.Helper()
	fmt.Printf("%-60s %8s %8s\n", "CPU of large inputs", "limit", "seconds")
	for _, c := range []struct{ name, args string }{
		{"8,000 PCI devices below one CPU", "topo lint ../large.xml"},
		{"an endless file as a topology", "topo lint /dev/zero"},
	} {
		placeFiles(t, dir, "")
		p := simcclIn(dir, c.args)
		timer := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
		_ = p.Run()
		timer.Stop()
		fmt.Printf("%-60s %8s %8.3f\n", c.name, "5",
			(p.ProcessState.UserTime() + p.ProcessState.SystemTime()).Seconds())
	}
}

// TestCutOffWhereNothingPolls: a command that waits in a system call, for input
// that does not come or without a reader of what it prints, ends as well, and
// says so.
func TestCutOffWhereNothingPolls(t *testing.T) {
	if golden.UnderRace {
		t.Skip("commands of their own processes share nothing; without the race detector")
	}
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip("no named pipes here: ", err)
	}
	for _, line := range []string{"topo lint pipe", "run all_reduce --topo pipe", "trace validate pipe",
		"trace merge -o m.json pipe pipe"} {
		c := longCommand{args: line}
		_, status, errs := endsAfter(t, dir, c, syscall.SIGINT, 300*time.Millisecond)
		if status != 130 || errs != "simccl: interrupted\n" && errs != "" {
			t.Errorf("%s: exit status %d, %q", line, status, errs)
		}
	}
	// Standard output and standard error are a pipe that is full.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := simcclIn(dir, "plan all_reduce 16M --nodes 8 --format csv")
	p.Stdout, p.Stderr = w, w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	ended := make(chan struct{})
	go func() { _ = p.Wait(); close(ended) }()
	time.Sleep(300 * time.Millisecond)
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		t.Fatal("waits for who reads its output")
	}
	state, _ := p.ProcessState.Sys().(syscall.WaitStatus)
	if got := p.ProcessState.ExitCode(); got != 143 && !state.Signaled() {
		t.Errorf("exit status %d", got)
	}
}
