package main

import (
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
)

// executor makes the simulator for a machine.
func (r *runFlags) executor(m *machine) (exec.Executor, error) {
	launch := sim.Eager
	if r.graphs() > 0 {
		launch = sim.Graph
	}
	return sim.New(sim.Config{Comm: m.comm.Comm, Systems: m.systems(), Launch: launch, Seed: r.seed})
}
