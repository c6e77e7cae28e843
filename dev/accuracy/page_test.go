package accuracy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/study/calibrate"
)

// cell gathers what is known of one operation of one set.
type cell struct{ all, large, model sum }

func (c *cell) add(p *Point) {
	c.all.add(p.Off())
	if p.large() {
		c.large.add(p.Off())
	}
	if p.ModelUs > 0 {
		c.model.add(p.ModelUs/p.Us - 1)
	}
}

// column sums up points by operation.
type column map[coll.Func]*cell

func (c column) at(f coll.Func) *cell {
	if c[f] == nil {
		c[f] = new(cell)
	}
	return c[f]
}

// columnOf sums up the points that are meant.
func columnOf(points []Point, meant func(*Point) bool) column {
	c := column{}
	for i := range points {
		if p := &points[i]; meant(p) {
			c.at(p.Op.Func).add(p)
		}
	}
	return c
}

var order = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce,
	coll.AllToAll, coll.SendRecv}

// five sums up the collectives that NCCL's model covers.
func (c column) five() (all, large sum) {
	for _, f := range order[:5] {
		all.merge(&c.at(f).all)
		large.merge(&c.at(f).large)
	}
	return all, large
}

func (c column) rows(b *strings.Builder, name string) {
	for _, f := range order {
		x := c[f]
		if x == nil || x.all.n == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", name, f.TestName(), x.all.n,
			percent(x.all.mean()), percent(x.all.max), percent(x.large.mean()), percent(x.large.max),
			percent(x.model.mean()), percent(x.model.max))
	}
}

// floor compares the two machines at equal settings and sizes.
func floor(points []Point) column {
	at := map[string]float64{}
	for i := range points {
		if p := &points[i]; p.procs() && p.Set() == "default_4" {
			at[fmt.Sprint(p.Op.Func, p.Bytes)] = p.Us
		}
	}
	c := column{}
	for i := range points {
		p := &points[i]
		v := at[fmt.Sprint(p.Op.Func, p.Bytes)]
		if p.Set() != "rep_default_4" || v == 0 {
			continue
		}
		x := c.at(p.Op.Func)
		x.all.add(p.Us/v - 1)
		if p.large() {
			x.large.add(p.Us/v - 1)
		}
	}
	return c
}

const pageHead = `# How far simulated times are from measured ones

Written by ` + "`make accuracy`" + `; do not edit. Data: testdata/measured/h200x4, procs and more (4 x H200 behind NVSwitch, NCCL 2.28.9),
CUDA-graph replay. Errors are |simulated/measured − 1| in percent, always the mean and the largest. **Held out** are the sizes of odd
place in each file; parameters (sim/gpu/classes/nvswitch-sm90.json, the table at the end) were fitted to those of even place.
*NCCL* is the error of NCCL's own cost model on the same points. Between nodes nothing was measured; the last part compares
published tables of clusters, file by file.

`

const pageFloor = `
The rows *another machine of the kind* are the floor: the same runs on a second machine against the first. Below 1 MiB the time
between kernels alone differs by 1.5 us from one process to the next (4.3 us or 5.9 us, reduce of 8 B): half of all errors of
small LL operations is this choice.

`

const pageLeftOut = `
## What is left out

The eager columns of these files (what the host adds is a matter of the host: host_launch); nccl-tests/ below 16 MiB (one
process drives all GPUs: times are its launches); bench/ (our own runs: docs/results/HARDWARE.md); p2p.txt (plain copies, no
operations); logs/ (loopback TCP, bound by the CPU). Three GPUs were not measured.
`

const pageTable = "| set | operation | points | mean | max | mean ≥ 1 MiB | max ≥ 1 MiB | NCCL mean | NCCL " +
	"max |\n|---|---|---|---|---|---|---|---|---|\n"

