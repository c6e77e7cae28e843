package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/internal/report/nccltests"
	"github.com/simccl/simccl/internal/report/sweep"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/scenario"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
)

// benchModel is what run would do on the machine that bench measures.
type benchModel struct{ run *scenario.Running }

// hostModel is the model of the machine whose plans CPUs run; nranks of one GPU
// each, where no machine is asked for.
func (b *benchFlags) hostModel(a *app, fn coll.Func, nranks int) (*benchModel, error) {
	m := &b.run.machine
	if m.topo == "" && m.nodes == 0 && m.gpus == 0 {
		m.nodes, m.gpus = cmp.Or(nranks, 2), 1
	}
	return loadModel(a, *m, scenario.Spec{Workload: scenario.Workload{Op: fn.TestName()}, Seed: b.run.seed})
}

// loadModel loads the machine of a model.
func loadModel(a *app, m machineFlags, spec scenario.Spec) (*benchModel, error) {
	on, err := m.spec(a)
	if err != nil {
		return nil, err
	}
	spec.Machine, spec.Network = on.Machine, on.Network
	opt := a.options(m.found)
	site, err := scenario.Load(&spec, opt)
	if err != nil {
		return nil, asFlags(err)
	}
	run, err := scenario.On(site, spec, opt)
	return &benchModel{run}, asFlags(err)
}

// newModel is the model of the machine that the devices are of: the file of
// --topo, else this machine as it is found.
func (r *benchRun) newModel(devices []nccltests.Device) (bench.Model, error) {
	if r.model != nil {
		return r.model, nil
	}
	hosts := map[string]int{}
	for _, d := range devices {
		hosts[d.Host]++
	}
	m := r.flags.run.machine
	m.gpus, m.nodes = len(devices)/max(len(hosts), 1), cmp.Or(m.nodes, len(hosts))
	if m.topo == "" {
		text, err := thisMachine(r.app)
		if err != nil {
			return nil, fmt.Errorf("prediction of this machine: %w", err)
		}
		m.found = text
	}
	spec := scenario.Spec{Workload: scenario.Workload{Op: r.spec.Func.TestName()}, Engine: scenario.Engine{NoProof: true}} // every GPU has a thread of its own
	if r.flags.replays() > 0 {
		spec.Engine.Launch = "graph"
	}
	return loadModel(r.app, m, spec)
}

// thisMachine is the topology file of the machine that the program runs on.
func thisMachine(a *app) ([]byte, error) {
	spec, err := detectSpec(a, 0)
	if err != nil {
		return nil, err
	}
	return topoxml.Write(spec.Root), nil
}

func (m *benchModel) ranks() int { return m.run.Site.Comm.NRanks }

// env lists the settings of the plans, NAME=VALUE.
func (m *benchModel) env() (out []string) {
	for _, kv := range m.run.Site.Settings() {
		out = append(out, kv[0]+"="+kv[1])
	}
	return out
}

// operationOf is a measured operation as a scenario has it.
func operationOf(op *bench.Op) scenario.Operation {
	return scenario.Operation{Type: op.Type, RedOp: op.Red, Root: op.Root, Count: op.Sizes.Count, InPlace: op.InPlace}
}

// Plan implements bench.Model.
func (m *benchModel) Plan(op *bench.Op) (*plan.Plan, bench.Choice, error) {
	pl, choice, err := m.run.Site.Comm.Plan(operationOf(op).Op(op.Func))
	if err != nil {
		return nil, bench.Choice{}, err
	}
	f := m.run.Facts(&scenario.Outcome{Choice: choice, Plan: pl}, 0)
	return pl, bench.Choice{Algo: f.Algo, Proto: f.Proto, Channels: f.Channels, ModelUs: f.ModelUs}, nil
}

// Predict implements bench.Model.
func (m *benchModel) Predict(ctx context.Context, op *bench.Op) (*bench.Prediction, error) {
	got, err := m.run.Simulate(ctx, operationOf(op), trace.Discard, nccltrace.Options{}, nil)
	if err != nil {
		return nil, err
	}
	_, bus := coll.Bandwidth(op.Func, op.Sizes.Count, op.Type, m.ranks(), got.Result.Elapsed)
	f := m.run.Facts(&got, bus)
	return &bench.Prediction{SimUs: f.SimUs, Facts: &f}, nil
}

// Rivals implements bench.Model.
func (m *benchModel) Rivals(op *bench.Op) (out []bench.Rival) {
	_, choice, err := m.run.Site.Comm.Request(operationOf(op).Op(op.Func))
	if err != nil {
		return nil
	}
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if choice.Times[a][p] > 0 && (a != choice.Algo || p != choice.Proto) {
				out = append(out, bench.Rival{Algo: a, Proto: p})
			}
		}
	}
	return out
}

// columnOfRun is a column of run: of the choice by which CPUs ran a plan, else of
// what is predicted.
func columnOfRun(c sweep.Column) bench.Column {
	return bench.Column{Head: c.Head, Value: func(f *bench.Facts) string {
		switch {
		case f.Choice != nil:
			return c.Value(&scenario.Facts{Algo: f.Choice.Algo, Proto: f.Choice.Proto, Channels: f.Choice.Channels, ModelUs: f.Choice.ModelUs})
		case f.Predicted != nil:
			return c.Value(f.Predicted.Facts.(*scenario.Facts))
		}
		return "-"
	}}
}
