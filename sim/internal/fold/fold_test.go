package fold_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/fluid"
	"github.com/simccl/simccl/sim/internal/fold"
	"github.com/simccl/simccl/sim/param"
	"github.com/simccl/simccl/units"
)

// ring is an operation around the 16 ranks of two nodes.
const ring = `{"scenario": 1,
  "machine": {"nodes": [{"topo": "dgx-h100.xml", "count": 2}], "class": "./round.json"},
  "nccl": {"env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_MAX_NCHANNELS": %q}},
  "workload": {"op": %q, "sizes": ["1M"]},
  "engine": {"launch": "graph"}}`

// run lays an operation out, folded where the Config allows and it holds, and
// returns the quotient, how many thread groups ran, and when each rank ended.
func run(t *testing.T, op, channels string, change func(*fold.Config, *engine.Options)) (*fold.Quotient, int,
	[]units.Time) {
	t.Helper()
	r, o := site.Plan(t, fmt.Sprintf(ring, channels, op))
	c := fold.Config{Systems: r.Site.Comm.Systems()}
	opt := engine.Options{Class: r.Site.Class(), Systems: c.Systems, Model: fluid.New(), Kernels: 1}
	change(&c, &opt)
	e := engine.New(&opt, o.Plan)
	q, err := exactly(e, &c)
	if err != nil {
		t.Fatal(err)
	}
	if q == nil {
		if len(e.Groups) > 0 || len(e.Conns) > 0 {
			t.Fatalf("a fold that was rejected leaves %d groups and %d connections", len(e.Groups),
				len(e.Conns))
		}
		if err := e.LayAll(e.Jobs[0]); err != nil {
			t.Fatal(err)
		}
	}
	e.LayHeads()
	e.Wire.Seal()
	e.Start()
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	var ends []units.Time
	for i := range e.Devices {
		ends = append(ends, e.Devices[i].Ends[0])
	}
	if q != nil {
		ends, _, _ = q.Finish(ends, int(e.Jobs[0].Kernels))
	}
	return q, len(e.Groups), ends
}

// exactly lays out the first exact quotient of an engine's plan that holds; nil without one.
func exactly(e *engine.Engine, c *fold.Config) (*fold.Quotient, error) {
	for _, p := range c.Proposals(e.Jobs[0].Plan) {
		if q, err := c.Lay(e, e.Jobs[0], p, false); q != nil || err != nil {
			return q, err
		}
	}
	return nil, nil
}

// unfolded adds a lossy port that nothing crosses: each rank is its own.
func unfolded(c *fold.Config, _ *engine.Options) {
	c.Faults = []param.Fault{{Loss: 1e-3}}
}

// TestEqualNodesFold: in a ring of equal shares what one rank of a node does, the
// rank in its place on the other node does at the same time. Few groups run for all,
// and every rank ends as it does when all run.
func TestEqualNodesFold(t *testing.T) {
	q, few, folded := run(t, "all_reduce", "16", func(*fold.Config, *engine.Options) {})
	if q == nil || q.Account().Method != exec.Folded {
		t.Fatal("equal nodes do not fold")
	}
	none, all, whole := run(t, "all_reduce", "16", unfolded)
	if none != nil || few >= all {
		t.Errorf("%d groups run in place of %d", few, all)
	}
	if !slices.Equal(folded, whole) {
		t.Errorf("ranks end folded at %v, rank by rank at %v", folded, whole)
	}
}

// TestStragglerHasNoDouble: a slow rank leaves nodes unequal, so that only channels
// can represent each other: more groups run than without it, and the ranks end as
// when all run.
func TestStragglerHasNoDouble(t *testing.T) {
	slow := func(c *fold.Config, o *engine.Options) {
		c.Slow = slices.Repeat([]float64{1}, 16)
		c.Slow[5] = 1.5
		o.Slow = c.Slow
	}
	_, few, _ := run(t, "all_reduce", "16", func(*fold.Config, *engine.Options) {})
	_, more, ends := run(t, "all_reduce", "16", slow)
	_, _, whole := run(t, "all_reduce", "16", func(c *fold.Config, o *engine.Options) {
		slow(c, o)
		unfolded(c, o)
	})
	if more <= few {
		t.Errorf("%d groups run with a slow rank, %d without", more, few)
	}
	if !slices.Equal(ends, whole) {
		t.Errorf("ranks end folded at %v, rank by rank at %v", ends, whole)
	}
}

// TestFoldsThatAreRejected: what makes one rank another than the rest leaves each to
// run, and nothing of the attempt is left in the engine.
func TestFoldsThatAreRejected(t *testing.T) {
	for name, x := range map[string]struct {
		op, channels string
		change       func(*fold.Config, *engine.Options)
	}{
		"a broadcast of one channel has a first and a last rank": {"broadcast", "1",
			func(*fold.Config, *engine.Options) {}},
		"a lossy port": {"all_reduce", "16", func(c *fold.Config, _ *engine.Options) {
			c.Faults = []param.Fault{{Loss: 1e-3}}
		}},
	} {
		if q, n, ends := run(t, x.op, x.channels, x.change); q != nil || len(ends) != 16 {
			t.Errorf("%s: folded to %d groups", name, n)
		}
	}
}

// TestUnlikeTransports: of pairs that the fold takes for equivalent one goes by NICs and one
// through memory, since one net of a node is slow: that fold does not hold, and is no error.
func TestUnlikeTransports(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(golden.Root(t, "testdata", "topos"), "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "slow.xml")
	if err := os.WriteFile(file, bytes.Replace(text, []byte(`speed="400000"`), []byte(`speed="100000"`), 1),
		0o600); err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse(fmt.Appendf(nil,
		`{"scenario": 1, "machine": {"nodes": [{"topo": %q, "count": 16}]}, "nccl": {"env": {"NCCL_P2P_DISABLE": "1"}},
		"workload": {"op": "alltoall", "sizes": ["64K"]}, "engine": {"launch": "graph"}}`, file), "scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scenario.Prepare(spec, site.Options())
	if err != nil {
		t.Fatal(err)
	}
	o, err := r.Plan(r.Lines()[0].Operation, true)
	if err != nil {
		t.Fatal(err)
	}
	c := fold.Config{Systems: r.Site.Comm.Systems()}
	e := engine.New(&engine.Options{Class: r.Site.Class(), Systems: c.Systems, Model: fluid.New(),
		Kernels: 1}, o.Plan)
	if _, err := exactly(e, &c); err != nil {
		t.Error(err)
	}
}
