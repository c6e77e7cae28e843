package intercept_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/intercept"
	"github.com/simccl/simccl/intercept/collector"
	"github.com/simccl/simccl/job"
)

// TestFakeGrid: four processes are 16 ranks of a job with groups, splits by color, rings and
// pipelines. The record, the program's clock and the simulated job are those of 16 processes.
func TestFakeGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: programs of several processes")
	}
	m, program := two(t), example(t, "grid")
	for _, c := range []struct {
		what string
		x, y string
		grid collector.Grid
	}{{"groups", "4", "4", collector.Grid{4, 4}}, {"groups", "8", "2", collector.Grid{8, 2}},
		{"stages", "8", "2", collector.Grid{8, 2}}, {"inits", "4", "4", collector.Grid{4, 4}},
		{"inits", "2", "8", collector.Grid{2, 8}}} {
		all := intercepted(t, m, nil, program, c.what, c.x, c.y, c.x, c.y)
		all.want(t, "")
		r := intercepted(t, m, func(o *intercept.Options) { o.Real, o.Grid = 4, c.grid }, program, c.what,
			c.x, c.y, "2", "2")
		r.want(t, all.out)
		if x, y := shape(t, r), shape(t, all); x != y {
			t.Errorf("%s %v: recorded as\n%.3000s\nand of 16 processes\n%.3000s", c.what, c.grid, x, y)
		}
		if len(r.warnings) > 0 || r.Procs != 5 || r.Elapsed != all.Elapsed || r.Calls*4 != all.Calls {
			t.Errorf("%s %v: %d processes, %d and %d calls, %v and %v; %v", c.what, c.grid, r.Procs, r.Calls,
				all.Calls, r.Elapsed, all.Elapsed, r.warnings)
		}
		late := intercepted(t, m, func(o *intercept.Options) {
			o.Real, o.Grid, o.Clock, o.Prices = 4, c.grid, collector.Record, nil
		}, program, c.what, c.x, c.y, "2", "2")
		if x, y := shape(t, late), shape(t, all); x != y || len(late.warnings) > 0 {
			t.Errorf("%s %v: recorded without a clock as\n%.3000s\nand of 16 processes\n%.3000s\n%v", c.what,
				c.grid, x, y, late.warnings)
		}
		one, err := m.Run(context.Background(), r.Record.Program(), job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		other, err := m.Run(context.Background(), all.Record.Program(), job.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(one.Finish, other.Finish) || one.Operations != other.Operations {
			t.Errorf("%s %v: the job takes %v for %d operations, and of 16 processes %v for %d", c.what,
				c.grid, one.Finish, one.Operations, other.Finish, other.Operations)
		}
	}
}

// TestFakeUnknown: what does not follow from the processes is refused, or reported by rank.
func TestFakeUnknown(t *testing.T) {
	m, program := two(t), example(t, "grid")
	for _, c := range []struct {
		what, a, b string
		grid       collector.Grid
		want       []string
	}{
		{"colors", "2", "2", nil, []string{"several colors", "--fake-grid 4,4: 4 of 4 ranks (0 1 2 3)",
			"--fake-grid 2,8: 8 of 2 ranks"}},
		{"colors", "4", "1", collector.Grid{4, 4},
			[]string{"fit two splits: 1 of 16 ranks (0 1 2 3 …), and 4 of 4 ranks (0 1 2 3)"}},
		{"gather", "2", "2", collector.Grid{4, 4}, []string{"which does what rank"}},
		{"gather", "2", "2", collector.Grid{4, 2}, []string{"--fake-grid 4,2 has 8"}},
	} {
		r := intercepted(t, m, func(o *intercept.Options) { o.Real, o.Grid = 4, c.grid }, program, c.what,
			"4", "4", c.a, c.b)
		text := r.out + r.errs + strings.Join(r.warnings, "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s of %s x %s in %v does not say %q:\n%s", c.what, c.a, c.b, c.grid, want, text)
			}
		}
	}
}
