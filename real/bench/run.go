package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/trace/chrome"
)

// Reporter is called with the progress of a run. Every process has one.
type Reporter interface {
	// Begin is called before the first row.
	Begin(c *nccltests.Config, about *About)
	Row(*nccltests.Row)
	// Wrong is called for each measurement with a wrong result; first is the first wrong element.
	Wrong(of, first string)
}

// Run is a benchmark: a spec, the processes and an open backend.
type Run struct {
	spec   *Spec
	team   *team.Team
	back   Backend
	about  About
	model  Model
	asks   bool // this process makes predictions
	points []point
	rivals regrets // set if the column regret is requested

	began   time.Time
	config  nccltests.Config
	rows    []nccltests.Row
	own     []string
	summary nccltests.Summary
}

// New prepares a run. It fails if the spec does not fit the ranks.
func New(spec *Spec, t *team.Team, back Backend, model NewModel, began time.Time) (*Run, error) {
	r := &Run{spec: spec, team: t, back: back, about: back.About(), began: began}
	r.asks = t.Rank == 0 && spec.wants(func(c *Column) bool { return c.Predicts })
	var err error
	if r.points, err = spec.points(r.ranks()); err != nil {
		return nil, err
	}
	if r.asks {
		if r.model, err = model(r.about.Devices); err != nil {
			return nil, err
		}
	}
	r.config = spec.config(&r.about)
	return r, nil
}

func (r *Run) ranks() int { return len(r.about.Devices) }

// Sweep measures all rows. Wrong values and low bandwidth are in the Report; it fails only if an operation
// could not be measured.
func (r *Run) Sweep(ctx context.Context, rep Reporter) (*nccltests.Report, error) {
	if err := r.measureRivals(ctx); err != nil {
		return nil, err
	}
	rep.Begin(&r.config, &r.about)
	bus := 0.0
	for _, p := range r.points {
		row, err := r.row(ctx, p, rep)
		if err != nil {
			return nil, err
		}
		bus += row.Out.BusBW + row.In.BusBW
		rep.Row(row)
	}
	r.summary.AvgBusBW, r.summary.MinBW = bus/float64(max(2*len(r.rows), 1)), r.spec.MinBW
	if back, ok := r.back.(rememberer); ok && r.spec.Memory {
		var err error
		if r.summary.Memory, err = back.memory(); err != nil {
			return nil, err
		}
	}
	return r.Report(), nil
}

// jsonTime is nccl-tests' format of times, which are local times (util.cu:305).
const jsonTime = "2006-01-02 15:04:05"

// Report returns the run in the form of nccl-tests' JSON, without arguments and environment, which the caller
// adds.
func (r *Run) Report() *nccltests.Report {
	return &nccltests.Report{Start: r.began.Format(jsonTime), End: time.Now().Format(jsonTime),
		Config:  r.config,
		Devices: r.about.Devices, Rows: r.rows, Own: r.own, Summary: r.summary}
}

// Trace writes a trace of one operation of the last row. The caller closes the writer; nil if NCCL's plugin
// has written the file itself.
func (r *Run) Trace(ctx context.Context, to Trace) (*chrome.Writer, error) {
	back, ok := r.back.(tracer)
	if !ok || len(r.points) == 0 {
		return nil, nil
	}
	op := r.points[len(r.points)-1].op
	return back.trace(ctx, &op, to)
}

// row measures one line of the table, out of place and in place.
func (r *Run) row(ctx context.Context, p point, rep Reporter) (*nccltests.Row, error) {
	f := r.spec.Func
	row := nccltests.Row{Size: int64(p.shown), Count: p.op.Sizes.Count, Type: p.op.Type.TestName(),
		RedOp: "none", Root: p.root}
	if f.PrintsRedOp() {
		row.RedOp = p.op.Red.TestName()
	}
	what := fmt.Sprintf("%s of %d bytes", r.spec.name(), p.shown)
	facts := Facts{Shape: "-", Counts: pairs.SpreadOf(r.spec.Name, p.op.Pairs, p.op.Sizes.Count, r.ranks())}
	for i, m := range []*nccltests.Measure{&row.Out, &row.In} {
		op := p.op
		if op.InPlace = i == 1; r.spec.InPlace != nil {
			op.InPlace = *r.spec.InPlace
		}
		got, err := r.back.Measure(ctx, &op, r.spec.Options)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		if got.Wrong > 0 {
			r.summary.OutOfBounds++
			rep.Wrong(what, got.First)
		}
		alg, bus := coll.Bandwidth(f, op.Sizes.Count, op.Type, r.ranks(), got.Time)
		*m = nccltests.Measure{TimeUs: got.Time.Micros(), AlgBW: alg, BusBW: bus, Wrong: got.Wrong,
			Checked: got.Checked,
			Iters:   r.iterStats(&got.Measurement)}
		if i == 0 {
			facts.Shape, facts.Picks, facts.MeasuredUs, facts.Choice, facts.Iters = got.Shape, got.Picks,
				got.Time.Micros(), got.Choice, m.Iters
			r.rivals.compare(&op, got.Time, &facts)
		}
	}
	if r.spec.Timestamps {
		row.Stamp = time.Now().Format(jsonTime)
	}
	if err := r.ask(ctx, &p.op, &facts); err != nil {
		return nil, err
	}
	for i := range r.spec.Columns {
		row.Extra = append(row.Extra, r.spec.Columns[i].Value(&facts))
	}
	r.rows = append(r.rows, row)
	r.own = append(r.own, facts.json())
	return &row, nil
}

// ask adds the prediction to the facts of a row, and NCCL's own time if another method was measured.
func (r *Run) ask(ctx context.Context, op *device.Case, f *Facts) error {
	if op.Sizes.Count == 0 {
		return nil
	}
	if back, ok := r.back.(comparer); ok && r.spec.Compare {
		t, err := back.ncclTime(ctx, op, r.spec.Options)
		if err != nil {
			return err
		}
		f.NCCLUs = t.Micros()
	}
	if !r.asks {
		return nil
	}
	var err error
	f.Predicted, err = r.model.Predict(ctx, op)
	return err
}
