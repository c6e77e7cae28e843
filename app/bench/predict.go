package bench

import (
	"context"
	"fmt"
	"strings"

	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/real/bench"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

// Model predicts what run would measure on the devices. It implements bench.Model.
type Model struct {
	Run      *scenario.Running
	Schedule string // of others, whose plans these are; empty: NCCL's
}

// LoadModel loads the machine of a Spec whose workload is a single operation. Errors are those of
// scenario.Load and scenario.On.
func LoadModel(spec scenario.Spec, opt scenario.Options) (*Model, error) {
	site, err := scenario.Load(&spec, opt)
	if err != nil {
		return nil, err
	}
	run, err := scenario.On(site, spec, opt)
	return &Model{Run: run}, err
}

// CountHosts counts the hosts of GPUs, and the GPUs of each.
func CountHosts(devices []nccltests.Device) (hosts, gpus int) {
	names := map[string]bool{}
	for _, d := range devices {
		names[d.Host] = true
	}
	return len(names), len(devices) / max(len(names), 1)
}

// FillSpec sets the sizes, types and reductions of a bench from a workload.
func FillSpec(spec *bench.Spec, w *scenario.Workload) error {
	parts := w.Pairs(spec.Seed)
	for _, f := range parts.Faults(pairs.With{Sizes: len(w.Sizes) > 0 || w.Range != (scenario.Range{})}) {
		return &scenario.FieldError{Path: "workload." + f.Member, Value: f.Value, Problem: f.Problem,
			Hint: f.Hint}
	}
	sizes, err := w.AllSizes()
	if err != nil {
		return err
	}
	if coll.Variable(w.Op) {
		spec.Name, spec.Parts = coll.AllToAllV, parts
	}
	if spec.Bounds, err = w.Bounds(); err != nil {
		return err
	}
	for _, z := range sizes {
		spec.Sizes = append(spec.Sizes, bench.Size{Asked: z.Asked, Exact: z.Exact})
	}
	if spec.Types, err = w.AllTypes(); err != nil {
		return err
	}
	spec.Ops, err = w.AllReductions(spec.Func)
	return err
}

// Ranks returns the number of ranks of the machine.
func (m *Model) Ranks() int { return m.Run.Site.Comm.NRanks }

// env returns the settings of the plans, NAME=VALUE.
func (m *Model) env() (out []string) {
	for _, kv := range m.Run.Site.Settings() {
		out = append(out, kv[0]+"="+kv[1])
	}
	return out
}

// host returns the configuration with which CPUs execute the model's plans over sockets, verbs or shared
// memory ("host").
func (m *Model) host(wire string, spec *bench.Spec) bench.HostConfig {
	s := m.Run.Site
	return bench.HostConfig{Wire: wire, Socket: s.Config.Socket, IB: s.Config.IB, Cluster: s.Cluster,
		Version: s.Config.Rules.Release.Code(),
		Describe: fmt.Sprintf("topo=%s sha256=%s nccl-rules=%s seed=%d", s.Name, s.Digest[:12],
			s.Config.Rules.Version(), spec.Seed),
		Same: fmt.Append(nil, m.Schedule, spec.Func, s.Digest, spec.Sizes, spec.Options, spec.Types,
			spec.Ops, spec.Root, spec.Seed, spec.Shares, spec.Parts.Op, spec.Parts.Rows, spec.Parts.Imbalance,
			spec.Parts.Seed, s.Settings())}
}

// operationOf converts a measured operation to an operation of a scenario.
func operationOf(op *bench.Op) scenario.Operation {
	return scenario.Operation{Type: op.Type, RedOp: op.Red, Root: op.Root, Count: op.Sizes.Count,
		InPlace: op.InPlace, Pairs: op.Pairs}
}

// Plan implements bench.Model.
func (m *Model) Plan(op *bench.Op) (*plan.Plan, bench.Choice, error) {
	pl, err := m.Run.Scheduled(operationOf(op).Op(op.Func))
	if pl != nil || err != nil {
		return pl, bench.Choice{Algo: "schedule"}, err
	}
	pl, choice, err := m.Run.Site.Comm.Plan(operationOf(op).Op(op.Func))
	if err != nil {
		return nil, bench.Choice{}, err
	}
	f := m.Run.Facts(&scenario.Outcome{Choice: choice, Plan: pl}, 0)
	return pl, bench.Choice{Algo: f.Algo, Proto: f.Proto, Channels: f.Channels, ModelUs: f.ModelUs}, nil
}

// Predict implements bench.Model.
func (m *Model) Predict(ctx context.Context, op *bench.Op) (*bench.Prediction, error) {
	got, err := m.Run.Simulate(ctx, operationOf(op), trace.Discard, nccl.Options{}, nil)
	if err != nil {
		return nil, err
	}
	_, bus := coll.Bandwidth(op.Func, op.Sizes.Count, op.Type, m.Ranks(), got.Result.Elapsed)
	f := m.Run.Facts(&got, bus)
	return &bench.Prediction{SimUs: f.SimUs, Facts: &f}, nil
}

// Rivals implements bench.Model.
func (m *Model) Rivals(op *bench.Op) (out []bench.Rival) {
	_, choice, err := m.Run.Site.Comm.Request(operationOf(op).Op(op.Func))
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

// PredictedColumns returns the columns that a request adds to a bench's table: those of --columns, and the
// predicted times to compare with.
func PredictedColumns(r *bench.Request) ([]bench.Column, error) {
	if !r.OnGPUs() {
		return hostColumns(r)
	}
	var names []string
	if r.Columns != "" {
		for name := range strings.SplitSeq(strings.TrimPrefix(r.Columns, "+"), ",") {
			names = append(names, strings.TrimPrefix(name, "+"))
		}
	}
	return bench.ColumnsOf(names, r.Backend == "cuda", r.Compare, func(name string) (bench.Column, error) {
		of, err := sweep.ParseColumns(name)
		if err != nil {
			return bench.Column{}, fail.Usage("{Columns} %s: %v", name, err)
		}
		c := column(of[0])
		c.Predicts = true
		return c, nil
	})
}

// hostColumns returns the columns of --columns for a bench on CPUs: properties of the plan.
func hostColumns(r *bench.Request) ([]bench.Column, error) {
	all, err := sweep.ParseColumns(r.Columns)
	if err != nil {
		return nil, fail.Usage("{Columns} %s: %v", r.Columns, err)
	}
	var out []bench.Column
	for _, c := range all {
		switch {
		case c.Rivals:
			return nil,
				fail.Usage("{Columns} +%s: {Backend} %s has no rivals to measure; write {Backend} nccl",
					c.Head.Name, r.Backend)
		case c.Simulated:
			return nil, fail.Usage("{Columns} +%s: {Backend} %s measures and simulates nothing; write some "+
				"of +algo,proto,nch,model", c.Head.Name, r.Backend)
		}
		out = append(out, column(c))
	}
	return out, nil
}

// column converts a column of run: its values are those of the executed plan, else those of the prediction.
func column(c sweep.Column) bench.Column {
	return bench.Column{Head: c.Head, Value: func(f *bench.Facts) string {
		switch {
		case f.Choice != nil:
			return c.Value(&scenario.Facts{Algo: f.Choice.Algo, Proto: f.Choice.Proto,
				Channels: f.Choice.Channels, ModelUs: f.Choice.ModelUs})
		case f.Predicted != nil:
			return c.Value(f.Predicted.Facts.(*scenario.Facts))
		}
		return "-"
	}}
}
