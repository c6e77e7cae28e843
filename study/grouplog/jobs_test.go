package grouplog

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan/launch"
)

// TestLinesOfJobs: what NCCL printed in PyTorch jobs on four GPUs, call by call and group
// by group.
func TestLinesOfJobs(t *testing.T) {
	logs, _ := filepath.Glob(filepath.Join(golden.Root(t), "..", "shared", "workloads", "truth", "*",
		"nccl_coll_rank0.log.gz"))
	if len(logs) == 0 {
		t.Skip("the logs of recorded jobs are not beside this checkout")
	}
	m := machine(t, 4)
	total := 0
	for _, name := range logs {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		total += m.jobLines(t, filepath.Base(filepath.Dir(name)), bufio.NewScanner(z))
	}
	t.Logf("%d lines of %d jobs", total, len(logs))
	if total < 100 {
		t.Errorf("only %d lines", total)
	}
}

// jobLines compares the lines of a log: calls come before the lines of their group.
func (m *Machine) jobLines(t *testing.T, name string, sc *bufio.Scanner) (compared int) {
	var calls []launch.Call
	var want []Line
	check := func() {
		if len(want) == 0 {
			return
		}
		kernels, err := m.site.Comm.Group(calls, launch.Eager)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := lines(kernels); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %d calls: %v, NCCL %v", name, len(calls), got, want)
		}
		compared += len(want)
		calls, want = nil, nil
	}
	for sc.Scan() {
		_, text, ok := strings.Cut(sc.Text(), "NCCL INFO ")
		if !ok {
			continue
		}
		if p, ok := printed("[0] NCCL INFO " + text); ok {
			want = append(want, p.Line)
			continue
		}
		fn, rest, ok := strings.Cut(text, ": opCount ")
		if !ok {
			continue
		}
		if check(); strings.Contains(rest, "[nranks=1]") {
			continue
		}
		f := strings.Fields(rest)
		var c launch.Call
		var err error
		for i := 0; i+1 < len(f); i++ {
			switch f[i] {
			case "count":
				_, err = fmt.Sscan(f[i+1], &c.Count)
			case "datatype":
				_, err = fmt.Sscan(f[i+1], (*uint8)(&c.Type))
			case "op":
				_, err = fmt.Sscan(f[i+1], (*uint8)(&c.Op))
			case "root":
				_, err = fmt.Sscan(f[i+1], &c.Root)
			}
			if err != nil {
				t.Fatalf("%s: %s: %v", name, text, err)
			}
		}
		if c.Func, err = coll.ParseFunc(fn); err != nil || c.Func.IsP2P() {
			continue // sends and receives, which print no line
		}
		calls = append(calls, c)
	}
	check()
	return compared
}
