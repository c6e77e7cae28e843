package advise

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/tuning/tunerfile"
)

// Tuner returns the choices of a Report as rows for a file of the example tuner plugin: ranges of sizes
// without gaps, each with a bound on channels, because the plugin uses one channel for an operation without a
// row or a bound. A boundary is the geometric mean of two tried sizes.
func (r *Report) Tuner() ([]tuning.Row, error) {
	site := r.site
	f, err := coll.ParseFunc(r.op)
	if err != nil || f.IsP2P() {
		return nil, fail.Usage("the example tuner chooses for broadcast, reduce, all_gather, " +
			"reduce_scatter and all_reduce alone")
	}
	var out []tuning.Row
	n := len(r.base.cells)
	for i := range n {
		c := &r.base.cells[i]
		if t := r.chosen(i); t != nil {
			c = &t.cells[i]
		}
		a, p, ok := c.pair()
		if !ok {
			return nil, fail.Usage("%d bytes: NCCL chooses nothing there, so that no row can say it", c.bytes)
		}
		row := tuning.Row{Func: f, Algo: a, Proto: p, Nodes: site.Comm.NNodes, Ranks: site.Comm.NRanks,
			Pipe: -1, Registered: -1, Max: math.MaxUint64}
		if i > 0 {
			row.Min = half(r.base.cells[i-1].bytes, c.bytes)
		}
		if i+1 < n {
			row.Max = half(c.bytes, r.base.cells[i+1].bytes) - 1
		}
		row.Channels = site.Comm.Model.Force(c.op, a, p).MaxChannels
		if k := len(out) - 1; k >= 0 && out[k].Algo == a && out[k].Proto == p &&
			out[k].Channels == row.Channels {
			out[k].Max = row.Max
			continue
		}
		out = append(out, row)
	}
	return out, nil
}

// chosen returns the trial of a forced algorithm and protocol that gains most at a size; nil for NCCL's own
// choice.
func (r *Report) chosen(i int) *trial {
	best, _ := r.bestAt(i, worthwhile)
	if best[choice] < 0 {
		return nil
	}
	return &r.trials[best[choice]]
}

// pair parses the cell's algorithm and protocol; ok is false for any other text.
func (c *cell) pair() (coll.Algorithm, coll.Protocol, bool) {
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			if c.algo == a.LogName()+"/"+p.LogName() {
				return a, p, true
			}
		}
	}
	return 0, 0, false
}

// half returns the geometric mean of two sizes.
func half(a, b int64) uint64 { return uint64(math.Sqrt(float64(a) * float64(b))) }

// Finding is a row of a tuner file that is odd.
type Finding struct {
	Line int    `json:"line"` // from 1; 0 for sizes that no row is for
	Row  string `json:"row"`
	What string `json:"what"`
}

// TunerRow is a row of a tuner file with its effect on the sizes that it decides.
type TunerRow struct {
	Line  int      `json:"line"` // 0: no row
	Row   string   `json:"row"`
	Sizes [2]int64 `json:"sizes"`
	Gain  float64  `json:"gain"`  // geometric mean
	Least float64  `json:"least"` // at the worst size
}

// Check is the effect of a tuner file: rows that are misread, never match or lose, and sizes without a row.
type Check struct {
	File     string     `json:"file"`
	Rows     []TunerRow `json:"rows"`
	Findings []Finding  `json:"findings"`
	Gain     float64    `json:"gain"` // over all sizes, geometric mean
}

// loses is the gain below which a row of a tuner file counts as a loss.
const loses = 0.99

// CheckTuner simulates an operation with and without the rows of a file, whose contents
// are data and which q's Options read under the same name.
func CheckTuner(ctx context.Context, q Request, name string, data []byte) (*Check, error) {
	q.Spec.Engine.NoProof = true
	base, _, err := q.run(ctx, nil)
	if err != nil {
		return nil, err
	}
	q.Options.Warn = nil // problems are Findings
	t, site,
		err := q.run(ctx, &Setting{Env: [][2]string{{"NCCL_TUNER_PLUGIN", "example"},
		{"NCCL_TUNER_CONFIG_FILE", name}}})
	if err != nil {
		return nil, err
	}
	file := tunerfile.Parse(data, name)
	c := &Check{File: name, Rows: []TunerRow{}, Findings: []Finding{}}
	for _, p := range file.Problems {
		c.Findings = append(c.Findings, Finding{p.Line, "", p.What + "; " + p.Instead})
	}
	c.never(site, file)
	c.worth(site, file, base, t)
	return c, nil
}