// TestAccuracyPage keeps docs/results/ACCURACY.md, and the errors within their limits.
func TestAccuracyPage(t *testing.T) {
	if testing.Short() && !golden.Updating() {
		t.Skip("runs every measured point")
	}
	points := simulated(t, measured(t, "procs", "more"))
	direct := func(p *Point) bool { return !p.shm() }
	heldOut := columnOf(points, func(p *Point) bool { return direct(p) && p.Held(2) })
	var b strings.Builder
	b.WriteString(pageHead + "## In short\n\n" + pageTable)
	heldOut.rows(&b, "held out")
	five, large := heldOut.five()
	fmt.Fprintf(&b, "| **held out** | **five collectives** | %d | **%s** | %s | **%s** | %s | | |\n", five.n,
		percent(five.mean()), percent(five.max), percent(large.mean()), percent(large.max))
	columnOf(points, direct).rows(&b, "all sizes")
	columnOf(points, func(p *Point) bool { return p.shm() && p.Held(2) }).rows(&b,
		"held out, through host memory")
	floor(points).rows(&b, "another machine of the kind")
	b.WriteString(pageFloor)
	others(t, &b)
	b.WriteString("\n## By set\n\nNames as in testdata/measured/README.md; all sizes.\n\n" + pageTable)
	for i := range points {
		if i > 0 && points[i].Run == points[i-1].Run {
			continue
		}
		run := points[i].Run
		columnOf(points, func(p *Point) bool { return p.Run == run }).rows(&b, points[i].Set())
	}
	b.WriteString(pageLeftOut)
	parameters(&b)
	_, cluster := splitPage(t)
	golden.Text(t, accuracyPage(t), b.String()+"\n"+cluster)
	limits(t, heldOut)
	t.Logf("five collectives held out: %s %% all sizes, %s %% from 1 MiB", percent(five.mean()),
		percent(large.mean()))
}

const pageOthers = `## Runs that no fit saw

Tables of nccl-tests from 16 to 256 MiB (one process drives all GPUs; smaller sizes are its launches), out of place and in place,
and what ` + "`simccl calibrate`" + ` measured on a third machine, graph replay.

`

// others tables what was measured in other ways, on other machines of the kind.
func others(t *testing.T, b *strings.Builder) {
	points := simulated(t, slices.DeleteFunc(measured(t, "nccl-tests", "calibrate"),
		func(p calibrate.Point) bool {
			return p.Run.Launch == sim.Eager && (p.Bytes < 16<<20 || p.Bytes > 256<<20)
		}))
	b.WriteString(pageOthers + pageTable)
	for _, x := range []struct {
		name    string
		dir     string
		inPlace bool
	}{{"nccl-tests, out of place", "nccl-tests/", false}, {"nccl-tests, in place", "nccl-tests/", true},
		{"calibrate, first run", "calibrate/first/", false}, {"calibrate, later run", "calibrate/later/",
			false}} {
		columnOf(points, func(p *Point) bool {
			return strings.HasPrefix(p.Run.File, x.dir) && p.Op.InPlace == x.inPlace
		}).rows(b, x.name)
	}
}

// limits fails where an error is beyond what the page says today, rounded as
// there: 4.1, 3.4, 4.7 and 3.1 %. A page that is written anew cannot say more. Until the class
// was fitted to five hosts at once, and to HBM apart from L2, they were 4.0, 3.2, 5.3 and 3.8 %.
func limits(t *testing.T, heldOut column) {
	five, large := heldOut.five()
	for _, x := range []struct {
		what  string
		got   float64
		limit float64
	}{{"five collectives", five.mean(), 0.0415}, {"five collectives from 1 MiB", large.mean(), 0.0345},
		{"alltoall", heldOut[coll.AllToAll].all.mean(), 0.0475},
		{"sendrecv", heldOut[coll.SendRecv].all.mean(), 0.0315}} {
		if x.got > x.limit {
			t.Errorf("%s, sizes held out: mean error %.1f %%, want at most %g %%", x.what, 100*x.got,
				100*x.limit)
		}
	}
}

// parameters tables the class, with where each value is from.
func parameters(b *strings.Builder) {
	c := gpu.NVSwitch90()
	fmt.Fprintf(b, "\n## Parameters\n\n"+
		"%s. *Measured*: fitted to sizes of even place; the uncertainty is one standard deviation,\n"+
		"from the scatter of whole series.\n\n"+
		"| parameter | value | unit | ± %% | source | what it is |\n|---|---|---|---|---|---|\n",
		c.Summary(gpu.NoNetwork))
	for _, q := range gpu.Quantities() {
		o := c.Origins[q.Name]
		what := q.Meaning
		if o.Note != "" {
			what += " (" + o.Note + ")"
		}
		fmt.Fprintf(b, "| %s | %.4g | %s | %.0f | %s | %s |\n", q.Name, *q.At(&c), q.Unit, 100*o.Uncertainty,
			o.Source, what)
	}
}
