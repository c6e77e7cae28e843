package bench

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
	"github.com/spf13/cobra"
)

// paced is a machine of four GPUs on which NCCL's choice takes 12 us, and forced to a rival
// what the table says.
type paced struct {
	us     float64
	table  map[string]float64
	forced *[]string
	open   *int
}

func (p *paced) About() bench.About {
	a := bench.About{Describe: "paced", Threads: 4}
	for i := range a.Threads {
		a.Devices = append(a.Devices,
			nccltests.Device{Rank: i, Host: "paced", Device: i, Name: "NVIDIA H200"})
	}
	return a
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
	return &paced{us: us, open: p.open}, nil
}

// TestRegretOnHardware: the column is the choice's time over the fastest
// rival's, every contender of the cost model is forced, and no communicator stays
// open.
func TestRegretOnHardware(t *testing.T) {
	var forced []string
	open := 0
	gpus := func(
		context.Context, *bench.Spec, *team.Team, bench.DeviceConfig, bench.NewModel,
	) (bench.Backend, error) {
		open++
		table := map[string]float64{"RING/LL128": 10, "TREE/LL": 11}
		return &paced{us: 12, table: table, forced: &forced, open: &open}, nil
	}
	topo := golden.Root(t, "testdata", "topos", "h200x4-4.xml")
	out := printed(t, gpus, false, "all_reduce", "--topo", topo, "--multicast", "off", "-b", "8", "-e", "8",
		"--launch", "graph", "--columns", "+regret,algo,proto")
	row := strings.Fields(lineWith(t, out, "float"))
	if got := row[13:]; strings.Join(got, " ") != "1.200 RING/LL128 RING LL" {
		t.Errorf("regret, the better choice, and NCCL's: %q, want 1.200 RING/LL128 RING LL", got)
	}
	if got := strings.Join(forced, " "); got != "TREE/LL TREE/LL128 TREE/SIMPLE RING/LL128 RING/SIMPLE" ||
		open != 0 {
		t.Errorf("forced %s; %d left open", got, open)
	}
	out = printed(t, gpus, true, "all_reduce", "--topo", topo, "--multicast", "off", "-b", "8", "-e", "8",
		"--columns", "+regret")
	if !strings.Contains(out, `"regret":1.2,"best":"RING/LL128"`) {
		t.Errorf("JSON tells no regret: %s", out)
	}
	out = printed(t, gpus, false, "alltoall", "--topo", topo, "--multicast", "off", "-b", "1K", "-e", "1K",
		"--columns", "+regret")
	if row := strings.Fields(lineWith(t, out, "float")); row[len(row)-1] != "-" {
		t.Errorf("alltoall has no rivals, and yet a regret: %q", row)
	}
}

// TestRegretNeedsNCCL: other backends have nothing to force.
func TestRegretNeedsNCCL(t *testing.T) {
	for _, back := range []string{"host", "sockets"} {
		o := parsed(t, "--backend", back, "-b", "8", "-e", "8", "--columns", "+regret")
		o.Op = "all_reduce"
		err := o.Run(t.Context(), &cli.App{Process: process.Process{Out: io.Discard, Err: io.Discard}})
		if cli.ExitStatus(err) != cli.StatusUsage || !strings.Contains(err.Error(),
			"has no rivals to measure") {
			t.Errorf("%s: %v", back, err)
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

// parsed are the options of a command line.
func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o := &Options{}
	c := &cobra.Command{}
	o.Register(c)
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// printed is what bench prints on GPUs of a test.
func printed(t *testing.T, gpus Opener, json bool, op string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	a := &cli.App{Process: process.Process{Out: &out, Err: &errs, Line: &process.Line{}}, JSON: json}
	o := parsed(t, args...)
	o.Op, o.Open = op, gpus
	if err := o.Run(t.Context(), a); err != nil {
		t.Fatalf("bench %s %s: %v\n%s%s", op, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String()
}
