package sim_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
)

const scaleHead = `# Time and memory of large communicators

Written by ` + "`make scale`" + ` on a shared machine of two cores; do not edit. Each row is one whole command,
` + "`simccl run OP -b 1G -e 1G --nodes N`" + ` on DGX H100s of 8 GPUs: reading the topology, the search, the
choice, the plan and the simulation. *CPU* is the command's processor time, *wall* its elapsed time on a machine
that did other work too. The limits are those that the project set itself for wall time, and 2 GiB.

*folded*: equivalent ranks, channels and links are simulated once. Their equivalence is proven for each plan
(sim/internal/fold), and the result equals that of simulating every rank, bit for bit. Tests hold this up to 256 ranks for
Ring, Tree, NVLS, NVLSTree, PAT, chains, alltoall and sendrecv.

*near*: rings over a number of nodes that leaves channels or chunks uneven, where an exact simulation would take some tenths of a second, are
treated as even (docs/adr/0009). Above 512 ranks, where it would cost more than some tenths of a second, nodes at equal positions
in both trees are merged, rings whose last chunks differ are treated as even, chains are shortened whose nodes follow each other at equal times, and rings with faults
or over unequal nodes are, by the middle of long stretches of equal nodes. Trees of which even that costs seconds are merged by
height alone (docs/adr/0018). The command says so, with a margin; ` + "`--fold exact`" + ` leaves nothing out.

*window*: of a large operation some iterations or turns were simulated, and the others take their mean time. The margin is more than
was seen against whole runs: with jitter 3 % (all_reduce to 16 GiB on one and two DGX H100 within 2.6 %, alltoall within 1.7 %,
docs/adr/0018); over networks that block and with slow ports 3, NVLSTree 5 and sends and receives 15 % (seen: 0.3, 4.1 and 12 %); what
settles slowly 8 % (seen: 5.5 %, docs/adr/0018). One comparison is repeated with each run of the tests (sim/long_test.go, TestWhatSettlesSlowlyIsShortened).

`

// equalRuns says which runs give equal results.
const equalRuns = `
## Which results are equal

*Equal* is to the last bit: the time, the end of every rank, and of each link that both runs have its bytes, its busy time and its mean queue (a folded run
has only the links of those that run). Jitter is a part of the operation: where equivalent ranks share it ([ADR 18](../adr/0018-which-times-are-approximate.md)),
they do so in every row, folded or not.

| run | equal to | but |
|---|---|---|
| ` + "`" + `--fold auto` + "`" + `, ` + "`" + `--fold exact` + "`" + ` | ` + "`" + `--fold off` + "`" + ` | of runs that say *near* (above 512 ranks, and large rings) or that a part was simulated for its cost |
| ` + "`" + `--skip auto` + "`" + `, ` + "`" + `--jitter off` + "`" + ` or above 72 ranks | ` + "`" + `--skip off` + "`" + ` | of what was simulated in part for its cost |
| ` + "`" + `--skip auto` + "`" + ` with jitter | ` + "`" + `--skip off` + "`" + ` | of rows that say *window*: within the margin of the row (docs/adr/0018) |
| ` + "`" + `--trace` + "`" + ` | the table | of rows as above, and with ` + "`" + `--trace-detail period` + "`" + `, which is in lockstep; a note names both times |
| ` + "`" + `--skip off` + "`" + `, folded | ` + "`" + `--skip off --fold off` + "`" + `, and a trace of either | |

Tests hold this on 500 random programs of every operation, algorithm and protocol on 1 to 9 nodes, with jitter, slow ranks and slow ports, and for all_reduce of
1 GiB on every machine (` + "`" + `go test ./sim -run 'OperationAlone|ChangesNothingOnEveryMachine|OnEveryMachine'` + "`" + `). ` + "`" + `--network packet` + "`" + ` folds nothing, and draws for every rank.
`

const scaleRows = "| operation | ranks | setting | algorithm | simulated | how | CPU | wall | memory | " +
	"limit |\n|---|---|---|---|---|---|---|---|---|---|\n"

// othersHead begins what make peers writes.
const othersHead = "## Others\n"

