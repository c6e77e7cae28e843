package main

import (
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace/nccltrace"
)

// executor makes the simulator for a machine.
func (r *runFlags) executor(m *machine) (exec.Executor, error) {
	launch := sim.Eager
	if r.graphs() > 0 {
		launch = sim.Graph
	}
	ranks, err := parseRanks(r.out.ranks, m.comm.NRanks)
	if err != nil {
		return nil, err
	}
	detail := nccltrace.Detail(slices.Index(nccltrace.Details[:], r.out.detail))
	return sim.New(sim.Config{Comm: m.comm.Comm, Systems: m.systems(), Launch: launch, Seed: r.seed,
		Trace: nccltrace.Options{Detail: detail, Ranks: ranks, Mask: r.out.mask}})
}
