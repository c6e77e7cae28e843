package replay_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// twoStages is a pipeline of two stages that takes some numbers of microbatches in turn, all forward and then
// all backward.
func twoStages(head string, iterations ...int) string {
	var lists [2]strings.Builder
	at, last := [2]int{}, [2]string{}
	add := func(rank int, format string, args ...any) int {
		fmt.Fprintf(&lists[rank], "  "+format+"\n", args...)
		at[rank]++
		return at[rank] - 1
	}
	for i, m := range iterations {
		for rank := range 2 {
			fmt.Fprintf(&lists[rank], "  mark iteration%d\n", i)
		}
		for _, way := range []string{"forward", "back"} {
			from, ms := 0, 200
			if way == "back" {
				from, ms = 1, 400
			}
			for range m {
				f := add(from, "compute 0 %d000000000", ms)
				add(from, "call %d %s send half sum 8 peer=%d after=%d", 2+from, way, 1-from, f)
				r := add(1-from, "call %d %s recv half sum 8 peer=%d%s", 2+from, way, from, last[1-from])
				last[1-from] = fmt.Sprintf(" after=%d", add(1-from, "compute 0 %d000000000 after=%d", ms, r))
				last[from] = fmt.Sprintf(" after=%d", f)
			}
		}
	}
	for rank := range 2 {
		fmt.Fprintf(&lists[rank], "  mark end\n")
	}
	return "workload 1\nranks 2\n" + head + "comm forward 0-1\ncomm back 0-1\nlist a 0\n" +
		lists[0].String() +
		"list b 1\n" + lists[1].String()
}

// TestIterationOfTwo: an iteration of many microbatches that two short ones represent takes what it takes
// when it is written whole, a stage that is through before the others included.
func TestIterationOfTwo(t *testing.T) {
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: 1}}}}
	site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		t.Fatal(err)
	}
	play := func(text string) *replay.Report {
		p, err := workload.Parse(text, "x")
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := replay.Run(t.Context(), &load.Job{Program: p}, p, m, replay.Options{Host: 1})
		if err != nil {
			t.Fatal(err)
		}
		r.On(site, nil, "")
		return r
	}
	const model = "model m parameters=1 tokens=1000000 flops=6"
	whole := play(twoStages(model+"\n", 40))
	short := play(twoStages(model+" microbatches=4,6,40\n", 4, 6))
	const want = (40 + 1) * 0.6 // seconds, until the slowest stage ends
	for _, r := range []*replay.Report{whole, short} {
		if s := 1e6 / 2 / r.TokensPerSecond; len(r.Steps) != 1 || math.Abs(s/want-1) > 0.001 {
			t.Errorf("an iteration of %.3f s, want %.1f", s, want)
		}
	}
}
