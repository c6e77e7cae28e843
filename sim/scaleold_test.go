package sim_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const oldHead = "## Against the engine of 2026-11-22\n"

const oldText = oldHead + `
User CPU in seconds of one command, the least of %d in alternation with the binary of the commit before ade4283 (the last one without skipping; ` + "`make bench-old OLD=FILE`" + `).
Every rank and every period is simulated by both, ` + "`--fold off`" + ` and now ` + "`--skip off`" + `, with equal results to the last digit of the table: the ratio is that of equal work a second, reading the machine and the plan included.
Over a leaf-spine network the rows have more than 72 ranks: below, draws of jitter are shared by equivalent ranks since ([ADR 18](../adr/0018-which-times-are-approximate.md)), and times differ.
Load average when the table was begun: %s.

| run | old | now | ratio |
|---|---:|---:|---:|
`

// oldRuns are what both engines simulate in full. LEAF10 and LEAF16 are leaf-spine
// networks of so many hosts, of 2:1.
var oldRuns = [][2]string{
	{"ring, 64 MiB, 128 ranks", "all_reduce -b 64M -e 64M --nodes 16 --env NCCL_ALGO=Ring"},
	{"ring, 16 MiB, 128 ranks, leaf-spine of 2:1",
		"all_reduce -b 16M -e 16M --nodes 16 --env NCCL_ALGO=Ring --fabric LEAF16"},
	{"ring, 64 MiB, 128 ranks, a slow port",
		"all_reduce -b 64M -e 64M --nodes 16 --env NCCL_ALGO=Ring --fault nic=node0/2:slow=4"},
	{"tree, 64 MiB, 128 ranks, leaf-spine of 2:1",
		"all_reduce -b 64M -e 64M --nodes 16 --env NCCL_ALGO=Tree --fabric LEAF16"},
	{"tree, 4 MiB, 512 ranks", "all_reduce -b 4M -e 4M --nodes 64 --env NCCL_ALGO=Tree"},
	{"NVLSTree, 256 MiB, 16 ranks", "all_reduce -b 256M -e 256M --nodes 2 --env NCCL_ALGO=NVLSTree"},
	{"alltoall, 2 MiB, 80 ranks, leaf-spine of 2:1", "alltoall -b 2M -e 2M --nodes 10 --fabric LEAF10"},
	{"alltoall, 64 MiB, 16 ranks", "alltoall -b 64M -e 64M --nodes 2"},
	{"ring, 64 MiB, 16 ranks, with a trace",
		"all_reduce -b 64M -e 64M --nodes 2 --env NCCL_ALGO=Ring --trace TRACE"},
	{"ring, 1 GiB, 16 ranks, with a trace",
		"all_reduce -b 1G -e 1G --nodes 2 --env NCCL_ALGO=Ring --trace TRACE"},
	{"NVLSTree, 64 MiB, 16 ranks, with a trace",
		"all_reduce -b 64M -e 64M --nodes 2 --env NCCL_ALGO=NVLSTree --trace TRACE"},
	{"tree, 16 MiB, 80 ranks, leaf-spine of 2:1, with a trace",
		"all_reduce -b 16M -e 16M --nodes 10 --env NCCL_ALGO=Tree --fabric LEAF10 --trace TRACE"},
}

// TestBenchOld writes the table into docs/results/BENCHMARKS.md; SIMCCL_OLD is the old binary.
func TestBenchOld(t *testing.T) {
	old := os.Getenv("SIMCCL_OLD")
	if old == "" {
		t.Skip("compares with an old binary on a quiet machine: make bench-old OLD=FILE")
	}
	tool, dir, runs := scaleTool(t), t.TempDir(), scaleRuns(5)
	files := append(leafSpines(t, tool, dir), "TRACE", filepath.Join(dir, "trace.json"))
	var b strings.Builder
	fmt.Fprintf(&b, oldText, runs, loadAverage())
	for _, r := range oldRuns {
		args := append([]string{"run"}, strings.Fields(strings.NewReplacer(files...).Replace(r[1]))...)
		args = append(args, "-c", "0", "--fold", "off")
		was, is := alternate(t, runs, exec.Command(old, args...),
			exec.Command(tool, append(slices.Clone(args), "--skip", "off")...))
		row := fmt.Sprintf("| %s | %.2f | %.2f | %.1f |\n", r[0], was.Seconds(), is.Seconds(),
			was.Seconds()/is.Seconds())
		t.Log(row)
		b.WriteString(row)
	}
	writeSectionIn(t, "BENCHMARKS.md", oldHead, b.String())
}

// leafSpines writes the networks of oldRuns, and returns their names there and as files.
func leafSpines(t *testing.T, tool, dir string) (files []string) {
	t.Helper()
	for _, hosts := range []string{"10", "16"} {
		file := filepath.Join(dir, hosts)
		out, err := exec.Command(tool, "topo", "fabric", "leaf-spine", "--hosts", hosts, "--nets", "8",
			"--per-leaf", "1", "--oversub", "2").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, "LEAF"+hosts, file)
	}
	return files
}

// alternate is the least user CPU of two commands that print the same rows.
func alternate(t *testing.T, runs int, a, b *exec.Cmd) (old, now time.Duration) {
	t.Helper()
	var took [2][]time.Duration
	for range runs {
		var rows [2][]byte
		for i, c := range []*exec.Cmd{a, b} {
			again := exec.Command(c.Path, c.Args[1:]...)
			again.Env = append(os.Environ(), "GOMAXPROCS=1") // processors that wait for each other take CPU
			out, err := again.Output()
			if err != nil {
				t.Fatalf("%v: %v", c.Args, err)
			}
			took[i], rows[i] = append(took[i], again.ProcessState.UserTime()), rowsOf(out)
		}
		if !bytes.Equal(rows[0], rows[1]) {
			t.Fatalf("%v prints\n%s, now\n%s", a.Args, rows[0], rows[1])
		}
	}
	return slices.Min(took[0]), slices.Min(took[1])
}

// rowsOf are the sizes of a table with their times.
func rowsOf(out []byte) (rows []byte) {
	for line := range bytes.Lines(out) {
		if f := bytes.TrimLeft(line, " "); len(f) > 0 && f[0] >= '0' && f[0] <= '9' {
			rows = append(rows, line...)
		}
	}
	return rows
}
