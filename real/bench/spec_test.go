package bench

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/real/internal/device"
	"github.com/simccl/simccl/real/team"
	"github.com/simccl/simccl/units"
)

// odd is a backend of three ranks whose in-place results are wrong.
type odd struct{ seen []device.Case }

func (o *odd) About() About { return About{Devices: make([]nccltests.Device, 3), Threads: 1} }
func (o *odd) Close() error { return nil }

func (o *odd) Measure(_ context.Context, op *device.Case, _ device.Options) (m Measurement, err error) {
	o.seen = append(o.seen, *op)
	m.Time, m.Checked, m.Shape = units.Microsecond, true, "nccl"
	if op.InPlace {
		m.Wrong, m.First = 2, "rank 1: element 3"
	}
	return m, nil
}

// received counts what a reporter receives.
type received struct{ begun, rows, wrong int }

func (h *received) Begin(*nccltests.Config, *About) { h.begun++ }
func (h *received) Row(*nccltests.Row)              { h.rows++ }
func (h *received) Wrong(_, first string)           { h.wrong++ }

// TestSweep: a sweep goes through types, roots, cycles and sizes in nccl-tests'
// order, each out of place and in place, and counts wrong measurements, not
// rows, as nccl-tests does.
func TestSweep(t *testing.T) {
	members, err := team.Assemble(t.Context(), team.Alone(3), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer members.Leave()
	spec := &Spec{Func: coll.Broadcast, Root: -1, Cycles: 2, Types: []coll.DataType{coll.Float32,
		coll.Float16}, Ops: []coll.RedOp{coll.Sum},
		Sizes: []Size{{Asked: 10, Exact: true}, {Asked: 64}}, Columns: []Column{columns()["shape"]},
		MinBW: -1}
	back, rep := &odd{}, &received{}
	run, err := New(spec, members, back, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := run.Sweep(t.Context(), rep)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 2 * 3 * 2 * 2 // types, roots, cycles, sizes
	if rep.begun != 1 || rep.rows != rows || rep.wrong != rows || doc.Summary.OutOfBounds != rows ||
		len(doc.Rows) != rows || len(doc.Own) != rows {
		t.Errorf("%+v, %d wrong, %d rows, %d own keys; want %d of each", rep, doc.Summary.OutOfBounds,
			len(doc.Rows), len(doc.Own), rows)
	}
	if first := doc.Rows[0]; first.Size != 10 || first.Count != 2 || !slices.Equal(first.Extra,
		[]string{"nccl"}) {
		t.Errorf("the first row is %+v", first)
	}
	var roots []int
	for i := 0; i < len(back.seen); i += 8 { // cycles, sizes, in place
		roots = append(roots, back.seen[i].Root)
	}
	if !slices.Equal(roots, []int{0, 1, 2, 0, 1, 2}) || back.seen[0].InPlace || !back.seen[1].InPlace ||
		back.seen[24].Type != coll.Float16 {
		t.Errorf("roots %v, first %+v", roots, back.seen[0])
	}
	for _, root := range []int{-2, 3} {
		spec.Root = root
		if _, err := New(spec, members, back, nil, time.Now()); err == nil {
			t.Errorf("root %d of 3 ranks is taken", root)
		}
	}
}

// TestRivalsNeedABackendThatForces: regret is refused where nothing else than
// the choice can be measured.
func TestRivalsNeedABackendThatForces(t *testing.T) {
	members, err := team.Assemble(t.Context(), team.Alone(3), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer members.Leave()
	c := columns()["regret"]
	c.Predicts = false
	run, err := New(&Spec{Func: coll.AllReduce, Cycles: 1, Types: []coll.DataType{coll.Float32},
		Ops:   []coll.RedOp{coll.Sum},
		Sizes: []Size{{Asked: 64}}, Columns: []Column{c}}, members, &odd{}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Sweep(t.Context(), &received{}); err == nil {
		t.Error("regret without rivals")
	}
}
