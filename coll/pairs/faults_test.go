package pairs_test

import (
	"math"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/coll/pairs"
)

// TestCountsMeanSomethingOrAreRefused: by one member, where they have no meaning or two.
func TestCountsMeanSomethingOrAreRefused(t *testing.T) {
	rows, v := [][]int64{{1, 2}, {3, 4}}, coll.AllToAllV
	for _, c := range []struct {
		s    pairs.Source
		with pairs.With
		want string // members
	}{
		{pairs.Source{Op: v}, pairs.With{Sizes: true, Group: 1}, ""},
		{pairs.Source{Op: v, Rows: rows}, pairs.With{}, ""},
		{pairs.Source{Op: v, Rows: rows}, pairs.With{Sizes: true}, "counts"},
		{pairs.Source{Op: v, Imbalance: 1}, pairs.With{Sizes: true}, ""},
		{pairs.Source{Op: v, Imbalance: 0.99}, pairs.With{}, "imbalance=0.99"},
		{pairs.Source{Op: v, Imbalance: math.Inf(1)}, pairs.With{}, "imbalance=+Inf"},
		{pairs.Source{Op: v, Imbalance: math.NaN()}, pairs.With{}, "imbalance=NaN"},
		{pairs.Source{Op: v, Imbalance: 2, Rows: rows}, pairs.With{}, "counts"},
		{pairs.Source{Op: v}, pairs.With{Group: 2, Windows: true}, "group=2 buffers=windows"},
		{pairs.Source{Op: "alltoall"}, pairs.With{Group: 2, Windows: true}, ""},
		{pairs.Source{Op: "alltoall", Rows: rows}, pairs.With{}, "counts"},
		{pairs.Source{Op: "alltoall", Imbalance: 2}, pairs.With{}, "imbalance=2"},
		{pairs.Source{Op: "alltoall", Imbalance: 2, Rows: rows}, pairs.With{}, "counts"},
	} {
		var got []string
		for _, f := range c.s.Faults(c.with) {
			text := f.Member
			if f.Value != "" {
				text += "=" + f.Value
			}
			if got = append(got, text); f.Problem == "" || f.Hint == "" {
				t.Errorf("%+v", f)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v with %+v: %q, want %q", c.s, c.with, got, c.want)
		}
	}
}

// TestWrongCountsHaveAPlace: the row and the column, or the row alone where it is short.
func TestWrongCountsHaveAPlace(t *testing.T) {
	for want, rows := range map[string][][]int64{"": {{1, 2}, {3, 4}}, "[1][0]": {{1, 2}, {-3, 4}},
		"[1]": {{1, 2}, {3}}} {
		p, where, err := pairs.Placed(rows)
		if where != want || (err == nil) != (want == "") || (p == nil) != (err != nil) {
			t.Errorf("%v: at %q, %v, want %q", rows, where, err, want)
		}
	}
}
