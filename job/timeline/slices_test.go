package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/units"
)

// TestJoinedSlices: of one kind, less than apart from each other, and one of both shorter than that, or the
// first joined before.
func TestJoinedSlices(t *testing.T) {
	const apart = 10
	slice := func(from, to units.Time, kind SliceKind, name string) Slice {
		return Slice{from, to, kind, name}
	}
	for _, c := range []struct {
		name       string
		list, want []Slice
	}{
		{"none", nil, nil},
		{"two short ones", []Slice{slice(0, 5, Moves, "a"), slice(14, 19, Moves, "b")},
			[]Slice{slice(0, 19, Moves, "a, …")}},
		{"as far as apart", []Slice{slice(0, 5, Moves, "a"), slice(15, 19, Moves, "b")},
			[]Slice{slice(0, 5, Moves, "a"), slice(15, 19, Moves, "b")}},
		{"two kinds", []Slice{slice(0, 5, Moves, "a"), slice(5, 9, Waits, "b")},
			[]Slice{slice(0, 5, Moves, "a"), slice(5, 9, Waits, "b")}},
		{"the second is long", []Slice{slice(0, 9, Moves, "a"), slice(9, 29, Moves, "b")},
			[]Slice{slice(0, 29, Moves, "a, …")}},
		{"the first is long", []Slice{slice(0, 20, Moves, "a"), slice(21, 30, Moves, "b")},
			[]Slice{slice(0, 30, Moves, "a, …")}},
		{"both are long", []Slice{slice(0, 10, Moves, "a"), slice(11, 21, Moves, "b")},
			[]Slice{slice(0, 10, Moves, "a"), slice(11, 21, Moves, "b")}},
		{"long behind joined ones", []Slice{slice(0, 9, Moves, "a"), slice(9, 12, Moves, "b"),
			slice(13, 33, Moves, "c")}, []Slice{slice(0, 33, Moves, "a, …")}},
		{"one within another", []Slice{slice(0, 20, Hosts, "a"), slice(3, 5, Hosts, "b"),
			slice(22, 24, Hosts, "c")}, []Slice{slice(0, 24, Hosts, "a, …")}},
	} {
		if diff := cmp.Diff(c.want, Join(c.list, apart)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// TestHiddenSlices: what moves while the GPU computes is apart from what moves alone; other kinds stay.
func TestHiddenSlices(t *testing.T) {
	computing := []Span{{0, 10}, {20, 30}, {40, 50}}
	for _, c := range []struct {
		name       string
		from, to   units.Time
		kind       SliceKind
		wantedFrom []units.Time // of each part; it ends where the next begins
		wantedKind []SliceKind
	}{
		{"waits", 5, 45, Waits, []units.Time{5}, []SliceKind{Waits}},
		{"between", 10, 20, Moves, []units.Time{10}, []SliceKind{Moves}},
		{"within", 22, 28, Moves, []units.Time{22}, []SliceKind{Hides}},
		{"all of one", 20, 30, Moves, []units.Time{20}, []SliceKind{Hides}},
		{"begins within", 5, 15, Moves, []units.Time{5, 10}, []SliceKind{Hides, Moves}},
		{"ends within", 15, 25, Moves, []units.Time{15, 20}, []SliceKind{Moves, Hides}},
		{"over two", 15, 45, Moves, []units.Time{15, 20, 30, 40}, []SliceKind{Moves, Hides, Moves, Hides}},
		{"behind all", 50, 60, Moves, []units.Time{50}, []SliceKind{Moves}},
	} {
		var want []Slice
		for i, from := range c.wantedFrom {
			to := c.to
			if i+1 < len(c.wantedFrom) {
				to = c.wantedFrom[i+1]
			}
			want = append(want, Slice{from, to, c.wantedKind[i], "x"})
		}
		if diff := cmp.Diff(want, Hide([]Slice{{c.from, c.to, c.kind, "x"}}, computing)); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}
