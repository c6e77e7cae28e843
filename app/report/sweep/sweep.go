package sweep

import (
	"cmp"
	"encoding/json"
	"fmt"
	"github.com/simccl/simccl/exec"
	"slices"
	"strings"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/netpreset"
)

// Table collects the rows of a sweep.
type Table struct {
	Config  nccltests.Config
	Columns []Column
	Rows    []nccltests.Row
	Own     []string // simccl's own key in the JSON of each row
	Summary nccltests.Summary
	// ExplainMethod adds to the notes how the time of each row was found.
	ExplainMethod bool

	network *netpreset.Summary // nil: frames are not simulated
	facts   []*scenario.Facts
	bus     float64
}

// New begins the table of a run. counts has nccl-tests' own counts, which change no
// simulated time: Warmup, Iters, AggIters, Check, Graph. code is the number of the
// NCCL release.
func New(r *scenario.Running, counts nccltests.Config, code int) (*Table, error) {
	e := &r.Spec.Engine
	bounds, err := r.Spec.Workload.Bounds()
	if err != nil {
		return nil, err
	}
	perThread, err := e.GPUsPerThread(r.Site.Cluster)
	c := counts
	c.Program, c.NCCLHeaders, c.NCCLLibrary = r.Name()+"_perf", code, code
	c.Threads, c.GPUs = max(e.Threads, 1), r.Site.Cluster.Host(0).NRanks()
	c.MinBytes, c.MaxBytes, c.StepFactor, c.StepBytes = bounds.Min, bounds.Max, bounds.Factor,
		bounds.StepBytes
	c.Unalign, c.Blocking, c.CPUTime = r.Spec.Workload.Unalign, e.Blocking, e.CPUTime
	if e.Launch == "graph" {
		c.Graph = max(c.Graph, 1)
	}
	if perThread > 1 || e.Threads > 1 {
		c.GPUs = perThread
	}
	t := &Table{Config: c}
	if s, ok := netpreset.Summarize(r.Site.Network, choice(&r.Spec)); ok {
		t.network = &s
	}
	return t, err
}

// Prefaces are the lines above the table, of a program's version.
func Prefaces(r *scenario.Running, program string) []string {
	site := r.Site
	out := []string{fmt.Sprintf("simccl %s simulated: topo=%s sha256=%s nccl-rules=%s seed=%s", program,
		site.Name, site.Digest[:12], site.Config.Rules.Version(), r.SeedText()),
		site.Times()}
	if s, ok := netpreset.Summarize(site.Network, choice(&r.Spec)); ok {
		out = append(out, s.String())
	}
	return out
}

// choice is how a Spec's network is simulated.
func choice(s *scenario.Spec) netpreset.Choice {
	return netpreset.Choice{Model: s.Network.Model, CC: s.Network.CC, Balance: s.Network.Balance}
}

// Add adds a simulated row and returns it as nccl-tests has it.
func (t *Table) Add(r *scenario.Row) *nccltests.Row {
	measure := func(m *scenario.Measure) nccltests.Measure {
		return nccltests.Measure{TimeUs: m.Time.Micros(), AlgBW: m.AlgBW, BusBW: m.BusBW, Checked: m.Checked,
			Wrong: m.Wrong, Iters: t.iterations(m)}
	}
	row := nccltests.Row{Size: int64(r.Bytes), Count: r.Count, Type: r.Type, RedOp: cmp.Or(r.RedOp, "none"),
		Root: r.Root, Out: measure(&r.Out), In: measure(&r.In)}
	t.facts = append(t.facts, &r.Facts)
	t.Keep(&row, &r.Facts, JSON(&r.Facts))
	return &row
}

// iterations are the times of single iterations, which -I 1 shows: the first fills the
// pipeline, the others follow it at the pace that makes the mean the measure's.
func (t *Table) iterations(m *scenario.Measure) *nccltests.IterStats {
	n := t.Config.Iters
	if !t.Config.PerIter || n < 1 {
		return nil
	}
	times := slices.Repeat([]float64{m.Time.Micros()}, n)
	if whole, c := float64(n)*m.Time.Micros(), &t.Config; n > 1 && c.Blocking == 0 && !c.CPUTime &&
		c.AggIters <= 1 && m.First > m.Time && m.First.Micros() < whole {
		times[0] = m.First.Micros()
		for i := range times[1:] {
			times[1+i] = (whole - times[0]) / float64(n-1)
		}
	}
	return nccltests.NewIterStats(times, t.Config.PerIterSkip, nil)
}

// Keep adds a row with the values of the columns, and simccl's own key of it.
func (t *Table) Keep(row *nccltests.Row, f *scenario.Facts, own string) {
	for _, c := range t.Columns {
		row.Extra = append(row.Extra, c.Value(f))
	}
	t.Rows, t.Own = append(t.Rows, *row), append(t.Own, own)
	t.bus += row.Out.BusBW + row.In.BusBW
	t.Summary.AvgBusBW = t.bus / float64(2*len(t.Rows))
}

