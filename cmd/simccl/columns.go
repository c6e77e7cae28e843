package main

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/report/nccltests"
	"github.com/simccl/simccl/scenario"
)

// column is an opt-in column.
type column struct {
	head      nccltests.Column
	value     func(*scenario.Facts) string
	simulated bool // needs a simulation
	rivals    bool // needs every choice's time
}

func ofSimulation(c column) column { c.simulated = true; return c }

var allColumns = map[string]column{
	"algo":   textColumn("algo", 8, func(f *scenario.Facts) string { return f.Algo }),
	"proto":  textColumn("proto", 6, func(f *scenario.Facts) string { return f.Proto }),
	"nch":    textColumn("nch", 3, func(f *scenario.Facts) string { return fmt.Sprint(f.Channels) }),
	"model":  {head: nccltests.Column{Name: "model", Unit: "(us)", Width: 8}, value: func(f *scenario.Facts) string { return nccltests.Float(f.ModelUs, 8) }},
	"expect": {head: nccltests.Column{Name: "expect", Unit: "(GB/s)", Width: 7}, value: func(f *scenario.Facts) string { return nccltests.Float(f.Expect, 7) }, simulated: true},
	"limit":  ofSimulation(textColumn("limit", 24, func(f *scenario.Facts) string { return strings.ReplaceAll(f.Limit, " ", "_") })),
	"use":    ofSimulation(textColumn("use", 5, func(f *scenario.Facts) string { return fmt.Sprintf("%.1f%%", 100*f.Use) })),
	"queue":  ofSimulation(textColumn("queue", 9, func(f *scenario.Facts) string { return fmt.Sprint(f.Queue) })),
	"regret": {head: nccltests.Column{Name: regretColumn, Width: 6}, value: func(f *scenario.Facts) string { return regretText(f.Regret) }, rivals: true},
}

// regretColumn is the choice's time over that of the best of all choices.
const regretColumn = "regret"

func textColumn(name string, width int, value func(*scenario.Facts) string) column {
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
