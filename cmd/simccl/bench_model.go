package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/report/nccltests"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
)

// benchModel is what run would do on the machine that bench measures.
type benchModel struct{ sweep *sweep }

// hostModel is the model of the machine whose plans CPUs run; nranks of one GPU
// each, where no machine is asked for.
func (b *benchFlags) hostModel(a *app, fn coll.Func, nranks int) (*benchModel, error) {
	m := &b.run.machine
	if m.topo == "" && m.nodes == 0 && m.gpus == 0 {
		m.nodes, m.gpus = cmp.Or(nranks, 2), 1
	}
	loaded, err := m.load(a)
	return &benchModel{&sweep{app: a, m: loaded, flags: &b.run, fn: fn}}, err
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
	flags := &runFlags{machine: r.flags.run.machine, test: r.flags.run.test, launch: r.flags.timing, seed: 1}
	flags.test.check, flags.test.threads, flags.out.detail = 0, 1, "op" // every GPU has a thread of its own
	m := &flags.machine
	m.gpus, m.nodes = len(devices)/max(len(hosts), 1), cmp.Or(m.nodes, len(hosts))
	if m.topo == "" {
		text, err := thisMachine(r.app)
		if err != nil {
			return nil, fmt.Errorf("prediction of this machine: %w", err)
		}
		m.found = text
	}
	loaded, err := m.load(r.app)
	return &benchModel{&sweep{app: r.app, m: loaded, flags: flags, fn: r.spec.Func}}, err
}

// thisMachine is the topology file of the machine that the program runs on.
func thisMachine(a *app) ([]byte, error) {
	spec, err := detectSpec(a, 0)
	if err != nil {
		return nil, err
	}
	return topoxml.Write(spec.Root), nil
}

func (m *benchModel) ranks() int { return m.sweep.m.comm.NRanks }

// env lists the settings of the plans, NAME=VALUE.
func (m *benchModel) env() (out []string) {
	for _, kv := range m.sweep.m.settings() {
		out = append(out, kv[0]+"="+kv[1])
	}
	return out
}

func pointOf(op *bench.Op) point {
	return point{typ: op.Type, op: op.Red, root: op.Root, count: op.Sizes.Count, inPlace: op.InPlace}
}

// Plan implements bench.Model.
func (m *benchModel) Plan(op *bench.Op) (*plan.Plan, bench.Choice, error) {
	pl, choice, err := m.sweep.m.comm.Plan(pointOf(op).operation(op.Func))
	if err != nil {
		return nil, bench.Choice{}, decisionError(err)
	}
	f := m.sweep.facts(&nccltests.Row{}, &outcome{choice: choice, plan: pl})
	return pl, bench.Choice{Algo: f.Algo, Proto: f.Proto, Channels: f.Channels, ModelUs: f.ModelUs}, nil
}

// Predict implements bench.Model.
func (m *benchModel) Predict(ctx context.Context, op *bench.Op) (*bench.Prediction, error) {
	got, err := m.sweep.simulate(ctx, pointOf(op), trace.Discard, nccltrace.Options{})
	if err != nil {
		return nil, err
	}
	row := nccltests.Row{Out: nccltests.Measure{TimeUs: got.result.Elapsed.Micros()}}
	row.Out.AlgBW, row.Out.BusBW = coll.Bandwidth(op.Func, op.Sizes.Count, op.Type, m.ranks(), got.result.Elapsed)
	f := m.sweep.facts(&row, &got)
	return &bench.Prediction{SimUs: f.SimUs, Facts: f}, nil
}

// Rivals implements bench.Model.
func (m *benchModel) Rivals(op *bench.Op) (out []bench.Rival) {
	_, choice, err := m.sweep.m.comm.Request(pointOf(op).operation(op.Func))
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
func columnOfRun(c column) bench.Column {
	return bench.Column{Head: c.head, Value: func(f *bench.Facts) string {
		switch {
		case f.Choice != nil:
			return c.value(&facts{Algo: f.Choice.Algo, Proto: f.Choice.Proto, Channels: f.Choice.Channels, ModelUs: f.Choice.ModelUs})
		case f.Predicted != nil:
			return c.value(f.Predicted.Facts.(*facts))
		}
		return "-"
	}}
}
