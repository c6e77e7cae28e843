package replay_test

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/load"
)

// TestMadeJobs: jobs from hyper-parameters run on 8 and 64 GPUs, take no less than the
// busiest rank computes, and move on the network what gen says.
func TestMadeJobs(t *testing.T) {
	gpu, _ := gen.Peak("h100", coll.BFloat16)
	base := gen.Config{Model: gen.Model{Layers: 4, Hidden: 1024, Heads: 16, KVHeads: 8, FFN: 4096,
		Vocab: 8192, TopK: 1},
		Seq:        1024,
		MicroBatch: 1, GlobalBatch: 16, Type: coll.BFloat16, GradType: coll.BFloat16,
		TP: 1, PP: 1, Virtual: 1, DP: 1, Bucket: 25 << 20, Prefetch: 1, EP: 1, Capacity: 1, CP: 1,
		Iterations: 1, GPU: gpu}
	for name, change := range map[string]func(*gen.Config){
		"fsdp":    func(c *gen.Config) { c.DP, c.FSDP = 8, 3 },
		"experts": func(c *gen.Config) { c.DP, c.EP, c.Experts, c.TopK = 8, 4, 8, 2 },
		"pipeline": func(c *gen.Config) {
			c.PP, c.Schedule, c.TP, c.SequenceParallel = 4, gen.ZeroBubble, 2, true
		},
		"ring": func(c *gen.Config) { c.CP, c.Ring, c.GlobalBatch, c.DP = 4, true, 2, 2 },
		// messages that no buffer holds: all ranks of a ring send at once
		"interleaved ring": func(c *gen.Config) {
			c.PP, c.DP, c.MicroBatch, c.GlobalBatch, c.Schedule, c.Virtual = 4, 2, 8, 256, gen.Interleaved, 2
			c.Layers = 8
		},
		"interleaved": func(c *gen.Config) {
			c.TP, c.PP, c.DP, c.Schedule, c.Virtual, c.SequenceParallel = 8, 2, 4, gen.Interleaved, 2, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := base
			change(&c)
			j, err := gen.Make(c)
			if err != nil {
				t.Fatal(err)
			}
			spec := scenario.Spec{
				Machine: scenario.Machine{
					Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: j.Program().Ranks() / 8}}}}
			site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
			if err != nil {
				t.Fatal(err)
			}
			m, err := site.Session(&spec)
			if err != nil {
				t.Fatal(err)
			}
			r, _, err := replay.Run(t.Context(), &load.Job{Program: j.Program()}, j.Program(), m,
				replay.Options{Host: 1})
			if err != nil {
				t.Fatal(err)
			}
			if r.IterationUs < r.BoundUs*0.999 || r.ExposedUs <= 0 || len(r.Steps) != 1 ||
				r.Steps[0].Name != "iteration0" {
				t.Errorf("%.1f us, at least %.1f, exposed %.1f, steps %+v", r.IterationUs, r.BoundUs,
					r.ExposedUs, r.Steps)
			}
		})
	}
}