// TestScalePage writes docs/results/SCALE.md.
func TestScalePage(t *testing.T) {
	tool := scaleTool(t)
	was, err := os.ReadFile(golden.Root(t, "docs", "results", "SCALE.md"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(scaleHead + scaleRows)
	for _, algo := range []string{"Ring", "", "Tree"} {
		for _, size := range []struct {
			nodes int
			limit string
		}{{128, "0.3 s"}, {2048, "2 s"}, {12800, "10 s"}} {
			b.WriteString(scaleRow(t, tool, "all_reduce", algo, size.nodes, size.limit))
		}
	}
	b.WriteString(scaleRow(t, tool, "all_reduce", "", 128, "–", "--fold", "exact"))
	b.WriteString(scaleRow(t, tool, "all_reduce", "Tree", 128, "–", "--fold", "exact"))
	b.WriteString(scaleRow(t, tool, "alltoall", "", 16, "–"))
	b.WriteString(scaleRow(t, tool, "alltoall", "", 128, "–"))
	b.WriteString(scaleRow(t, tool, "alltoall", "", 512, "–"))
	b.WriteString(scaleNear(t) + scaleEngine(t))
	for _, head := range []string{othersHead, growthHead, bytesHead, sweepsHead} { // written by others
		b.WriteString("\n" + strings.TrimRight(sectionOf(string(was), head), "\n") + "\n")
	}
	file := golden.Root(t, "docs", "results", "SCALE.md")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// scaleRow runs the command and reports what it took.
func scaleRow(t *testing.T, tool, op, algo string, nodes int, limit string, more ...string) string {
	args := append([]string{"run", op, "-b", "1G", "-e", "1G", "--nodes", fmt.Sprint(nodes), "--json"},
		more...)
	cmd := exec.Command(tool, args...)
	asked := "by default"
	cmd.Env = os.Environ()
	if algo != "" {
		asked = "NCCL_ALGO=" + algo
		cmd.Env = append(cmd.Env, asked)
	}
	begin := time.Now()
	out, err := cmd.Output()
	wall := time.Since(begin)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	var doc struct {
		Results []struct {
			Own struct {
				Algo, Proto, Simulated string
				Margin                 float64
				SimUs                  float64 `json:"sim_us"`
			} `json:"simccl"`
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	own := doc.Results[0].Own
	how := own.Simulated
	if own.Margin > 0 {
		how += fmt.Sprintf(", within %.0f %%", 100*own.Margin)
	}
	if len(more) > 0 {
		how += " (`" + strings.Join(more, " ") + "`)"
	}
	state := cmd.ProcessState
	rss := state.SysUsage().(*syscall.Rusage).Maxrss >> 10
	return fmt.Sprintf("| %s | %d | %s | %s/%s | %.3f ms | %s | %.2f s | %.2f s | %d MB | %s |\n", op,
		8*nodes, asked, own.Algo, own.Proto,
		own.SimUs/1000, how, (state.UserTime() + state.SystemTime()).Seconds(), wall.Seconds(), rss, limit)
}

// scaleNear compares near results with exact ones, as far as those go.
func scaleNear(t *testing.T) string {
	var b strings.Builder
	b.WriteString(equalRuns)
	b.WriteString("\n## Near beside exact\n\n" +
		"all_reduce by default choice, near against exact, in % of the exact time:\n\n" +
		"| nodes | machine | 4 MiB | 64 MiB | 1 GiB |\n|---|---|---|---|---|\n")
	for _, name := range []string{"dgx-h100.n2", "dgx-h100+nvls.n2"} {
		for _, n := range []int{8, 16, 25, 32, 50, 64, 128, 256} {
			c, systems := nodes(t, name, n, comm.Params{})
			fmt.Fprintf(&b, "| %d | %s |", n, strings.TrimSuffix(name, ".n2"))
			for _, count := range []int64{1 << 20, 1 << 24, 1 << 28} {
				// exact takes most of a minute
				if n > 128 && count == 1<<28 && strings.Contains(name, "nvls") {
					b.WriteString(" – |")
					continue
				}
				req, _, err := c.Request(comm.Op{Func: coll.AllReduce, Count: count, Type: coll.Float32})
				if err != nil {
					t.Fatal(err)
				}
				cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.FoldExact}
				exact, _ := simulatePlan(t, c, cfg, req, trace.Discard)
				cfg.Fold = sim.FoldNear
				near, _ := simulatePlan(t, c, cfg, req, trace.Discard)
				fmt.Fprintf(&b, " %s %+.1f |", req.Algo, 100*(float64(near.Elapsed)/float64(exact.Elapsed)-1))
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// scaleEngine is the engine's own speed, without folding.
func scaleEngine(t *testing.T) string {
	run := engineRun(t, 64<<20)
	run()
	var events int64
	begin := cpuTime(t)
	for range 100 {
		events += run()
	}
	return fmt.Sprintf("\n## The engine\n\n"+
		"Without folding, a ring all_reduce of 64 MiB on one DGX H100: %.1f million events a second of one "+
		"core; allocations\n"+
		"do not grow with events (`go test ./sim -run AllocatesNothing`).\n",
		float64(events)/1e6/(cpuTime(t)-begin).Seconds())
}

// cpuTime is what this process has taken of the cores.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
