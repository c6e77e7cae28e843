package accuracy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/internal/golden"
)

// cell gathers what is told of one operation of one set.
type cell struct{ all, large, model sum }

// column sums of a set, by operation.
type column map[coll.Func]*cell

func (c column) at(f coll.Func) *cell {
	if c[f] == nil {
		c[f] = new(cell)
	}
	return c[f]
}

// modelTime is NCCL's own prediction for a point, zero where it has none.
func (l *lab) modelTime(t testing.TB, p *Point) float64 {
	_, choice, err := l.comm(t, p.Set).Request(comm.Op{Func: p.Func, Count: p.Count(), Type: p.Set.Type})
	if err != nil {
		t.Fatal(err)
	}
	return float64(choice.TimeUs)
}

// judge fills columns: the sizes of odd place, which no fit saw, and all.
func (l *lab) judge(t testing.TB, s *Set, held, whole column) {
	for i := range s.Points {
		p := &s.Points[i]
		e := l.predict(t, p)/p.Graph - 1
		m := l.modelTime(t, p)
		for k, c := range []column{whole, held} {
			if k == 1 && p.Index%2 == 0 {
				continue
			}
			x := c.at(p.Func)
			x.all.add(e)
			if p.Bytes >= 1<<20 {
				x.large.add(e)
			}
			if m > 0 {
				x.model.add(m/p.Graph - 1)
			}
		}
	}
}

var order = []coll.Func{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce, coll.AllToAll, coll.SendRecv}

func (c column) rows(b *strings.Builder, name string) {
	for _, f := range order {
		x := c[f]
		if x == nil || x.all.n == 0 {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %d | %s | %s | %s | %s | %s |\n", name, f.TestName(), x.all.n,
			percent(x.all.mean()), percent(x.all.max), percent(x.large.mean()), percent(x.large.max), percent(x.model.mean()))
	}
}

func (s *sum) mean() float64 {
	if s.n == 0 {
		return -1
	}
	return s.sum / float64(s.n)
}

func percent(v float64) string {
	if v < 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f", 100*v)
}

// floor compares the two machines at equal settings and sizes.
func floor(sets []*Set) column {
	at := map[string]float64{}
	for _, s := range sets {
		if s.Name == "default_4" && s.Machine == "procs" {
			for _, p := range s.Points {
				at[fmt.Sprint(p.Func, p.Bytes)] = p.Graph
			}
		}
	}
	c := column{}
	for _, s := range sets {
		if s.Name != "rep_default_4" {
			continue
		}
		for _, p := range s.Points {
			if v, ok := at[fmt.Sprint(p.Func, p.Bytes)]; ok {
				c.at(p.Func).all.add(p.Graph/v - 1)
				if p.Bytes >= 1<<20 {
					c.at(p.Func).large.add(p.Graph/v - 1)
				}
			}
		}
	}
	return c
}

const pageHead = `# How far simulated times are from measured ones

Written by ` + "`make accuracy`" + `; do not edit. Data: testdata/measured/h200x4 (4 x H200 behind NVSwitch, NCCL 2.28.9), CUDA-graph
replay. Errors are |simulated/measured − 1| in percent. Parameters (sim/gpu/classes/nvswitch-sm90.json) were fitted to sizes of even place in each
file; **held out** are the sizes of odd place. *NCCL* is the error of NCCL's own cost model on the same points. Between nodes nothing
was measured: those parameters are estimates, and no figure here speaks of them:
ACCURACY-NETWORK.md compares published tables of clusters, file by file.

`

// TestAccuracyPage keeps docs/ACCURACY.md: errors by set beside NCCL's own
// model, and the floor that two machines of one kind set.
func TestAccuracyPage(t *testing.T) {
	if testing.Short() && !golden.Updating() {
		t.Skip("runs every measured point")
	}
	l := newLab(t)
	sets, err := Read(golden.Root(t, "testdata", "measured", "h200x4"))
	if err != nil {
		t.Fatal(err)
	}
	var b, all strings.Builder
	heldOut, whole := column{}, column{}
	for _, s := range sets {
		if s.SHM && l.systems[-s.Ranks] == nil {
			continue
		}
		own := column{}
		l.judge(t, s, heldOut, own)
		own.rows(&all, s.Name)
		for _, f := range order {
			if x := own[f]; x != nil {
				whole.at(f).merge(x)
			}
		}
	}
	head := "| set | operation | points | mean | max | mean ≥ 1 MiB | max ≥ 1 MiB | NCCL mean |\n|---|---|---|---|---|---|---|---|\n"
	b.WriteString(pageHead + "## In short\n\n" + head)
	heldOut.rows(&b, "held out")
	five, large := heldOut.five()
	fmt.Fprintf(&b, "| **held out** | **five collectives** | %d | **%s** | %s | **%s** | %s | |\n", five.n, percent(five.mean()), percent(five.max), percent(large.mean()), percent(large.max))
	whole.rows(&b, "all sizes")
	floor(sets).rows(&b, "another machine of the kind")
	b.WriteString("\nThe last rows are the floor: the same runs on a second machine against the first. Below 1 MiB the time between kernels\nalone differs by 1.5 us from one process to the next.\n\n## By set\n\nNames as in testdata/measured/README.md.\n\n" + head + all.String())
	golden.Text(t, golden.Root(t, "docs", "ACCURACY.md"), b.String())
	if m := five.mean(); m > 0.07 {
		t.Errorf("five collectives, sizes held out: mean error %.1f %%, want at most 7 %%", 100*m)
	}
	for _, f := range []coll.Func{coll.AllToAll, coll.SendRecv} {
		if m := heldOut[f].all.mean(); m > 0.12 {
			t.Errorf("%v, sizes held out: mean error %.1f %%, want at most 12 %%", f, 100*m)
		}
	}
	t.Logf("five collectives held out: %s %% all sizes, %s %% from 1 MiB", percent(five.mean()), percent(large.mean()))
}

func (s *sum) merge(o *sum) {
	s.n += o.n
	s.sum += o.sum
	s.bias += o.bias
	s.max = max(s.max, o.max)
}

func (c *cell) merge(o *cell) {
	c.all.merge(&o.all)
	c.large.merge(&o.large)
	c.model.merge(&o.model)
}

// five sums up the collectives that NCCL's model covers.
func (c column) five() (all, large sum) {
	for _, f := range order[:5] {
		all.merge(&c.at(f).all)
		large.merge(&c.at(f).large)
	}
	return all, large
}
