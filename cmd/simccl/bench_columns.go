package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/real/device"
	"github.com/simccl/simccl/report/nccltests"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// benchFacts are what the added columns and the JSON's own key tell of a row.
type benchFacts struct {
	Shape      string  `json:"shape"`            // what ran: nccl, plan, or a free algorithm
	Rivals     []rival `json:"rivals,omitempty"` // what it was picked from
	MeasuredUs float64 `json:"measured_us"`
	NCCLUs     float64 `json:"nccl_us,omitempty"` // NCCL's time in the same run
	Predicted  *facts  `json:"predicted,omitempty"`
	// Regret is the time of NCCL's choice over the best's, all measured.
	Regret *float64             `json:"regret,omitempty"`
	Best   string               `json:"best,omitempty"`
	Iters  *nccltests.IterStats `json:"-"` // out of place; nccl-tests' keys have them
}

// iterStats sums up the times of single iterations, where they were asked for;
// an operation of nothing takes none.
func (r *benchRun) iterStats(m *device.Measurement) *nccltests.IterStats {
	if !r.config.PerIter {
		return nil
	}
	if len(m.Each) == 0 {
		m.Each = make([]units.Time, r.config.Iters)
	}
	micros := func(list []units.Time) []float64 {
		out := make([]float64, len(list))
		for i, t := range list {
			out[i] = t.Micros()
		}
		return out
	}
	var of [][]float64
	for _, l := range m.EachOf {
		of = append(of, micros(l))
	}
	return nccltests.NewIterStats(micros(m.Each), r.config.PerIterSkip, of)
}

func (f *benchFacts) json() string {
	text, err := json.Marshal(f)
	if err != nil {
		return "null"
	}
	return string(text)
}

// benchColumn is an added column; predicts tells that it needs a simulation.
type benchColumn struct {
	head     nccltests.Column
	predicts bool
	value    func(*benchFacts) string
}

func micros(name string, of func(*benchFacts) float64) benchColumn {
	return benchColumn{nccltests.Column{Name: name, Unit: "(us)", Width: 8}, false, func(f *benchFacts) string {
		if v := of(f); v > 0 {
			return nccltests.Float(v, 8)
		}
		return "-"
	}}
}

func ratio(name string, of func(*benchFacts) (float64, float64)) benchColumn {
	return benchColumn{nccltests.Column{Name: name, Width: 8}, false, func(f *benchFacts) string {
		if a, b := of(f); a > 0 && b > 0 {
			return fmt.Sprintf("%.3f", a/b)
		}
		return "-"
	}}
}

func simulated(c benchColumn) benchColumn { c.predicts = true; return c }

func predicted(f *benchFacts) float64 {
	if f.Predicted == nil {
		return 0
	}
	return f.Predicted.SimUs
}

// benchColumns are the columns that only bench has, by name.
func benchColumns() map[string]benchColumn {
	iter := func(name string, of func(*nccltests.IterStats) float64) benchColumn {
		return micros(name, func(f *benchFacts) float64 {
			if f.Iters == nil {
				return 0
			}
			return of(f.Iters)
		})
	}
	return map[string]benchColumn{
		"shape":      {nccltests.Column{Name: "shape", Width: 8}, false, func(f *benchFacts) string { return f.Shape }},
		"nccl":       micros("nccl", func(f *benchFacts) float64 { return f.NCCLUs }),
		"ofnccl":     ratio("of nccl", func(f *benchFacts) (float64, float64) { return f.MeasuredUs, f.NCCLUs }),
		"sim":        simulated(micros("sim", predicted)),
		"simratio":   simulated(ratio("sim/meas", func(f *benchFacts) (float64, float64) { return predicted(f), f.MeasuredUs })),
		regretColumn: simulated(benchColumn{nccltests.Column{Name: regretColumn, Width: 6}, false, func(f *benchFacts) string { return regretText(f.Regret) }}),
		"min":        iter("min", func(s *nccltests.IterStats) float64 { return s.Min }),
		"p50":        iter("p50", func(s *nccltests.IterStats) float64 { return s.P50 }),
		"p95":        iter("p95", func(s *nccltests.IterStats) float64 { return s.P95 }),
		"p99":        iter("p99", func(s *nccltests.IterStats) float64 { return s.P99 }),
		"max":        iter("max", func(s *nccltests.IterStats) float64 { return s.Max }),
	}
}

