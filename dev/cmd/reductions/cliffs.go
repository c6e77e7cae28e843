package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/simccl/simccl/dev/reductions"
)

// sweep is a command line and what it cost.
type sweep struct {
	Line    string  `json:"line"`
	Seconds float64 `json:"seconds"` // of a processor
	MB      float64 `json:"mb"`      // largest resident set
	Exit    int     `json:"exit"`    // -1: stopped at its limit
}

// What a default sweep may cost, and one over unequal hosts, slow ports or a network.
const (
	mostSeconds, mostOdd, mostMB = 4, 15, 500
	sizes                        = "-b 8 -e 16G -f 2"
)

func cliffs() {
	seed := flag.Uint64("seed", 1, "of the order in which sweeps are measured")
	budget := flag.Float64("budget", 600, "seconds of a processor for this call")
	limit := flag.Float64("limit", 40, "seconds of a processor after which a sweep is stopped")
	program := flag.String("program", "bin/simccl", "that is measured")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: cliffs [-seed N] [-budget S] [-limit S] [-program FILE] FILE")
		os.Exit(2)
	}
	worse, err := measure(flag.Arg(0), os.Stdout, *program, *seed, *budget, *limit)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cliffs:", err)
		os.Exit(2)
	}
	if worse > 0 {
		os.Exit(1)
	}
}

// odd are the options with which a sweep may cost more.
var odd = [...]string{"-g 7", "-m 4", "-R 2", "--fault rank=3:slow=1.5", "--fault nic=node0/0:slow=2"}

// grid lists the sweeps.
func grid() (out []string) {
	nodes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 16, 17, 18, 20, 24, 25, 31, 32, 33, 40, 48, 50,
		63, 64, 65, 72, 90, 100, 128, 129, 200, 256, 300}
	topos := []string{"dgx-h100", "dgx-a100", "dgx-b200", "gb200-nvl72-2tray", "hgx-h100-4",
		"aws-p4d.24xlarge", "dgx-2", "hgx-h800-8", "pcie-l40s-8"}
	for _, topo := range topos {
		for _, n := range nodes {
			at := fmt.Sprintf("--topo %s --nodes %d %s", topo, n, sizes)
			for _, op := range reductions.Operations() {
				out = append(out, fmt.Sprintf("run %s %s", op, at))
			}
			for _, algo := range []string{"Ring", "Tree", "NVLSTree"} {
				out = append(out, fmt.Sprintf("run all_reduce %s --env NCCL_ALGO=%s", at, algo))
			}
			for _, more := range odd {
				if n > 1 || !strings.Contains(more, "nic") {
					out = append(out, fmt.Sprintf("run all_reduce %s %s", at, more))
				}
			}
		}
	}
	return out
}

// measure goes on where a file ends, until the budget is spent, and shows what was measured.
func measure(file string, w io.Writer, program string, seed uint64, budget, limit float64) (int, error) {
	f, err := reductions.Resume[sweep](file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := grid()
	rng := rand.New(rand.NewPCG(seed, 44))
	rng.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	for _, line := range lines {
		if budget <= 0 {
			break
		}
		if slices.ContainsFunc(f.All, func(s sweep) bool { return s.Line == line }) {
			continue
		}
		s, err := one(program, line, limit)
		if err != nil {
			return 0, err
		}
		budget -= s.Seconds
		if err := f.Add(&s); err != nil {
			return 0, err
		}
	}
	return show(w, f.All, len(lines)), f.Close()
}

// one measures one sweep.
func one(program, line string, limit float64) (sweep, error) {
	c := exec.Command("sh", "-c", `ulimit -t "$0"; exec "$@"`, fmt.Sprintf("%.0f", limit), program)
	c.Args = append(c.Args, strings.Fields(line)...)
	c.Stdout, c.Stderr = io.Discard, io.Discard
	err := c.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return sweep{}, err
	}
	p := c.ProcessState
	return sweep{line, (p.UserTime() + p.SystemTime()).Seconds(), memory(p), p.ExitCode()}, nil
}

// show prints sweeps, worst first, and returns how many cost too much.
func show(w io.Writer, all []sweep, of int) (worse int) {
	slices.SortStableFunc(all, func(a, b sweep) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for i := range all {
		s := &all[i]
		most := float64(mostSeconds)
		if slices.ContainsFunc(odd[:], func(o string) bool { return strings.Contains(s.Line, o) }) {
			most = mostOdd
		}
		mark := "  "
		if s.Seconds > most || s.MB > mostMB {
			worse, mark = worse+1, "! "
		}
		if i < 40 || mark == "! " {
			fmt.Fprintf(w, "%s%6.2f s %5.0f MB exit %d  simccl %s\n", mark, s.Seconds, s.MB, s.Exit, s.Line)
		}
	}
	fmt.Fprintf(w, "%d of %d sweeps measured, %d cost too much\n", len(all), of, worse)
	return worse
}
