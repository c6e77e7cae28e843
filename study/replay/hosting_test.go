package replay_test

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// stepped is a job of two ranks whose hosts launch kernels and record an event, so many times;
// two threads of rank 1's host work, at the same time.
func stepped(steps int, host [2]float64, gpu float64) (*workload.Program, [][][2]int32) {
	ms := func(x float64) units.Time { return units.FromMicros(1000 * x) }
	p, timed := &workload.Program{Of: []int32{0, 1}}, make([][][2]int32, 2)
	for rank, t := range host {
		l := workload.List{Name: "rank"}
		add := func(s workload.Step) int32 { l.Steps = append(l.Steps, s); return int32(len(l.Steps) - 1) }
		last, before := int32(-1), []int32(nil)
		for range steps + 1 {
			at := add(workload.Step{Kind: workload.Compute, Stream: workload.HostStream, Time: ms(t)})
			if rank == 1 {
				add(workload.Step{Kind: workload.Compute, Stream: workload.HostStream + 1, Time: ms(t / 2),
					Deps: before})
			}
			add(workload.Step{Kind: workload.Compute, Time: ms(gpu), Deps: []int32{at}})
			before = []int32{at}
			end := add(workload.Step{Kind: workload.Record, Event: 1, Deps: []int32{at}})
			if last >= 0 { // of each step a part is timed, too
				timed[rank] = append(timed[rank], [2]int32{end - 1, end}, [2]int32{last, end})
			}
			last = end
		}
		p.Lists = append(p.Lists, l)
	}
	return p, timed
}

// TestHosts: a job whose host bounds its steps differs from one whose GPUs do, and what a faster
// host wins is what it wins.
func TestHosts(t *testing.T) {
	m := onNodes(t, "dgx-h100", 1, 8)
	for _, x := range []struct {
		host         [2]float64
		gpu          float64
		limit        string
		rank         int
		work, faster float64
	}{
		{[2]float64{10, 12}, 5, replay.LimitHost, 1, 12, 10},
		{[2]float64{12, 10}, 11.5, replay.LimitNear, 0, 12, 11.5},
		{[2]float64{10, 10}, 16, replay.LimitGPU, 0, 10, 16},
		{[2]float64{4, 3}, 16, replay.LimitGPU, 0, 4, 0}, // not tried
	} {
		p, timed := stepped(9, x.host, x.gpu)
		res, err := m.Run(t.Context(), p, job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := replay.Hosts(t.Context(), p, m, res, timed, job.Share)
		if err != nil {
			t.Fatal(err)
		}
		step := max(x.host[0], x.host[1], x.gpu)
		near := func(us, ms float64) bool { return math.Abs(us-1000*ms) < 20 }
		if h.Limit != x.limit || h.Rank != x.rank || h.Steps != 9 || !near(h.StepUs, step) ||
			!near(h.FasterUs, x.faster) || h.Faster != replay.Faster {
			t.Errorf("%v: %+v", x, h)
		}
		if x.limit == replay.LimitHost && (!near(h.HostUs, x.work) || !strings.HasPrefix(h.String(),
			"host-bound: rank 1's host works 12.0 of the 12.0 ms")) {
			t.Errorf("%v: %s", x, h)
		}
	}
	p, _ := stepped(2, [2]float64{1, 1}, 1)
	res, err := m.Run(t.Context(), p, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if h, err := replay.Hosts(t.Context(), p, m, res, make([][][2]int32, 2), job.Share); h != nil ||
		err != nil {
		t.Errorf("nothing was timed: %v, %v", h, err)
	}
}