// never adds a finding for each row of a tuner file that no operation on this machine can match, with the
// reason.
func (c *Check) never(site *scenario.Site, file *tunerfile.File) {
	m := site.Comm.Model
	for i := range file.Lines {
		l := &file.Lines[i]
		why := ""
		switch {
		case l.Min > l.Max:
			why = "its least size is above its most"
		case l.Nodes != -1 && l.Nodes != site.Comm.NNodes:
			why = fmt.Sprintf("it is for %d nodes and there are %d", l.Nodes, site.Comm.NNodes)
		case l.Ranks != -1 && l.Ranks != site.Comm.NRanks:
			why = fmt.Sprintf("it is for %d ranks and there are %d", l.Ranks, site.Comm.NRanks)
		case m.Bandwidth[l.Func][l.Algo][l.Proto] == 0:
			why = fmt.Sprintf("%s %s is off for %s", l.Algo, l.Proto, l.Func)
			if rs := m.WhyOff(tuning.Op{Func: l.Func, Count: 1, Type: coll.Float32, RedOp: coll.Sum}, l.Algo,
				l.Proto); len(rs) > 0 {
				why += ": " + rs[0].String()
			}
		default:
			if by := covered(file.Lines[:i], l); by > 0 {
				why = fmt.Sprintf("rows before it, the last in line %d, take all of its sizes", by)
			}
		}
		if why != "" {
			c.Findings = append(c.Findings, Finding{l.Number, l.Text, "never matches: " + why})
		}
	}
}

// covered returns the line of the last earlier row if the earlier rows together cover all sizes of a row,
// else 0.
func covered(earlier []tunerfile.Line, l *tunerfile.Line) int {
	from, by := l.Min, 0
	for progress := true; progress; {
		progress = false
		for i := range earlier {
			e := &earlier[i]
			wider := func(a, b int) bool { return a == -1 || a == b }
			if e.Func != l.Func || e.Min > from || e.Max < from || !wider(e.Nodes, l.Nodes) ||
				!wider(e.Ranks, l.Ranks) || !wider(e.Pipe, l.Pipe) || !wider(e.Registered, l.Registered) {
				continue
			}
			by = max(by, e.Number)
			if e.Max >= l.Max {
				return by
			}
			from, progress = e.Max+1, true
		}
	}
	return 0
}

// worth computes the gain of each row of a tuner file over the sizes that it decides, and adds a finding for
// a row that loses at some size. Sizes without a row are counted as row 0.
func (c *Check) worth(site *scenario.Site, file *tunerfile.File, base, t *trial) {
	gains := map[int][]float64{}
	sizes := map[int][2]int64{}
	var order []int
	sum := 0.0
	for i, cell := range base.cells {
		j := site.Comm.Model.Params.Plugin.Row(site.Comm.Model, cell.op)
		g := t.gain(base, i)
		sum += math.Log(g)
		if _, known := sizes[j]; !known {
			order, sizes[j] = append(order, j), [2]int64{cell.bytes, cell.bytes}
		}
		gains[j], sizes[j] = append(gains[j], g), [2]int64{min(sizes[j][0], cell.bytes),
			max(sizes[j][1], cell.bytes)}
	}
	c.Gain = round(math.Exp(sum / float64(len(base.cells))))
	for _, j := range order {
		r := TunerRow{Sizes: sizes[j], Least: round(slices.Min(gains[j])),
			Row: "none: NCCL's choice, on one channel"}
		if j >= 0 {
			r.Line, r.Row = file.Lines[j].Number, file.Lines[j].Text
		}
		log := 0.0
		for _, g := range gains[j] {
			log += math.Log(g)
		}
		r.Gain = round(math.Exp(log / float64(len(gains[j]))))
		c.Rows = append(c.Rows, r)
		if r.Least < loses {
			c.Findings = append(c.Findings,
				Finding{r.Line, r.Row, fmt.Sprintf("loses: x %.3f at its worst size", r.Least)})
		}
	}
}
