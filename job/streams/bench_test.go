package streams

import (
	"context"
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// grid is a job of nodes of 8 ranks: a communicator a node and one a rail, which
// every rank calls in turn, with compute beside it. spread makes ranks differ.
func grid(nodes, steps int, spread bool) *Input {
	const per = 8
	n := nodes * per
	p := &workload.Program{Of: make([]int32, n), Works: []workload.Work{{Name: "gemm", Blocks: 132, PerSM: 1,
		Bytes: 1 << 20}}}
	add := func(c workload.Comm) {
		p.Comms = append(p.Comms, c)
		p.Calls = append(p.Calls, workload.Call{Comm: int32(len(p.Comms) - 1), Func: coll.AllReduce,
			Type: coll.Float32, Count: 1 << 20})
	}
	for k := range nodes {
		c := workload.Comm{Name: fmt.Sprint("tp", k)}
		for r := range per {
			c.Ranks = append(c.Ranks, int32(k*per+r))
		}
		add(c)
	}
	for r := range per {
		c := workload.Comm{Name: fmt.Sprint("dp", r)}
		for k := range nodes {
			c.Ranks = append(c.Ranks, int32(k*per+r))
		}
		add(c)
	}
	for r := range n {
		p.Of[r] = int32(r)
		l := workload.List{Name: fmt.Sprint(r)}
		for s := range steps / 4 {
			l.Steps = append(l.Steps, workload.Step{Kind: workload.Compute, Time: 50 * us, Work: 1},
				workload.Step{Stream: 1, Call: int32(r / per)},
				workload.Step{Kind: workload.Compute, Time: 20*us + units.Time(s%7), Work: 1},
				workload.Step{Stream: 2, Call: int32(nodes + r%per)})
		}
		p.Lists = append(p.Lists, l)
	}
	if spread {
		p.Factor = make([]float64, n)
		for r := range p.Factor {
			p.Factor[r] = 1 + float64(r*7919%n)/float64(1000*n)
		}
	}
	in := &Input{Program: p, Resources: n * 4, GPUs: make([]GPU, n), Costs: make([]Cost, len(p.Calls))}
	for i := range in.GPUs {
		in.GPUs[i] = GPU{SMs: 132, Memory: 4240, Busy: 0.5, Traffic: 0.9, Tail: 80 * us}
	}
	for i := range in.Costs {
		c := &in.Costs[i]
		*c = Cost{Time: 30 * us, SMs: 16, Slowed: []Slowed{{1.5, 1.2, 0.1}, {3, 2, 0.2}}}
		for _, r := range p.Comms[i].Ranks {
			for k := range int32(4) {
				c.Needs = append(c.Needs, Need{Resource: r*4 + k, Share: 0.2 + 0.2*float64(k)})
			}
		}
	}
	return in
}

// BenchmarkJobs: a job that is simulated call by call.
func BenchmarkJobs(b *testing.B) {
	for _, x := range []struct {
		nodes, steps int
		spread       bool
	}{{1, 10000, false}, {64, 140, false}, {64, 140, true}, {128, 500, false}, {128, 500, true}} {
		b.Run(fmt.Sprintf("ranks=%d/steps=%d/spread=%v", x.nodes*8, x.steps, x.spread), func(b *testing.B) {
			in := grid(x.nodes, x.steps, x.spread)
			b.ReportAllocs()
			for b.Loop() {
				r, err := Run(context.Background(), in)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Operations), "calls")
			}
		})
	}
}
