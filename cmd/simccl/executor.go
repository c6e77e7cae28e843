package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/trace/nccltrace"
)

// executor makes the simulator for a machine.
// tell, where it is not nil, hears how far each run is.
func (r *runFlags) executor(m *machine, opt nccltrace.Options, tell func(float64)) (exec.Executor, error) {
	launch := sim.Eager
	if r.graphs() > 0 {
		launch = sim.Graph
	}
	share, err := r.gpusOfThread(m)
	if err != nil {
		return nil, err
	}
	cfg := sim.Config{Comm: m.comm.Comm, Systems: m.comm.Systems(), Class: &m.class, Launch: launch, PerThread: share, Seed: r.seed, Trace: opt,
		Fold: foldings[r.fold], Progress: tell}
	if err := r.between(m, &cfg); err != nil {
		return nil, err
	}
	return sim.New(cfg)
}

// foldings are the words of --fold.
var foldings = map[string]sim.Folding{"": sim.FoldAuto, "auto": sim.FoldAuto, "exact": sim.FoldExact, "near": sim.FoldNear, "off": sim.Unfolded}

const foldWords = "auto (those alike are one; beyond 512 ranks where need be also those nearly alike), exact, near, off"

// nearNotes tells of the rows that are near and not exact.
func (s *sweep) nearNotes() []string {
	var out []string
	for _, what := range slices.Compact(slices.Clone(s.near)) {
		out = append(out, fmt.Sprintf("Near, not exact, %s; --fold exact leaves nothing out", what))
	}
	return out
}

// readClass finds the machine class: that of --machine-class, a file or a name,
// or the one that fits the topology.
func (m *machineFlags) readClass(a *app, out *machine) (err error) {
	switch {
	case m.class == "":
		out.class = sim.ClassOf(out.cluster.Locate(0).System)
		return nil
	case !strings.ContainsAny(m.class, "./"):
		if out.class, err = gpu.Named(m.class); err != nil {
			return usage("--machine-class: %v; a file is written with its path, ./%s", err, m.class)
		}
		return nil
	}
	data, err := a.read(m.class, maxClass)
	if err != nil {
		return err
	}
	out.class, err = gpu.Parse(data, m.class)
	return input(err)
}

// options are what --trace-detail, --trace-ranks, --trace-deps and --event-mask ask for.
func (o *outputFlags) options(ranks int) (nccltrace.Options, error) {
	which, err := parseRanks(o.ranks, ranks)
	detail := nccltrace.Detail(slices.Index(nccltrace.Details[:], o.detail))
	return nccltrace.Options{Detail: detail, Ranks: which, Mask: o.mask, Deps: o.deps}, err
}
