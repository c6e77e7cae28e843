package coll

import (
	"slices"
	"strings"
	"testing"
)

func TestSweep(t *testing.T) {
	for _, c := range []struct {
		s    Sweep
		want []int64
		err  string
	}{
		{Sweep{Min: 8, Max: 64, Factor: 2}, []int64{8, 16, 32, 64}, ""},
		{Sweep{Min: 8, Max: 63, Factor: 2}, []int64{8, 16, 32}, ""},
		{Sweep{Min: 10, Max: 40, StepBytes: 15}, []int64{10, 25, 40}, ""},
		{Sweep{Min: 0, Max: 8, StepBytes: 8}, []int64{0, 8}, ""},
		{Sweep{Min: 1 << 61, Max: 1<<63 - 1, Factor: 4}, []int64{1 << 61}, ""},
		{Sweep{Min: 9, Max: 8, Factor: 2}, nil, "swap"},
		{Sweep{Min: 0, Max: 8, Factor: 2}, nil, "stays 0"},
		{Sweep{Min: 0, Max: 8}, nil, "never ends"},
		{Sweep{Min: 0, Max: 1 << 40, StepBytes: 1}, nil, "larger step"},
	} {
		got, err := c.s.Sizes()
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil &&
			!strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v, %v", c.s, got, err)
		}
	}
}
