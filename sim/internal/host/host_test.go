package host_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/sim/internal/engine"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire/ideal"
	"github.com/simccl/simccl/units"
)

// broadcast is one step of 64 KiB from a node to another over RDMA.
const broadcast = `{"scenario": 1,
  "machine": {"nodes": [{"topo": "dgx-h100.xml", "count": 2}], "gpus": 1, "class": "./round.json"},
  "nccl": {"env": {"NCCL_ALGO": "Ring", "NCCL_PROTO": "Simple", "NCCL_MAX_NCHANNELS": "1"}},
  "workload": {"op": "broadcast", "sizes": ["64K"]},
  "engine": {"launch": "graph", "fold": "off"}}`

var points = [...]string{host.StepPosted: "posted", host.StepBegun: "begun", host.PartCrossed: "part crossed",
	host.StepLanded:  "landed",
	host.StepArrived: "arrived", host.StepAcked: "acked", host.StepOffered: "offered"}

// steps writes down the points in the life of each step.
type steps struct {
	now   *units.Time
	lines []string
}

func (s *steps) Step(ev host.StepEvent) {
	line := fmt.Sprintf("%.2f step %d %s", s.now.Micros(), ev.Step, points[ev.Point])
	if ev.Point == host.StepArrived {
		line += fmt.Sprintf(", readable at %.2f", ev.Raised.Micros())
	}
	s.lines = append(s.lines, line)
}
func (s *steps) Kernel(int32, units.Time)            {}
func (s *steps) Piece(engine.PieceEvent)             {}
func (s *steps) Sent(engine.SendEvent)               {}
func (s *steps) Phase(int32)                         {}
func (s *steps) Block(int32, units.Time)             {}
func (s *steps) Repeats() bool                       { return false }
func (s *steps) Keep()                               {}
func (s *steps) Period(engine.PeriodEvent)           {}
func (s *steps) Waits() bool                         { return false }
func (s *steps) Reduction(host.ReductionEvent)       {}
func (s *steps) Thread(int32, units.Time)            {}
func (s *steps) Delayed(*host.QueuePair, units.Time) {}

// TestOneStep: what a step over RDMA passes, in order, from the post of the sender's
// proxy thread to the end of the kernels. The
// story nic-step explains the times.
func TestOneStep(t *testing.T) {
	r, o := site.Plan(t, broadcast)
	e := engine.New(&engine.Options{Class: r.Site.Class(), Systems: r.Site.Comm.Systems(), Model: ideal.New(),
		Kernels: 1}, o.Plan)
	if err := e.LayAll(e.Jobs[0]); err != nil {
		t.Fatal(err)
	}
	e.LayHeads()
	e.Wire.Seal()
	s := &steps{now: &e.Queue.Now}
	e.Observer, e.Net.Observer = s, s
	e.Start()
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, want := strings.Join(s.lines, "\n"), strings.TrimSpace(`
12.77 step 0 posted
12.77 step 0 begun
14.13 step 0 part crossed
14.13 step 0 landed
17.18 step 0 arrived, readable at 19.58
19.18 step 0 acked
`)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
