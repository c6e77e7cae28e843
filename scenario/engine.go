package scenario

import (
	"fmt"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace/nccl"
)

// GPUsPerThread is how many GPUs one host thread launches for.
func (e *Engine) GPUsPerThread(c *fabric.Cluster) (int, error) {
	threads, procs := max(e.Threads, 1), e.Processes
	if procs == 0 && threads == 1 {
		return 1, nil // a process a GPU
	}
	procs = max(procs, 1)
	most := 0
	for h := range c.NHosts() {
		n := c.Host(h).NRanks()
		if n%(procs*threads) != 0 {
			return 0, &FieldError{Path: "engine.processes", Value: fmt.Sprint(procs), Problem: fmt.Sprintf(
				"%d GPUs of a node cannot be divided evenly among %d processes of %d threads; use a "+
					"multiple of %d GPUs of each node (-g counts those of a node, in nccl-tests those of "+
					"a thread)", n, procs, threads, procs*threads)}
		}
		most = max(most, n/(procs*threads))
	}
	return most, nil
}

// Executor makes a simulator of a loaded machine. opt chooses what a trace
// shows; progress, if not nil, is called with the share of a run that is done.
func (m *Site) Executor(spec *Spec, opt nccl.Options, progress func(float64)) (exec.Executor, error) {
	cfg, err := m.SimConfig(spec)
	if err != nil {
		return nil, err
	}
	cfg.Trace, cfg.Progress = opt, progress
	return sim.New(cfg)
}

// SimConfig is the simulator's configuration for a loaded machine: what spec says
// of engine, network and seed.
func (m *Site) SimConfig(spec *Spec) (sim.Config, error) {
	cfg, err := m.wholeConfig(spec)
	if err == nil && m.split != nil {
		return m.split.part.Config(m.split.machine, cfg), nil
	}
	return cfg, err
}

// wholeConfig is that of all ranks, however they are divided.
func (m *Site) wholeConfig(spec *Spec) (sim.Config, error) {
	whole := m.Comm
	if m.split != nil {
		whole = m.split.whole
	}
	perThread, err := spec.Engine.GPUsPerThread(m.Cluster)
	if err != nil {
		return sim.Config{}, err
	}
	cfg := sim.Config{Comm: whole.Layout, Systems: whole.Systems(), Class: m.Class(), PerThread: perThread,
		Seed: spec.seed(), Fold: foldingOf(spec.Engine.Fold), Budget: m.budget,
		NoSkip: spec.Engine.Skip == "off", NoJitter: spec.Engine.Jitter == "off"}
	// of the latter the host's time comes on top
	if spec.Engine.Launch == "graph" || spec.Engine.Blocking > 0 {
		cfg.Launch = sim.Graph
	}
	return cfg, m.network(spec, &cfg)
}

// seed is the Spec's seed, 1 where it has none.
func (s *Spec) seed() uint64 {
	if s.Seed == 0 {
		return 1
	}
	return s.Seed
}

// network fills in the network between the nodes, its faults and the settings of
// its transports.
func (m *Site) network(spec *Spec, cfg *sim.Config) error {
	if m.Network != nil {
		var err error
		if cfg.Fabric, err = m.Network.Bind(sim.Ports(m.Cluster), spec.seed()); err != nil {
			return bad(fmt.Errorf("%s: %w", spec.Network.Fabric, err))
		}
	}
	if netpreset.Framed(spec.Network.Model) {
		if err := checkFramed(spec.Network.Class, m.kind, m.Class(), m.Cluster); err != nil {
			return err
		}
	}
	netpreset.Transports(cfg, m.Config)
	if err := netpreset.Attach(cfg, m.Cluster, netpreset.File{Name: spec.Network.Fabric, Data: m.fabric,
		Network: m.Network}, netpreset.Choice{Model: spec.Network.Model, CC: spec.Network.CC,
		Balance: spec.Network.Balance}); err != nil {
		return err
	}
	for i, text := range spec.Network.Faults {
		if err := addFault(cfg, m.Cluster, text); err != nil {
			return &FieldError{Path: fmt.Sprintf("network.faults[%d]", i), Value: text, Problem: err.Error()}
		}
	}
	return nil
}
