package diagnose

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/workload/kineto"
)

// board is how many GPUs a node has, as far as a recording, which does not say it, is concerned. Of a
// recording at most sizes are judged, spread over all; larger operations and communicators than the largest
// are none.
const (
	board        = 8
	sizes        = 32
	largestBytes = 1 << 40
	largestRanks = 1 << 16
)

// recording takes the times of NCCL's kernels out of a Kineto trace: of each operation the shortest, over all
// traces. A kernel waits for the last rank, so that of one trace the times are upper bounds.
func (m *material) recording(f File, text []byte) error {
	trace, err := kineto.Read(bytes.NewReader(text), f.Name)
	if err != nil {
		return err
	}
	m.notes = append(m.notes, trace.Notes...)
	found := trace.Timed()
	if len(found) == 0 {
		m.notes = append(m.notes,
			f.Name+": no kernel of NCCL has its arguments, which PyTorch 2.3 and later record")
		return nil
	}
	m.notedOnce(fmt.Sprintf("times of recordings are the shortest of an operation's kernels, over all "+
		"traces: what ranks wait for each other is not in them where all ranks' traces are given; nodes of "+
		"up to %d "+
		"GPUs, next to each other, are assumed", board))
	for _, v := range found {
		if v.Ranks > largestRanks || v.Count > largestBytes/int64(v.Type.Size()) {
			continue
		}
		bytes := v.Count * int64(v.Type.Size())
		if v.Func.PerRank() {
			bytes *= int64(v.Ranks)
		}
		t := m.recorded(trace, &v)
		if t == nil || bytes > largestBytes {
			continue
		}
		if !slices.Contains(t.traces, f.Name) {
			t.traces = append(t.traces, f.Name)
		}
		us := float64(v.Least) * 1e-3
		if k := slices.IndexFunc(t.rows, func(r row) bool { return r.bytes == bytes }); k >= 0 {
			t.rows[k].us = min(t.rows[k].us, us)
			continue
		}
		t.rows = append(t.rows, row{bytes, operation(&comm.Op{Func: v.Func, Type: v.Type, Count: v.Count}),
			us})
	}
	return nil
}

func (m *material) notedOnce(note string) {
	if !slices.Contains(m.notes, note) {
		m.notes = append(m.notes, note)
	}
}

// partial reports whether traces of some ranks are missing: a kernel whose last rank has no trace waited for
// it, and its time is no more than an upper bound.
func (t *table) partial() bool { return t.recorded && len(t.traces) < t.run.Ranks }

// thin sorts the sizes of recordings and leaves those out that are too many.
func (m *material) thin() {
	m.tables = slices.DeleteFunc(m.tables, func(t *table) bool { return len(t.rows) == 0 })
	for _, t := range m.tables {
		slices.SortFunc(t.rows, func(a, b row) int { return cmp.Compare(a.bytes, b.bytes) })
		if n := len(t.rows); t.recorded && n > sizes {
			for i := range sizes {
				t.rows[i] = t.rows[i*(n-1)/(sizes-1)]
			}
			t.rows = t.rows[:sizes]
			m.notes = append(m.notes, fmt.Sprintf("%s: %d of its %d sizes are judged", t.name(), sizes, n))
		}
	}
}

// recorded is the table of recordings for an operation; nil of a communicator that is no whole number of
// nodes.
func (m *material) recorded(trace *kineto.Trace, v *kineto.Timed) *table {
	nodes := (v.Ranks + board - 1) / board
	if v.Ranks%nodes != 0 {
		m.notes = append(m.notes, fmt.Sprintf("%s: %s of %d ranks is left out: no equal nodes", trace.File,
			v.Func.TestName(), v.Ranks))
		return nil
	}
	name := fmt.Sprintf("recordings of %d ranks, %s", v.Ranks, v.Type)
	for _, t := range m.tables {
		if t.run.File == name && t.fn == v.Func && t.recorded && t.typ == v.Type {
			return t
		}
	}
	r := &calibrate.Run{File: name, GPU: trace.GPU, Ranks: v.Ranks, Nodes: nodes, PerNode: v.Ranks / nodes,
		Launch: sim.Graph, PerThread: 1, Threads: 1}
	if at, err := rules.ParseRelease(trace.NCCL); err == nil {
		r.NCCL = at.Code()
	}
	m.tables = append(m.tables, &table{run: r, fn: v.Func, typ: v.Type, recorded: true})
	return m.tables[len(m.tables)-1]
}
