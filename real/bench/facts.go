package bench

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/units"
)

// Facts are the values of a row's added columns, and of simccl's own key of the JSON.
type Facts struct {
	Shape      string
	Picks      []Pick
	MeasuredUs float64
	NCCLUs     float64 // NCCL's time in the same run
	Choice     *Choice
	Predicted  *Prediction
	Regret     *float64 // time of NCCL's choice divided by that of the best, if all were measured
	Best       string
	Counts     *coll.Spread         // of an alltoall with unequal parts, or all_to_all_v
	Iters      *nccltests.IterStats // out of place; printed under nccl-tests' own keys
}

// json returns the value of simccl's own key. A row that ran on CPUs has the choice behind its plan; other
// rows the method that ran and the other facts.
func (f *Facts) json() string {
	var doc any
	if c := f.Choice; c != nil {
		doc = struct {
			Algo       string       `json:"algo"`
			Proto      string       `json:"proto"`
			Channels   int          `json:"nchannels"`
			ModelUs    float64      `json:"model_us"`
			MeasuredUs float64      `json:"measured_us"`
			Counts     *coll.Spread `json:"counts,omitempty"`
		}{c.Algo, c.Proto, c.Channels, c.ModelUs, f.MeasuredUs, f.Counts}
	} else {
		var predicted any
		if f.Predicted != nil {
			predicted = f.Predicted.Facts
		}
		doc = struct {
			Shape      string       `json:"shape"`
			Picks      []Pick       `json:"rivals,omitempty"`
			MeasuredUs float64      `json:"measured_us"`
			NCCLUs     float64      `json:"nccl_us,omitempty"`
			Predicted  any          `json:"predicted,omitempty"`
			Regret     *float64     `json:"regret,omitempty"`
			Best       string       `json:"best,omitempty"`
			Counts     *coll.Spread `json:"counts,omitempty"`
		}{f.Shape, f.Picks, f.MeasuredUs, f.NCCLUs, predicted, f.Regret, f.Best, f.Counts}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return "null" // a number that JSON cannot express
	}
	return string(text)
}

// Column is an added column of the table: its head, and its value from a row's Facts.
type Column struct {
	Head     nccltests.Column
	Predicts bool // needs a prediction
	Rivals   bool // needs the measured times of all rivals
	Value    func(*Facts) string
}

// Heads returns the heads of columns.
func Heads(cols []Column) []nccltests.Column {
	var out []nccltests.Column
	for _, c := range cols {
		out = append(out, c.Head)
	}
	return out
}

// ColumnsOf returns the columns of a run on GPUs: the requested ones; with our own kernels, the method that
// ran; and the comparison with NCCL. other resolves names of columns that are no measured facts.
func ColumnsOf(names []string, own, compare bool, other func(name string) (Column, error)) ([]Column, error) {
	switch {
	case own && compare:
		names = append(names, "shape", "nccl", "ofnccl")
	case own:
		names = append(names, "shape")
	case compare:
		names = append(names, "sim", "simratio", "model", "algo", "proto", "nch")
	}
	measured := columns()
	var out []Column
	for _, n := range names {
		c, ok := measured[n]
		if !ok {
			var err error
			if c, err = other(n); err != nil {
				return nil, err
			}
		}
		if out = append(out, c); n == "regret" && !slices.Contains(names, "best") {
			out = append(out, measured["best"])
		}
	}
	return out, nil
}

// columns returns the columns of measured facts, by name.
func columns() map[string]Column {
	iter := func(name string, of func(*nccltests.IterStats) float64) Column {
		return micros(name, func(f *Facts) float64 {
			if f.Iters == nil {
				return 0
			}
			return of(f.Iters)
		})
	}
	predicted := func(f *Facts) float64 {
		if f.Predicted == nil {
			return 0
		}
		return f.Predicted.SimUs
	}
	sim := micros("sim", predicted)
	simRatio := ratio("sim/meas", func(f *Facts) (float64, float64) { return predicted(f), f.MeasuredUs })
	sim.Predicts, simRatio.Predicts = true, true
	return map[string]Column{
		"shape": {Head: nccltests.Column{Name: "shape", Width: 8}, Value: func(f *Facts) string {
			return f.Shape
		}},
		"nccl":     micros("nccl", func(f *Facts) float64 { return f.NCCLUs }),
		"ofnccl":   ratio("of nccl", func(f *Facts) (float64, float64) { return f.MeasuredUs, f.NCCLUs }),
		"sim":      sim,
		"simratio": simRatio,
		"regret": {Head: nccltests.Column{Name: "regret", Width: 6}, Predicts: true, Rivals: true,
			Value: func(f *Facts) string {
				if f.Regret == nil {
					return "-"
				}
				return fmt.Sprintf("%.3f", *f.Regret)
			}},
		"best": {Head: nccltests.Column{Name: "best", Width: 16}, Predicts: true, Rivals: true,
			Value: func(f *Facts) string {
				if f.Regret == nil || *f.Regret <= 1 {
					return "-"
				}
				return f.Best
			}},
		"min": iter("min", func(s *nccltests.IterStats) float64 { return s.Min }),
		"p50": iter("p50", func(s *nccltests.IterStats) float64 { return s.P50 }),
		"p95": iter("p95", func(s *nccltests.IterStats) float64 { return s.P95 }),
		"p99": iter("p99", func(s *nccltests.IterStats) float64 { return s.P99 }),
		"max": iter("max", func(s *nccltests.IterStats) float64 { return s.Max }),
	}
}

func micros(name string, of func(*Facts) float64) Column {
	return Column{Head: nccltests.Column{Name: name, Unit: "(us)", Width: 8}, Value: func(f *Facts) string {
		if v := of(f); v > 0 {
			return nccltests.Float(v, 8)
		}
		return "-"
	}}
}

func ratio(name string, of func(*Facts) (float64, float64)) Column {
	return Column{Head: nccltests.Column{Name: name, Width: 8}, Value: func(f *Facts) string {
		if a, b := of(f); a > 0 && b > 0 {
			return fmt.Sprintf("%.3f", a/b)
		}
		return "-"
	}}
}

// iterStats summarizes the times of single iterations if they were requested; an empty operation has none.
func (r *Run) iterStats(m *device.Measurement) *nccltests.IterStats {
	if !r.spec.Options.PerIter {
		return nil
	}
	if len(m.Each) == 0 {
		m.Each = make([]units.Time, r.spec.Options.Iters)
	}
	var of [][]float64
	for _, l := range m.EachOf {
		of = append(of, inMicros(l))
	}
	return nccltests.NewIterStats(inMicros(m.Each), r.spec.Skip, of)
}

func inMicros(list []units.Time) []float64 {
	out := make([]float64, 0, len(list))
	for t := range slices.Values(list) {
		out = append(out, t.Micros())
	}
	return out
}
