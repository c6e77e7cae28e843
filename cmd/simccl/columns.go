package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/units"
)

// facts are what the opt-in columns and the JSON's own key tell of a row.
type facts struct {
	Algo     string  `json:"algo"`
	Proto    string  `json:"proto"`
	Channels int     `json:"nchannels"`
	ModelUs  float64 `json:"model_us"` // NCCL's own prediction; 0 where it makes none
	SimUs    float64 `json:"sim_us"`
	Expect   float64 `json:"expect_busbw_GBs"` // were the limiting link never idle
	Limit    string  `json:"limiting_link"`
	IdealUs  float64 `json:"ideal_us"`                // what the limiting link needs for its bytes at least
	Overfull string  `json:"overfull_link,omitempty"` // a link that carried more than it can: a defect
	// Links are those in use the most, and Queue is what waits before the
	// limiting one.
	Links []linkFacts `json:"links,omitempty"`
	Use   float64     `json:"limiting_use"`
	Queue int64       `json:"limiting_queue_bytes"`
	// Simulated is how the time was found (exec.Method), Margin by what part of
	// it a near one may be off, and Near what was left out then.
	Simulated string  `json:"simulated"`
	Margin    float64 `json:"margin,omitempty"`
	Near      string  `json:"near,omitempty"`
	// NotProved is what of the plan was too large for its proof (-c).
	NotProved string `json:"not_proved,omitempty"`
	// Regret is the choice's time over the best's, null where rivals were not
	// asked about; Best names the fastest choice.
	Regret *float64 `json:"regret"`
	Best   string   `json:"best,omitempty"`
}

// linkFacts tell of one direction of one link.
type linkFacts struct {
	Name  string  `json:"name"`
	GBps  float64 `json:"GBs"`
	Bytes int64   `json:"bytes"`
	Use   float64 `json:"use"`         // share of the operation's time that its bytes need
	Queue int64   `json:"queue_bytes"` // estimate of what waits before it in the mean
}

// fullest lists the links in use the most, the first five.
func fullest(r *exec.Result) []linkFacts {
	var all []exec.LinkLoad
	for _, l := range r.Links {
		if l.Capacity > 0 && l.Bytes > 0 {
			all = append(all, l)
		}
	}
	slices.SortStableFunc(all, func(a, b exec.LinkLoad) int { return cmp.Compare(b.Ideal(), a.Ideal()) })
	var out []linkFacts
	for _, l := range all[:min(5, len(all))] {
		out = append(out, linkFacts{l.Name, float64(l.Capacity), int64(l.Bytes), l.Use(r.Elapsed), int64(l.Queue)})
	}
	return out
}

// column is an opt-in column.
type column struct {
	head      nccltests.Column
	value     func(*facts) string
	simulated bool // needs a simulation
	rivals    bool // needs every choice's time
}

func ofSimulation(c column) column { c.simulated = true; return c }

var allColumns = map[string]column{
	"algo":   textColumn("algo", 8, func(f *facts) string { return f.Algo }),
	"proto":  textColumn("proto", 6, func(f *facts) string { return f.Proto }),
	"nch":    textColumn("nch", 3, func(f *facts) string { return fmt.Sprint(f.Channels) }),
	"model":  {head: nccltests.Column{Name: "model", Unit: "(us)", Width: 8}, value: func(f *facts) string { return nccltests.Float(f.ModelUs, 8) }},
	"expect": {head: nccltests.Column{Name: "expect", Unit: "(GB/s)", Width: 7}, value: func(f *facts) string { return nccltests.Float(f.Expect, 7) }, simulated: true},
	"limit":  ofSimulation(textColumn("limit", 24, func(f *facts) string { return strings.ReplaceAll(f.Limit, " ", "_") })),
	"use":    ofSimulation(textColumn("use", 5, func(f *facts) string { return fmt.Sprintf("%.1f%%", 100*f.Use) })),
	"queue":  ofSimulation(textColumn("queue", 9, func(f *facts) string { return fmt.Sprint(f.Queue) })),
	"regret": {head: nccltests.Column{Name: regretColumn, Width: 6}, value: func(f *facts) string { return regretText(f.Regret) }, rivals: true},
}

// regretColumn is the choice's time over that of the best of all choices.
const regretColumn = "regret"

func textColumn(name string, width int, value func(*facts) string) column {
	return column{head: nccltests.Column{Name: name, Width: width}, value: value}
}

var columnOrder = []string{"algo", "proto", "nch", "model", "expect", "limit", "use", "queue", "regret"}

func parseColumns(s string) ([]column, error) {
	if s == "" {
		return nil, nil
	}
	var out []column
	for name := range strings.SplitSeq(strings.TrimPrefix(s, "+"), ",") {
		name = strings.TrimPrefix(name, "+")
		c, ok := allColumns[name]
		if !ok {
			return nil, usage("--columns %s: no column %q; write some of +%s", s, name, strings.Join(columnOrder, ","))
		}
		out = append(out, c)
	}
	return out, nil
}

func columnHeads(cols []column) []nccltests.Column {
	var out []nccltests.Column
	for _, c := range cols {
		out = append(out, c.head)
	}
	return out
}

func regretText(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *r)
}

// facts sums up a row.
func (s *sweep) facts(r *nccltests.Row, o *outcome) *facts {
	f := &facts{Algo: "-", Proto: "-", ModelUs: float64(o.choice.TimeUs), SimUs: r.Out.TimeUs, Limit: "-",
		Simulated: o.result.Account.Method.String(), Margin: o.result.Account.Margin, Near: o.result.Account.Note, NotProved: o.tooBig}
	switch {
	case o.choice.Warps > 0:
		f.Algo, f.Proto, f.Channels = o.choice.Algo.LogName(), o.choice.Proto.LogName(), o.plan.Split.NChannels
	case o.sends():
		f.Algo, f.Channels = "P2P", s.m.comm.P2PChannels
	}
	if o.best != nil && o.best.result.Elapsed > 0 {
		regret := float64(o.result.Elapsed) / float64(o.best.result.Elapsed)
		f.Regret, f.Best = &regret, label(&o.best.choice)
	}
	if l, ok := limiting(o.result.Links); ok && o.result.Elapsed > 0 {
		f.Limit, f.Use, f.Queue, f.Links = l.Name, l.Use(o.result.Elapsed), int64(l.Queue), fullest(&o.result)
		if ideal := l.Ideal(); ideal > 0 {
			f.Expect = r.Out.BusBW * float64(o.result.Elapsed) / float64(ideal)
			f.IdealUs = ideal.Micros()
		}
	}
	for _, l := range o.result.Links {
		if float64(l.Ideal()) > float64(l.Busy)*(1+1e-6)+float64(units.Nanosecond) {
			f.Overfull = l.Name
		}
	}
	return f
}

// limiting is the link that would need the longest for what it carried.
func limiting(links []exec.LinkLoad) (exec.LinkLoad, bool) {
	best, longest := -1, units.Time(-1)
	for i, l := range links {
		if l.Capacity <= 0 || l.Bytes == 0 {
			continue
		}
		if t := l.Ideal(); t > longest {
			best, longest = i, t
		}
	}
	if best < 0 {
		return exec.LinkLoad{}, false
	}
	return links[best], true
}

func (f *facts) json() string { return toJSON(f) }

// toJSON writes a value for a JSON file of nccl-tests.
func toJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "null" // only numbers that JSON has no word for
	}
	return strings.TrimRight(b.String(), "\n")
}
