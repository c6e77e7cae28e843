package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
)

// An alltoall on nodes whose ranks take turns runs the programs of one rank, and
// every rank ends when it does by itself, where parts are whole lines. The links
// of an HGX A100 of 4 GPUs differ, and the ranks of a node remain.
func TestAlltoallFoldsOntoOneRank(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		machine := rapid.SampledFrom([]string{"dgx-h100.n2", "dgx-h100.n2", "hgx-a100-4.n2"}).Draw(rt,
			"machine")
		c, systems := nodes(t, machine, rapid.IntRange(2, 5).Draw(rt, "nodes"), comm.Params{})
		lines := rapid.Int64Range(1, 1<<9).Draw(rt, "lines")
		req, _, err := c.Request(comm.Op{Func: coll.AllToAll, Count: 32 * lines, Type: coll.Float32})
		if err != nil {
			rt.Fatal(err)
		}
		cfg := sim.Config{Systems: systems, NoJitter: true, Fold: sim.Unfolded}
		want, _ := simulatePlan(t, c, cfg, req, trace.Discard)
		cfg.Fold = sim.FoldExact
		got, p := simulatePlan(t, c, cfg, req, trace.Discard)
		most := len(p.Programs(0))
		if machine != "dgx-h100.n2" {
			most *= c.MaxLocalRanks
		}
		if got.Account.Method != exec.Folded || got.Account.Programs > most {
			rt.Fatalf("%d programs, found as %v; want %d", got.Account.Programs, got.Account.Method, most)
		}
		if got.Elapsed != want.Elapsed {
			rt.Fatalf("%v folded, %v rank by rank", got.Elapsed, want.Elapsed)
		}
		for r := range want.Finish {
			if got.Finish[r] != want.Finish[r] {
				rt.Fatalf("rank %d ends at %v folded, at %v by itself", r, got.Finish[r], want.Finish[r])
			}
		}
	})
}
