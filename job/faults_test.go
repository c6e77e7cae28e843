package job

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/sim"
)

// TestFaultsOfAPart: a communicator has the faults of its ranks, by their place in it, and those of its
// hosts; not those of ranks and hosts beside it.
func TestFaultsOfAPart(t *testing.T) {
	c := ruletest.Comm(t, "cpu 0\n  gpu 11\n    nvlink switch\n  gpu 12\n    nvlink switch\n", 1)
	m := &Machine{Sim: sim.Config{Progress: func(float64) {}}}
	for _, f := range [][2]int{{4, 0}, {5, 0}, {7, 3}, {8, 3}, {-1, 1}, {-1, 2}} {
		m.Sim.Faults = append(m.Sim.Faults, sim.Fault{Rank: f[0], Host: f[1]})
	}
	cfg := m.config(&communicator{shape: &shape{comm: c}, ranks: []int32{0, 5, 8}, hosts: []int{0, 2}})
	got := ""
	for _, f := range cfg.Faults {
		got += fmt.Sprintf("rank %d host %d; ", f.Rank, f.Host)
	}
	if want := "rank 1 host 0; rank 2 host 3; rank -1 host 2; "; got != want || cfg.Progress != nil ||
		cfg.Launch != sim.Graph {
		t.Errorf("%s, want %s", got, want)
	}
	if len(m.Sim.Faults) != 6 || m.Sim.Faults[1].Rank != 5 {
		t.Errorf("the machine's faults have changed: %+v", m.Sim.Faults)
	}
}
