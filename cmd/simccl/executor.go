package main

import (
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace/nccltrace"
)

// executor makes the simulator for a machine.
func (r *runFlags) executor(m *machine, opt nccltrace.Options) (exec.Executor, error) {
	launch := sim.Eager
	if r.graphs() > 0 {
		launch = sim.Graph
	}
	cfg := sim.Config{Comm: m.comm.Comm, Systems: m.systems(), Launch: launch, Seed: r.seed, Trace: opt}
	if err := r.between(m, &cfg); err != nil {
		return nil, err
	}
	return sim.New(cfg)
}

// options are what --trace-detail, --trace-ranks and --event-mask ask for.
func (o *outputFlags) options(ranks int) (nccltrace.Options, error) {
	which, err := parseRanks(o.ranks, ranks)
	detail := nccltrace.Detail(slices.Index(nccltrace.Details[:], o.detail))
	return nccltrace.Options{Detail: detail, Ranks: which, Mask: o.mask}, err
}