// columns lists what --columns and --compare add, in that order.
func (b *benchFlags) columns() ([]benchColumn, error) {
	own := benchColumns()
	var names []string
	if b.run.test.columns != "" {
		for name := range strings.SplitSeq(strings.TrimPrefix(b.run.test.columns, "+"), ",") {
			names = append(names, strings.TrimPrefix(name, "+"))
		}
	}
	if b.backend == "cuda" {
		names = append(names, "shape")
	}
	if b.gpu.compare {
		if b.backend == "cuda" {
			names = append(names, "nccl", "ofnccl")
		} else {
			names = append(names, "sim", "simratio", "model", "algo", "proto", "nch")
		}
	}
	var out []benchColumn
	for _, n := range names {
		if c, ok := own[n]; ok {
			out = append(out, c)
			continue
		}
		list, err := parseColumns(n)
		if err != nil {
			return nil, err
		}
		of := list[0]
		out = append(out, benchColumn{of.head, true, func(f *benchFacts) string {
			if f.Predicted == nil {
				return "-"
			}
			return of.value(f.Predicted)
		}})
	}
	return out, nil
}

func benchHeads(cols []benchColumn) []nccltests.Column {
	var out []nccltests.Column
	for _, c := range cols {
		out = append(out, c.head)
	}
	return out
}

// oracle predicts what is measured: a sweep of run on this machine.
type oracle struct{ sweep *sweep }

// newOracle prepares predictions where a column needs them: for the file of
// --topo, else for this machine as it is found.
func (r *benchRun) newOracle() (*oracle, error) {
	if r.team.rank != 0 || !slices.ContainsFunc(r.columns, func(c benchColumn) bool { return c.predicts }) {
		return &oracle{}, nil
	}
	loaded, err := r.machine()
	if err != nil {
		return nil, err
	}
	flags := &runFlags{machine: r.flags.run.machine, test: r.flags.run.test, launch: r.flags.gpu.timing, seed: 1}
	flags.test.check, flags.test.threads = 0, 1 // every GPU has a thread of its own
	flags.out.detail = "op"
	return &oracle{&sweep{app: r.app, m: loaded, flags: flags, fn: r.fn}}, nil
}

// machine is that of --topo, else this one as it is found.
func (r *benchRun) machine() (*machine, error) {
	hosts := map[string]int{}
	for _, d := range r.back.devices() {
		hosts[d.Host]++
	}
	m := r.flags.run.machine
	m.gpus = len(r.back.devices()) / max(len(hosts), 1)
	if m.nodes == 0 {
		m.nodes = len(hosts)
	}
	if m.topo == "" {
		text, err := thisMachine(r.app)
		if err != nil {
			return nil, fmt.Errorf("prediction of this machine: %w", err)
		}
		m.found = text
	}
	return m.load(r.app)
}

// ask adds to the facts of a row what is predicted, and NCCL's own time where
// another backend was measured.
func (o *oracle) ask(ctx context.Context, r *benchRun, op *device.Op, f *benchFacts) error {
	if g, ok := r.back.(*gpuBackend); ok && r.flags.gpu.compare && op.Sizes.Count > 0 {
		t, err := g.yardstick(ctx, op, r.options())
		if err != nil {
			return err
		}
		f.NCCLUs = t.Micros()
	}
	if o.sweep == nil || op.Sizes.Count == 0 {
		return nil
	}
	got, err := o.sweep.simulate(ctx, point{typ: op.Type, op: op.Red, root: op.Root, count: op.Sizes.Count}, trace.Discard, nccltrace.Options{})
	if err != nil {
		return err
	}
	row := nccltests.Row{Out: nccltests.Measure{TimeUs: got.result.Elapsed.Micros()}}
	row.Out.AlgBW, row.Out.BusBW = coll.Bandwidth(op.Func, op.Sizes.Count, op.Type, r.back.ranks(), got.result.Elapsed)
	f.Predicted = o.sweep.facts(&row, &got)
	return nil
}

// thisMachine is the topology file of the machine that the program runs on.
func thisMachine(a *app) ([]byte, error) {
	spec, err := detectSpec(a, 0)
	if err != nil {
		return nil, err
	}
	return topoxml.Write(spec.Root), nil
}

// jsonTime is how nccl-tests writes times, which are local ones (util.cu:305).
const jsonTime = "2006-01-02 15:04:05"

// ncclEnv lists the NCCL variables that the library sees.
func (r *benchRun) ncclEnv() []string {
	var out []string
	for _, kv := range append(slices.Clone(r.app.environ), r.ncclWords()...) {
		if strings.HasPrefix(kv, "NCCL_") {
			out = append(out, kv)
		}
	}
	slices.Sort(out)
	return out
}

// outputs writes JSON; only process 0 does.
func (r *benchRun) outputs(s *nccltests.Summary) error {
	if r.team.rank != 0 {
		return nil
	}
	doc := &nccltests.Report{Start: r.began.Format(jsonTime), End: time.Now().Format(jsonTime), Env: r.ncclEnv(),
		Args: append([]string{"simccl"}, r.app.args...), Config: r.config, Devices: r.back.devices(), Rows: r.rows, Own: r.own, Summary: *s}
	return r.app.writeJSON(doc, r.flags.run.test.output)
}
