package sim_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const sweepsHead = "## Sweeps\n"

const sweepsText = sweepsHead + `
User CPU of one command a cell, the median of %d, in seconds: ` + "`simccl run OP -b 8 -e 16G -f 2 --topo M --nodes N`" + `, with the proofs that -c 1
makes. The limit that the project set itself is 1 s on a quiet machine; under load the same command takes up to twice as long (load average when
the table was begun: %s). A dash: NCCL has no such choice there.

| operation | NCCL_ALGO |`

// sweepMachines are those of the table.
var sweepMachines = []struct {
	topo  string
	nodes int
}{{"dgx-h100", 1}, {"dgx-h100", 2}, {"dgx-h100", 4}, {"dgx-h100", 8}, {"dgx-b200", 2}, {"dgx-a100", 2}}

// TestScaleSweeps writes what whole sweeps take into docs/results/SCALE.md.
func TestScaleSweeps(t *testing.T) {
	tool := scaleTool(t)
	runs := scaleRuns(3)
	var b strings.Builder
	fmt.Fprintf(&b, sweepsText, runs, loadAverage())
	for _, m := range sweepMachines {
		fmt.Fprintf(&b, " %d x %s |", m.nodes, m.topo)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(sweepMachines)) + "\n")
	for _, op := range []string{"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
		"sendrecv", "alltoall", "gather", "scatter"} {
		for _, algo := range []string{"", "Ring", "Tree", "NVLSTree"} {
			row, any := fmt.Sprintf("| %s | %s |", op, algo), false
			for _, m := range sweepMachines {
				cell := sweepCell(t, tool, runs, op, algo, m.topo, m.nodes)
				any = any || cell != "–"
				row += " " + cell + " |"
			}
			if any {
				t.Log(row)
				b.WriteString(row + "\n")
			}
			// have no algorithm
			if op == "sendrecv" || op == "alltoall" || op == "gather" || op == "scatter" {
				break
			}
		}
	}
	writeSection(t, sweepsHead, b.String())
}

// scaleRuns is how many runs a row takes: so many, or SIMCCL_SCALE_RUNS.
func scaleRuns(runs int) int {
	if n, err := strconv.Atoi(os.Getenv("SIMCCL_SCALE_RUNS")); err == nil && n > 0 {
		return n
	}
	return runs
}

// loadAverage is that of the last minute.
func loadAverage() string {
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ := strings.Cut(string(raw), " ")
		return load
	}
	return "not known"
}

// sweepCell is what a sweep takes; a dash where there is none.
func sweepCell(t *testing.T, tool string, runs int, op, algo, topo string, nodes int) string {
	t.Helper()
	args := []string{"run", op, "-b", "8", "-e", "16G", "-f", "2", "--topo", topo, "--nodes",
		strconv.Itoa(nodes)}
	if algo != "" {
		args = append(args, "--env", "NCCL_ALGO="+algo)
	}
	var took []time.Duration
	for range runs {
		cmd := exec.Command(tool, args...)
		if err := cmd.Run(); err != nil {
			if algo == "" {
				t.Fatalf("%s on %d x %s: %v", op, nodes, topo, err)
			}
			return "–"
		}
		took = append(took, cmd.ProcessState.UserTime())
	}
	slices.Sort(took)
	return fmt.Sprintf("%.2f", took[runs/2].Seconds())
}
