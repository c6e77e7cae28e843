package sim_test

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// waitings is a Sink that adds up bytes · time before each link.
type waitings struct {
	t    *testing.T
	area map[string]float64 // byte seconds
	last map[string]trace.Event
	now  map[string]float64
}

func (w *waitings) Track(trace.Track) trace.TrackID { return 0 }
func (w *waitings) Close() error                    { return nil }

func (w *waitings) Emit(e *trace.Event) {
	link, queued := strings.CutSuffix(e.Name, " queued B")
	if e.Phase != trace.Counter || !queued {
		return
	}
	before := w.last[link]
	if e.Start < before.Start {
		w.t.Errorf("%s: a counter goes back from %v to %v", link, before.Start, e.Start)
	}
	w.area[link] += w.now[link] * float64(e.Start-before.Start)
	w.last[link], w.now[link] = *e, e.Args[0].Num
	if w.now[link] < 0 {
		w.t.Errorf("%s: %g bytes wait", link, w.now[link])
	}
}

// The counter of bytes before a link has the mean that --columns +queue shows,
// and ends with nothing.
func TestQueueCountersHaveTheEstimateAsMean(t *testing.T) {
	c, systems := reference(t, "dgx-h100.n2")
	n, err := fabric.Generate(*rails(4, 1))
	if err != nil {
		t.Fatal(err)
	}
	var bound *fabric.Fabric
	if bound, err = n.Bind([]int{8, 8}, 1); err != nil {
		t.Fatal(err)
	}
	w := &waitings{t: t, area: map[string]float64{}, last: map[string]trace.Event{},
		now: map[string]float64{}}
	cfg := sim.Config{Systems: systems, Kernels: 1, NoJitter: true, Fabric: bound, Launch: sim.Graph,
		Trace: nccl.Options{Detail: nccl.DetailStep}}
	r, _ := simulate(t, c, cfg, comm.Op{Func: coll.AllReduce, Count: 3 << 20, Type: coll.Float32}, w)
	seen := 0
	for _, l := range r.Links {
		if l.Queue < 1000 {
			continue
		}
		seen++
		mean := w.area[l.Name] / float64(r.Elapsed)
		if math.Abs(mean/float64(l.Queue)-1) > 0.01 {
			t.Errorf("%s: %.0f bytes wait in the mean, the estimate is %d", l.Name, mean,
				units.Bytes(l.Queue))
		}
		if w.now[l.Name] != 0 {
			t.Errorf("%s: %g bytes wait at the end", l.Name, w.now[l.Name])
		}
	}
	if seen == 0 {
		t.Error("nothing waits before uplinks of a quarter of the speed")
	}
}
