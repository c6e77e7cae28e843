package scenario

import (
	"context"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/topo/builtin"
)

// TestPacketsOfJob: the calls of a job go frame by frame in both fidelities, about as
// long as flows where little meets, and equally each time.
func TestPacketsOfJob(t *testing.T) {
	const text = `workload 1
ranks 16
comm world *
comm half 0-7
list a 0-7
  call 1 world all_reduce half sum 1048576
  call 2 half all_gather half sum 65536
  call 1 world all_reduce half sum 1048576
list b 8-15
  call 1 world all_reduce half sum 1048576
  call 1 world all_reduce half sum 1048576
`
	opt := Options{Files: fstest.MapFS{"a.xml": {Data: builtin.DGXH100()}, "job.txt": {Data: []byte(text)}}}
	for _, fidelity := range []string{"share", "step"} {
		run := func(model string) float64 {
			spec := Spec{Machine: Machine{Nodes: []Nodes{{Topo: "a.xml", Count: 2}}},
				Network: Network{Model: model}, Workload: Workload{Job: "job.txt"},
				Engine: Engine{Fidelity: fidelity}}
			r, err := RunJob(context.Background(), spec, opt)
			if err != nil {
				t.Fatalf("%s, %q: %v", fidelity, model, err)
			}
			return r.Elapsed().Micros()
		}
		flow, frames, hybrid := run(""), run("packet"), run("hybrid")
		if again := run("packet"); frames != again {
			t.Errorf("%s: %.3f us and again %.3f", fidelity, frames, again)
		}
		if frames == flow || frames < 0.9*flow || frames > 1.1*flow || hybrid < 0.98*frames ||
			hybrid > 1.02*frames {
			t.Errorf("%s: flow %.2f us, packet %.2f, hybrid %.2f", fidelity, flow, frames, hybrid)
		}
	}
}
