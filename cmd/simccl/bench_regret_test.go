package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/app/process/status"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/units"
)

// paced is a machine on which NCCL's choice takes 12 us, and forced to a rival
// what the table says.
type paced struct {
	recorded
	us     float64
	table  map[string]float64
	forced *[]string
	open   *int
}

func (p *paced) Measure(_ context.Context, _ *bench.Op, o bench.Options) (m bench.Measurement, err error) {
	m.Time, m.Checked, m.Shape = units.FromMicros(p.us), o.Check > 0, "nccl"
	return m, nil
}

func (p *paced) Close() error { *p.open--; return nil }

func (p *paced) Force(_ context.Context, v bench.Rival) (bench.Backend, error) {
	*p.forced = append(*p.forced, v.String())
	*p.open++
	us, ok := p.table[v.String()]
	if !ok {
		us = 50
	}
	return &paced{recorded: p.recorded, us: us, open: p.open}, nil
}

// TestRegretOnHardware: the column is the choice's time over the fastest
// rival's, every contender of the cost model is forced, and no communicator stays
// open.
func TestRegretOnHardware(t *testing.T) {
	var forced []string
	open := 0
	inPlaceOfGPUs(t, func() bench.Backend {
		open++
		return &paced{recorded: recorded{n: 4}, us: 12, table: map[string]float64{"RING/LL128": 10,
			"TREE/LL": 11}, forced: &forced, open: &open}
	})
	topo := golden.Root(t, "testdata", "topos", "h200x4-4.xml")
	out := simccl(t, "bench", "all_reduce", "--topo", topo, "--multicast", "off", "-b", "8", "-e", "8",
		"--launch", "graph", "--columns", "+regret,algo,proto")
	row := strings.Fields(lineWith(t, out, "float"))
	if got := row[13:]; strings.Join(got, " ") != "1.200 RING/LL128 RING LL" {
		t.Errorf("regret, the better choice, and NCCL's: %q, want 1.200 RING/LL128 RING LL", got)
	}
	if got := strings.Join(forced, " "); got != "TREE/LL TREE/LL128 TREE/SIMPLE RING/LL128 RING/SIMPLE" ||
		open != 0 {
		t.Errorf("forced %s; %d left open", got, open)
	}
	out = simccl(t, "bench", "all_reduce", "--topo", topo, "--multicast", "off", "-b", "8", "-e", "8",
		"--columns", "+regret", "--json")
	if !strings.Contains(out, `"regret":1.2,"best":"RING/LL128"`) {
		t.Errorf("JSON tells no regret: %s", out)
	}
	out = simccl(t, "bench", "alltoall", "--topo", topo, "--multicast", "off", "-b", "1K", "-e", "1K",
		"--columns", "+regret")
	if row := strings.Fields(lineWith(t, out, "float")); row[len(row)-1] != "-" {
		t.Errorf("alltoall has no rivals, and yet a regret: %q", row)
	}
}

// TestRegretNeedsNCCL: other backends have nothing to force.
func TestRegretNeedsNCCL(t *testing.T) {
	for _, back := range []string{"host", "sockets"} {
		var errs bytes.Buffer
		code := run(t.Context(), []string{"bench", "all_reduce", "--backend", back, "-b", "8", "-e", "8",
			"--columns", "+regret"}, appOf(process.Process{Out: &errs, Err: &errs}))
		if code != status.Usage || !strings.Contains(errs.String(), "has no rivals to measure") {
			t.Errorf("%s: exit status %d: %s", back, code, errs.String())
		}
	}
}

func lineWith(t *testing.T, text, word string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") && strings.Contains(line, word) {
			return line
		}
	}
	t.Fatalf("no line with %q in\n%s", word, text)
	return ""
}
