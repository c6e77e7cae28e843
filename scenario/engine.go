package scenario

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/scenario/internal/fault"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// folds are the words of Engine.Fold.
var folds = []struct {
	word string
	fold sim.Folding
}{{"auto", sim.FoldAuto}, {"exact", sim.FoldExact}, {"near", sim.FoldNear}, {"off", sim.Unfolded}}

// Folds lists the words of Engine.Fold.
func Folds() []string {
	out := make([]string, len(folds))
	for i := range folds {
		out[i] = folds[i].word
	}
	return out
}

func (e *Engine) fold() sim.Folding {
	i := slices.IndexFunc(folds, func(f struct {
		word string
		fold sim.Folding
	}) bool {
		return f.word == e.Fold
	})
	return folds[max(i, 0)].fold
}

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
				"%d GPUs of a node cannot be divided evenly among %d processes of %d threads", n, procs, threads)}
		}
		most = max(most, n/(procs*threads))
	}
	return most, nil
}

// Executor makes a simulator of a loaded machine. opt chooses what a trace
// shows; progress, if not nil, is called with the share of a run that is done.
func (m *Site) Executor(spec *Spec, opt nccltrace.Options, progress func(float64)) (exec.Executor, error) {
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
	perThread, err := spec.Engine.GPUsPerThread(m.Cluster)
	if err != nil {
		return sim.Config{}, err
	}
	cfg := sim.Config{Comm: m.Comm.Layout, Systems: m.Comm.Systems(), Class: m.Class(), PerThread: perThread, Seed: spec.seed(), Fold: spec.Engine.fold(),
		NoSkip: spec.Engine.Skip == "off", NoJitter: spec.Engine.Jitter == "off"}
	if spec.Engine.Launch == "graph" || spec.Engine.Blocking > 0 { // of the latter the host's time comes on top
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
	for i, text := range spec.Network.Faults {
		if err := fault.Add(cfg, m.Cluster, text); err != nil {
			return &FieldError{Path: fmt.Sprintf("network.faults[%d]", i), Value: text, Problem: err.Error()}
		}
	}
	ib, sockets := &m.Config.IB, &m.Config.Socket
	if s := ib.Service; s != nil {
		cfg.RC = sim.Reliability{Timeout: units.Some(int(s.Timeout)), Retries: units.Some(int(s.Retry))}
	}
	cfg.QPs, cfg.SplitData = ib.QPs.Or(0), ib.SplitData
	cfg.Sockets = sim.Sockets{Threads: sockets.Threads, PerThread: sockets.SocksPerThread, MinTask: sockets.MinTask, Inline: sockets.Inline}
	cfg.TwoWrites = units.Some(units.Bytes(ib.ARThreshold.Or(8192)))
	if ib.Adaptive.Or(1) == 0 {
		cfg.TwoWrites = units.Some[units.Bytes](-1)
	}
	return nil
}
