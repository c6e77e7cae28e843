package replay_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/chakra"
	"github.com/simccl/simccl/workload/transform"
)

// onNodes is a machine of so many nodes without multicast.
func onNodes(t *testing.T, topo string, nodes, gpus int) *session.Machine {
	t.Helper()
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}},
		GPUs: gpus, Multicast: "off"}}
	site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// throughChakra is a program as its traces have it.
func throughChakra(t *testing.T, p *workload.Program) *workload.Program {
	t.Helper()
	traces, groups, _, err := chakra.From(p)
	if err != nil {
		t.Fatal(err)
	}
	var read []*chakra.Trace
	for i, x := range traces {
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		y, err := chakra.Read(&b, fmt.Sprintf("x.%d.et", i))
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, y)
	}
	q, _, err := chakra.Program(read, chakra.Options{Groups: groups})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestPeers finds our figures of docs/results/ACCURACY-JOBS.md anew, prints them, and holds the
// page to them: make accuracy-jobs.
func TestPeers(t *testing.T) {
	samples := golden.Root(t, "..", "shared", "workloads", "samples")
	truth := golden.Root(t, "..", "shared", "workloads", "truth")
	if _, err := os.Stat(samples); err != nil {
		t.Skip("the recordings beside the checkout are not there: " + samples)
	}
	found := map[string]float64{} // by the first cell of a row; ms, or us of a call
	h200, h100 := onNodes(t, "h200x4", 1, 0), onNodes(t, "dgx-h100", 1, 0)
	for _, c := range []string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"} {
		for n, m := range map[int]*session.Machine{4: h200, 8: h100} {
			name := fmt.Sprintf("astra_%s.%d", c, n)
			found[name] = replayed(t, m, readJob(t, filepath.Join(samples, "chakra", name), ".et").Program,
				replay.Options{Host: 1}).IterationUs
		}
	}
	for _, mode := range []string{"ddp", "ep", "pp"} {
		p := readJob(t, filepath.Join(truth, mode), "trace_rank", "meta").Program
		p, err := transform.Host(p, 0)
		if err == nil {
			p, err = transform.Between(p, "ProfilerStep#1", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		found[mode] = replayed(t, h200, throughChakra(t, p), replay.Options{}).IterationUs / 1000
	}
	found["microAllReduce.txt"] = replayed(t, h100, readJob(t, filepath.Join(samples, "simai"),
		"microAllReduce").Program, replay.Options{Host: 1}).IterationUs / 1000
	if os.Getenv("SIMCCL_UPDATE") != "" { // takes ten seconds
		r := replayed(t, onNodes(t, "dgx-h100", 48, 0), readJob(t, filepath.Join(samples, "simai"),
			"workload_analytical").Program, replay.Options{Host: 1})
		found["workload_analytical.txt, compute"] = r.ComputeUs / 1000
		for kind, row := range map[string]string{"EP": "expert groups", "TP": "tensor groups",
			"DP": "data groups"} {
			sum, n := 0.0, 0
			for _, g := range r.Groups {
				if g.Kind == kind {
					sum, n = sum+g.ExposedUs/1000, n+1
				}
			}
			found["workload_analytical.txt, "+row] = sum / float64(n)
		}
	}
	checkPage(t, found)
}

// checkPage compares figures with the last column but one of the page's rows.
func checkPage(t *testing.T, found map[string]float64) {
	text, err := os.ReadFile(golden.Root(t, "docs", "results", "ACCURACY-JOBS.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \|.*\| ([0-9.]+) \| [^|]* \|$`)
	on := map[string]float64{}
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		on[strings.TrimSpace(m[1])], _ = strconv.ParseFloat(m[2], 64)
	}
	for name, v := range found { //lint:sorted each by itself
		t.Logf("| %s | %.2f |", name, v)
		if math.Abs(on[name]/v-1) > 0.005 {
			t.Errorf("results/ACCURACY-JOBS.md has %g of %s, it is %.2f now; write it there",
				on[name], name, v)
		}
	}
	if len(on) < len(found) {
		t.Errorf("the page has %d rows, %d were found", len(on), len(found))
	}
}
