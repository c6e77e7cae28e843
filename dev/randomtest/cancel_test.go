package whole

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// stages runs all pure stages with a cancel function and reports which one failed.
func stages(spec *topo.Spec, cancel func() error) (stage string, err error) {
	cfg, _, err := config.Load(config.Sources{NoEnv: true})
	if err != nil {
		return "config", err
	}
	cfg.Cancel(cancel)
	cl, err := fabric.NewUniform(spec, 2, cfg.Topo)
	if err != nil {
		return "topo", err
	}
	c, err := comm.New(cl, cfg.Comm())
	if err != nil {
		return "comm", err
	}
	pl, _, err := c.Plan(comm.Op{Func: coll.AllReduce, Count: 1 << 18, Type: coll.Float32, RedOp: coll.Sum})
	if err != nil {
		return "plan", err
	}
	return "check", check.Plan(pl)
}

// TestCancelEndsEveryStage cancels at chosen calls of the function that the stages
// poll: the stage that is at work must end with that error, soon after it.
func TestCancelEndsEveryStage(t *testing.T) {
	text, err := os.ReadFile(golden.Root(t, "testdata", "topos", "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(text, "dgx-h100.xml")
	if err != nil {
		t.Fatal(err)
	}
	polls := 0
	if stage, err := stages(spec, func() error { polls++; return nil }); err != nil {
		t.Fatal(stage, err)
	}
	t.Logf("%d polls from topology to proof", polls)
	seen := map[string]bool{}
	for at := 0; at < polls; at += max(1, polls/97) {
		n := 0
		stage, err := stages(spec, func() error {
			if n++; n > at {
				return context.Canceled
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled at poll %d of %d: %s: %v", at, polls, stage, err)
		}
		if n > at+2 {
			t.Errorf("cancelled at poll %d: %s went on for %d more", at, stage, n-at)
		}
		seen[stage] = true
	}
	for _, stage := range []string{"topo", "comm", "check"} {
		if !seen[stage] {
			t.Errorf("%s was never cancelled", stage)
		}
	}
}
