package web

import (
	"strings"

	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
)

// table is the rows of a run as simccl run prints them.
type table struct {
	sweep *sweep.Table
	text  strings.Builder
	rows  []*nccltests.Row
}

// Counts of nccl-tests without options, which change no simulated time.
var counts = nccltests.Config{Warmup: 1, Iters: 20, AggIters: 1, Check: 1}

func newTable(r *scenario.Running) (*table, error) {
	t, err := sweep.New(r, counts, r.Site.Config.Rules.Release.Code())
	if err != nil {
		return nil, err
	}
	t.Summary.MinBW = -1
	return &table{sweep: t}, nil
}

func (t *table) add(row *scenario.Row) { t.rows = append(t.rows, t.sweep.Add(row)) }

func (t *table) end(r *scenario.Running, program string) (*Ran, error) {
	w := nccltests.NewTable(&t.text)
	for _, line := range sweep.Prefaces(r, program) {
		w.Preface(line)
	}
	w.Start(&t.sweep.Config, sweep.Devices(r.Site))
	for _, row := range t.rows {
		w.Row(row)
	}
	if err := w.Finish(&t.sweep.Config, &t.sweep.Summary); err != nil {
		return nil, err
	}
	return &Ran{Avg: number(t.sweep.Summary.AvgBusBW, 8), Notes: append([]string{}, t.sweep.Notes()...),
		Table: t.text.String()}, nil
}
