package fold_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/sim/internal/fold"
)

// TestSlowPortKeepsRanksApart: ranks are taken for each other where the ports of every net carry equal
// parts; with one port of a fused NIC slower than the other, or of one host's NIC two ports and of another
// one, nothing is folded.
func TestSlowPortKeepsRanksApart(t *testing.T) {
	const host = `
cpu 0
  switch 10
    gpu 11
      nvlink switch
    card 20.0
      net a speed=FIRST
    card 20.1
      net b speed=SECOND
  switch 30
    gpu 31
      nvlink switch
    card 40.0
      net c
    card 40.1
      net d
`
	for speeds, folds := range map[string]bool{"400000 400000": true, "400000 100000": false} {
		first, second, _ := strings.Cut(speeds, " ")
		c := ruletest.Comm(t, strings.NewReplacer("FIRST", first, "SECOND", second).Replace(host), 4,
			"NCCL_ALGO=Ring", "NCCL_PROTO=Simple")
		p, _, err := c.Plan(comm.Op{Func: coll.AllGather, Type: coll.Float32, Count: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		of := fold.Config{Systems: c.Systems()}
		if got := len(of.Proposals(p)) > 0; got != folds {
			t.Errorf("ports of %s Mbit/s: folds %t, want %t", speeds, got, folds)
		}
	}
}
