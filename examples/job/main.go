// Command job makes a step of data parallel training as a program of two streams, and says
// how much of its all_reduce the computation hides.
package main

import (
	"context"
	"fmt"
	"log"
	"slices"
	"testing/fstest"

	"github.com/simccl/simccl"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// step is computation on stream 0, in two halves; behind the first, stream 1 reduces the
// gradients of that half on 16 ranks.
func step() *workload.Program {
	const half = 2 * units.Millisecond
	return &workload.Program{
		Comms: []workload.Comm{{Name: "dp"}},
		Calls: []workload.Call{{Func: coll.AllReduce, Type: coll.Float16, RedOp: coll.Sum, Count: 64 << 20}},
		Lists: []workload.List{{Name: "step", Steps: []workload.Step{
			{Kind: workload.Compute, Stream: 0, Time: half},
			{Kind: workload.Issue, Stream: 1, Call: 0, Deps: []int32{0}},
			{Kind: workload.Compute, Stream: 0, Time: half},
		}}},
		Of: make([]int32, 16), // every rank has list 0
	}
}

func main() {
	p := step()
	if err := p.Lint(); err != nil {
		log.Fatal(err)
	}
	files := fstest.MapFS{"step.txt": {Data: []byte(p.Format())}}
	r, err := simccl.RunJob(context.Background(), simccl.Spec{Workload: simccl.Workload{Job: "step.txt"}},
		simccl.Options{Files: files})
	if err != nil {
		log.Fatal(err)
	}
	whole, compute, alone := slices.Max(r.Finish), 4*units.Millisecond, r.Alone[0]
	fmt.Printf("step %.2f ms: computation %.2f ms, all_reduce alone %.2f ms, of it hidden %.0f %%\n",
		whole.Micros()/1e3, compute.Micros()/1e3, alone.Micros()/1e3,
		100*(1-float64(whole-compute)/float64(alone)))
}
