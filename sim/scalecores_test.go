package sim_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

const coresHead = "## One size on several processors\n"

const coresText = coresHead + `
Wall time in seconds of one command, ` + "`--fold off --skip off`" + `, with GOMAXPROCS=1 and =%d in alternation, the least of %d (` + "`make bench-cores`" + `); all digits of the tables are equal.
Nodes run side by side ([ADR 19](../adr/0019-rates-follow-from-link-to-link.md#nodes-side-by-side)). alltoall simulates two operations, out of place and in place, which run side by side before nodes do.
Load average when the table was begun: %s.

| run | 1 | %d | ratio |
|---|---:|---:|---:|
`

// TestBenchCores writes the table into docs/results/BENCHMARKS.md.
func TestBenchCores(t *testing.T) {
	if os.Getenv("SIMCCL_CORES") == "" {
		t.Skip("measures wall time on a quiet machine: make bench-cores")
	}
	tool, runs, cores := scaleTool(t), scaleRuns(5), runtime.NumCPU()
	files := leafSpines(t, tool, t.TempDir())
	var b strings.Builder
	fmt.Fprintf(&b, coresText, cores, runs, loadAverage(), cores)
	for _, r := range oldRuns {
		if strings.Contains(r[1], "TRACE") {
			continue // is not divided
		}
		args := append([]string{"run"}, strings.Fields(strings.NewReplacer(files...).Replace(r[1]))...)
		args = append(args, "-c", "0", "--fold", "off", "--skip", "off")
		var took [2]time.Duration
		var rows [2][]byte
		for range runs {
			for i, n := range []int{1, cores} {
				c := exec.Command(tool, args...)
				c.Env = append(os.Environ(), fmt.Sprintf("GOMAXPROCS=%d", n))
				begun := time.Now()
				out, err := c.Output()
				if err != nil {
					t.Fatalf("%v: %v", args, err)
				}
				if d := time.Since(begun); took[i] == 0 || d < took[i] {
					took[i] = d
				}
				rows[i] = slices.Clone(rowsOf(out))
			}
			if !bytes.Equal(rows[0], rows[1]) {
				t.Fatalf("%v prints\n%s, on %d processors\n%s", args, rows[0], cores, rows[1])
			}
		}
		row := fmt.Sprintf("| %s | %.2f | %.2f | %.2f |\n", r[0], took[0].Seconds(), took[1].Seconds(),
			took[0].Seconds()/took[1].Seconds())
		t.Log(row)
		b.WriteString(row)
	}
	writeSectionIn(t, "BENCHMARKS.md", coresHead, b.String())
}