// Notes say which rows are approximate, which had parts that were not simulated one
// by one, and which plans are not proved, with the largest size as the example.
func (t *Table) Notes() []string {
	var near, unproved []string
	most := int64(-1)
	for i, f := range t.facts {
		if f.Near != "" {
			note := fmt.Sprintf("Near, not exact, within about %.0f %%: %s", 100*f.Margin, f.Near)
			if f.Simulated != exec.Formula.String() {
				note += "; --fold exact leaves nothing out"
			}
			near = append(near, note)
		}
		if f.NotProved != "" {
			if unproved = append(unproved, f.NotProved); t.Rows[i].Size > most {
				most, unproved[0] = t.Rows[i].Size, f.NotProved
			}
		}
	}
	out := append(t.methods(), slices.Compact(near)...)
	out = append(out, t.skipped()...)
	out = append(out, t.drawn()...)
	if len(unproved) > 0 {
		out = append(out, fmt.Sprintf("#wrong is N/A in %d of %d rows: the proof of the plan (-c 1) is too "+
			"large; that of %d B would have %s",
			len(unproved), len(t.Rows), most, unproved[0]))
	}
	return out
}

// methods say how the time of each row was found, where that is asked for.
func (t *Table) methods() (out []string) {
	if !t.ExplainMethod {
		return nil
	}
	for i, f := range t.facts {
		out = append(out, fmt.Sprintf("%d B: %v", t.Rows[i].Size, f.Account))
	}
	return out
}

// drawn are the notes on rows that are medians of draws of hashed routes. Where draws differ by
// less than a percent, rows are only counted.
func (t *Table) drawn() (out []string) {
	equal := 0
	for i, f := range t.facts {
		d := f.Draws
		switch {
		case d == nil:
		case d.Band() < 0.01:
			equal++
		default:
			for _, l := range d.Lines(t.Rows[i].Out.BusBW, f.SimUs) {
				out = append(out, fmt.Sprintf("%d B: %s", t.Rows[i].Size, l))
			}
		}
	}
	if equal > 0 {
		out = append(out,
			fmt.Sprintf("In %d of %d rows the draw of hashed routes changes the time by less than 1 %%",
				equal, len(t.Rows)))
	}
	return out
}

// skipped are the notes on rows of which parts were not simulated one by one.
func (t *Table) skipped() (out []string) {
	steady, periods := 0, int64(0)
	var windows [2]struct { // of jitter, and of what would cost too much
		rows   int
		margin float64
		whole  string
	}
	windows[0].whole, windows[1].whole = "--skip off", "--fold exact"
	for _, f := range t.facts {
		switch {
		case f.Windowed():
			w := &windows[0]
			if f.ByCost {
				w = &windows[1]
			}
			w.rows++
			w.margin = max(w.margin, f.Margin)
		case f.Periods > 0:
			steady++
			periods += f.Periods
		}
	}
	for _, w := range windows {
		if w.rows > 0 {
			out = append(out, fmt.Sprintf("Of the operation in %d of %d rows a window of iterations was "+
				"simulated; the others take its mean time, within about %.0f %%; %s simulates all",
				w.rows, len(t.Rows), 100*w.margin, w.whole))
		}
	}
	if steady > 0 {
		out = append(out,
			fmt.Sprintf("In %d of %d rows %d periods of a steady state were counted, to the picosecond as "+
				"if simulated", steady, len(t.Rows), periods))
	}
	return out
}

// Devices lists the ranks as nccl-tests lists GPUs.
func Devices(site *scenario.Site) []nccltests.Device {
	devices := site.Devices()
	out := make([]nccltests.Device, 0, len(devices))
	for i := range devices {
		d := &devices[i]
		out = append(out, nccltests.Device{Rank: d.Rank, Group: d.Group, Host: d.Host, Device: d.Dev,
			Name: d.Name, BusID: d.BusID})
	}
	return out
}

// Report is the whole sweep for nccl-tests' JSON; args is the command line. A
// simulation has no clock: its start is the epoch.
func (t *Table) Report(site *scenario.Site, args []string) *nccltests.Report {
	whole := map[string]any{"machine_class": map[string]any{
		"name": site.Class().Name, "machine": site.Class().Machine, "source": site.Class().Source,
		"uncertainty": site.Uncertainty()}}
	if t.network != nil {
		whole["network"] = t.network
	}
	r := &nccltests.Report{Start: "1970-01-01 00:00:00", End: "1970-01-01 00:00:00", Args: args,
		Config: t.Config, Devices: Devices(site), Rows: t.Rows, Own: t.Own, Summary: t.Summary,
		Whole: JSON(whole)}
	for _, v := range site.Settings() {
		r.Env = append(r.Env, v[0]+"="+v[1])
	}
	return r
}

// JSON writes a value for a JSON file of nccl-tests.
func JSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null" // only numbers that JSON has no word for
	}
	return strings.TrimRight(b.String(), "\n")
}
