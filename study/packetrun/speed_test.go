package packetrun

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/process"
)

// recorded is the user CPU time in s that the calibration program took on the
// machine of the reference runs, beside them: prototype-speed/win, a permutation of
// 32 hosts and 4 MB (PACKETS-SPEED, probe 2).
const recorded = 0.07

// A scenario is measured in rounds, each of runs that take at least roundSeconds
// together between two of the calibration program, which takes 17 to 23 ms on one
// machine within a minute.
const (
	rounds       = 5
	roundSeconds = 0.1
)

// meter measures CPU time as the machine of the reference runs would have taken it.
type meter struct {
	program string    // the calibration program; none where nothing is written
	factors []float64 // how many times faster this machine ran it, each time
}

// newMeter builds the calibration program beside the checkout.
func newMeter(t *testing.T) *meter {
	t.Helper()
	source := filepath.Join(folder, "../prototype-speed")
	if _, err := os.Stat(source); err != nil || os.Getenv("SIMCCL_UPDATE") == "" {
		return &meter{}
	}
	process.LateCollection() // as the command does: what is measured is network run, not a test beside it
	m := &meter{program: filepath.Join(t.TempDir(), "win")}
	build := exec.Command("go", "build", "-o", m.program, "./win")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

// factor is how many times faster this machine runs the calibration program now.
func (m *meter) factor(t *testing.T) float64 {
	t.Helper()
	out, err := exec.Command(m.program).Output()
	found := regexp.MustCompile(`user ([0-9.]+) s`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("%v: %s", err, out)
	}
	v, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil || v <= 0 {
		t.Fatalf("%v: %s", err, out)
	}
	m.factors = append(m.factors, recorded/v)
	return recorded / v
}

// seconds is the CPU time that run returns in a round, in s at the speed of the machine of the
// reference runs: the median over rounds, in each of which the mean of the runs is
// corrected by the calibration program around them. Without that program it is one
// run as it is.
func (m *meter) seconds(t *testing.T, run func(round int) float64) float64 {
	t.Helper()
	if m.program == "" {
		return run(0)
	}
	var times []float64
	for round := range rounds {
		factor, sum, n := m.factor(t), 0.0, 0
		runtime.GC() // what other scenarios left is not this one's
		for sum < roundSeconds && n < 1000 {
			sum, n = sum+run(round), n+1
		}
		times = append(times, sum/float64(n)*(factor+m.factor(t))/2)
	}
	return median(times)
}

// median of an odd number of values.
func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// goals are ratios of CPU time that the issue sets, by the names of scenarios.
var goals = []struct {
	what, match string
	least       float64
}{
	{"HPCC on ns-3: permutation, 32 to 128 hosts", `^(speed.*perm.*pfc|vi_perm.*(pfc|mlx|hpcc)|v_ecmp)`, 20},
	{"HPCC on ns-3: alltoall, 16 and 64 hosts", `^vii_a2a.*(mlx|pfc)`, 20},
	{"HPCC on ns-3: ring, 16 and 64 hosts", `^viii_ring.*mlx`, 20},
	{"HPCC on ns-3: incast into one switch", `^(ii_incast_(mlx|paper|pfc|hpcc|timely|dctcp)|x_)`, 10},
	{"htsim's UEC: permutation of 32 hosts", `^(speed.*perm32.*nscc|vi_perm_ls11_nscc|v_perm.*nscc)`, 5},
	{"htsim's UEC: permutation of 128 hosts", `^speed.*perm128.*nscc`, 15},
}

// speedTable compares CPU times of scenarios that took the peer at least a tenth of
// a second with the goals.
func speedTable(all []outcome, m *meter) string {
	var b strings.Builder
	fmt.Fprintf(&b, "This machine ran the calibration program %.2f times as fast as that of the reference "+
		"runs (the median); each ratio is divided by what it was beside that scenario.\n\n",
		median(m.factors))
	b.WriteString("| scenarios | goal | ratio of CPU time, least to most | verdict |\n|---|---|---|---|\n")
	for _, g := range goals {
		re, ratios := regexp.MustCompile(g.match), []float64{}
		for _, o := range all {
			if re.MatchString(o.name) && o.cpu >= 0.1 && o.ourCPU > 0 {
				ratios = append(ratios, o.cpu/o.ourCPU)
			}
		}
		if len(ratios) == 0 {
			continue
		}
		slices.Sort(ratios)
		verdict := "hit"
		if n := slices.IndexFunc(ratios, func(r float64) bool { return r >= g.least }); n != 0 {
			verdict = fmt.Sprintf("missed by %d of %d", max(n, -n*len(ratios)), len(ratios))
		}
		fmt.Fprintf(&b, "| %s | %g | %.0f to %.0f | %s |\n", g.what, g.least, ratios[0],
			ratios[len(ratios)-1], verdict)
	}
	return b.String()
}

// hopsTable is data-packet-hops a second of one core with PFC, marks, DCQCN and
// go-back-N.
func hopsTable(t *testing.T, m *meter) string {
	var b strings.Builder
	b.WriteString("\n| hosts, 1 MB each to another leaf | goal, M data-packet-hops/s | here | at the " +
		"reference machine's speed | verdict |\n|---|---|---|---|---|\n")
	for _, c := range []struct {
		leaves, per int
		goal        float64
	}{{4, 8, 3}, {16, 8, 3}, {32, 32, 1.5}} {
		hosts := c.leaves * c.per
		n, cfg := fabric(c.leaves, c.per, c.per, 100e9), setup(t, "dcqcn:ns3", 100e9)
		cfg.WholeNanos, cfg.Frames.Payload, cfg.Frames.Header, cfg.Frames.Ack = true, 1000, 48, 60
		flows := shifted(hosts, hosts/2+3, 1e6)
		var hops float64
		var here []float64
		there := m.seconds(t, func(int) float64 {
			before := CPUSeconds()
			_, _, r := sim(t, n, flows, cfg)
			took := CPUSeconds() - before
			hops, here = float64(r.DataPacketHops)/1e6, append(here, took)
			return took
		})
		verdict := "hit"
		if hops/there < c.goal {
			verdict = "missed"
		}
		slices.Sort(here)
		fmt.Fprintf(&b, "| %d | %g | %.1f | %.1f | %s |\n", hosts, c.goal, hops/here[len(here)/2], hops/there,
			verdict)
	}
	return b.String()
}
