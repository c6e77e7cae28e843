// Package sweep renders a simulated sweep as nccl-tests would print it: its table
// with opt-in columns, its notes, and its JSON.
//
// What it must not know: flags, how the rows were simulated.
package sweep

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/congestion"
)

// Column is a column that --columns adds to the table, and what its values cost to compute.
type Column struct {
	Head      nccltests.Column
	Value     func(*scenario.Facts) string
	Simulated bool // needs a simulation
	Rivals    bool // needs every choice's time
	What      string
}

func ofSimulation(c Column) Column { c.Simulated = true; return c }

var allColumns = map[string]Column{
	"algo":  textColumn("algo", 8, func(f *scenario.Facts) string { return f.Algo }),
	"proto": textColumn("proto", 6, func(f *scenario.Facts) string { return f.Proto }),
	"nch":   textColumn("nch", 3, func(f *scenario.Facts) string { return fmt.Sprint(f.Channels) }),
	"model": {Head: nccltests.Column{Name: "model", Unit: "(us)", Width: 8},
		Value: func(f *scenario.Facts) string { return nccltests.Float(f.ModelUs, 8) }},
	"expect": {Head: nccltests.Column{Name: "expect", Unit: "(GB/s)", Width: 7},
		Value: func(f *scenario.Facts) string { return nccltests.Float(f.Expect, 7) }, Simulated: true},
	"limit": ofSimulation(textColumn("limit", 24, func(f *scenario.Facts) string {
		return strings.ReplaceAll(f.Limit, " ", "_")
	})),
	"use": ofSimulation(textColumn("use", 5, func(f *scenario.Facts) string {
		return fmt.Sprintf("%.1f%%", 100*f.Use)
	})),
	"queue": ofSimulation(textColumn("queue", 9, func(f *scenario.Facts) string {
		return fmt.Sprint(f.Queue)
	})),
	"paused": ofSimulation(textColumn("paused", 9, ofFrames(func(c *congestion.Facts) string {
		return fmt.Sprintf("%.1fus", c.PausedUs)
	}))),
	"marked": ofSimulation(textColumn("marked", 9, ofFrames(func(c *congestion.Facts) string {
		return fmt.Sprint(c.Marked)
	}))),
	"retx": ofSimulation(textColumn("retx", 7, ofFrames(func(c *congestion.Facts) string {
		return fmt.Sprint(c.Resent)
	}))),
	"least": ofDraws("least", func(d *scenario.Draws) float64 { return d.LeastBusBW }),
	"most":  ofDraws("most", func(d *scenario.Draws) float64 { return d.MostBusBW }),
	"regret": {Head: nccltests.Column{Name: Regret, Width: 6}, Value: func(f *scenario.Facts) string {
		return regretText(f.Regret)
	}, Rivals: true},
	"best": {Head: nccltests.Column{Name: "best", Width: 16}, Value: bestText, Rivals: true},
}

// ofDraws is a bus bandwidth of the draws of hashed routes, "-" of a row without.
func ofDraws(name string, value func(*scenario.Draws) float64) Column {
	return Column{Head: nccltests.Column{Name: name, Unit: "(GB/s)", Width: 7}, Simulated: true,
		Value: func(f *scenario.Facts) string {
			if f.Draws == nil {
				return "-"
			}
			return nccltests.Float(value(f.Draws), 7)
		}}
}

// ofFrames is a value of a network that was simulated frame by frame, "-" of another.
func ofFrames(value func(*congestion.Facts) string) func(*scenario.Facts) string {
	return func(f *scenario.Facts) string {
		if f.Congestion == nil {
			return "-"
		}
		return value(f.Congestion)
	}
}

// bestText names the fastest choice, "-" where it is NCCL's.
func bestText(f *scenario.Facts) string {
	if f.Regret == nil || *f.Regret <= 1 {
		return "-"
	}
	return f.Best
}

// Regret names the column of the choice's time over that of the best of all choices.
const Regret = "regret"

func textColumn(name string, width int, value func(*scenario.Facts) string) Column {
	return Column{Head: nccltests.Column{Name: name, Width: width}, Value: value}
}

var columnOrder = []string{"algo", "proto", "nch", "model", "expect", "limit", "use", "queue", "paused",
	"marked", "retx", "regret", "best", "least", "most"}

// what says what the values of a column are.
var what = map[string]string{
	"algo":   "algorithm that NCCL chooses: RING, TREE, NVLS, …",
	"proto":  "protocol that NCCL chooses: LL, LL128 or SIMPLE",
	"nch":    "channels that the operation uses",
	"model":  "time by NCCL's own cost model, in us",
	"expect": "bus bandwidth if the link in column limit were always busy, in GB/s",
	"limit":  "link that needs the longest for what it carries",
	"use":    "share of the operation's time for which that link is busy",
	"queue":  "bytes that wait before that link, an estimate",
	"paused": "longest time for which a port was paused (--network packet)",
	"marked": "frames with an ECN mark (--network packet)",
	"retx":   "frames sent again (--network packet)",
	"regret": "time of NCCL's choice over that of the fastest algorithm and protocol; 1: NCCL's is the " +
		"fastest",
	"best":  "the fastest algorithm and protocol, where it is not NCCL's",
	"least": "bus bandwidth of the slowest draw of hashed routes, in GB/s",
	"most":  "bus bandwidth of the fastest draw, in GB/s",
}

// AllColumns lists the columns with what they are.
func AllColumns() []Column {
	var out []Column
	for _, name := range columnOrder {
		c := allColumns[name]
		c.What = what[name]
		out = append(out, c)
	}
	return out
}

// UnknownColumnError is a word that names no column.
type UnknownColumnError struct{ Name string }

// Error lists the columns.
func (e *UnknownColumnError) Error() string {
	return fmt.Sprintf("no column %q; write some of +%s", e.Name, strings.Join(columnOrder, ","))
}

// ParseColumns reads "+algo,proto". After regret comes best, which names the better choice.
func ParseColumns(s string) ([]Column, error) {
	if s == "" {
		return nil, nil
	}
	var out []Column
	for name := range strings.SplitSeq(strings.TrimPrefix(s, "+"), ",") {
		name = strings.TrimPrefix(name, "+")
		c, ok := allColumns[name]
		if !ok {
			return nil, &UnknownColumnError{name}
		}
		if out = append(out, c); name == Regret && !strings.Contains(s, "best") {
			out = append(out, allColumns["best"])
		}
	}
	return out, nil
}

// Heads returns nccl-tests' headings for opt-in columns.
func Heads(cols []Column) []nccltests.Column {
	var out []nccltests.Column
	for _, c := range cols {
		out = append(out, c.Head)
	}
	return out
}

// regretText writes a value of that column, "-" where there is none.
func regretText(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.3f", *r)
}
