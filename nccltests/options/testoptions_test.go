package options_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/nccltests/options"
)

// TestSettle: what nccl-tests turns off, with what is said then.
func TestSettle(t *testing.T) {
	for _, x := range []struct {
		graph         bool
		perIter, skip int
		ctas          int
		want          [3]int // -I, -K, -V then
		said          string
	}{
		{false, 1, 3, 8, [3]int{1, 3, 8}, ""},
		{true, 1, 0, 16, [3]int{0, 0, 16}, "-I 1"},
		{false, 2, 0, 16, [3]int{0, 0, 16}, "-I: 0 or 1"},
		{false, 1, 20, 16, [3]int{1, 0, 16}, "-K"},
		{false, 0, 2, 0, [3]int{0, 0, 16}, "-K"},
		{false, 1, -1, 200, [3]int{1, 0, 16}, "-V"},
	} {
		o := options.Options{Iters: 20, PerIter: x.perIter, Skip: x.skip, DeviceCTAs: x.ctas}
		said := ""
		o.Settle(x.graph, func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" })
		if got := [3]int{o.PerIter, o.Skip, o.DeviceCTAs}; got != x.want || !strings.Contains(said, x.said) ||
			x.said == "" && said != "" {
			t.Errorf("%+v: %v, %q", x, got, said)
		}
	}
}

// TestNotSplit: variables that divide processes mean nothing to one process.
func TestNotSplit(t *testing.T) {
	env := func(name string) (string, bool) { return "%2", name == "NCCL_TESTS_SPLIT" }
	if err := options.NotSplit(env, 1); err != nil {
		t.Error(err)
	}
	if options.NotSplit(env, 2) == nil {
		t.Error("two processes are not divided, and nothing says so")
	}
}

// TestOptionsHaveLimits: values to the limit are taken, and beyond it refused by their name.
func TestOptionsHaveLimits(t *testing.T) {
	for _, c := range []struct {
		of, want string // nothing where it is taken
		graph    bool
		set      func(*options.Options)
	}{
		{"nothing", "", false, func(*options.Options) {}},
		{"no iterations", "Iters 0", false, func(o *options.Options) { o.Iters = 0 }},
		{"no cycles", "Cycles 0", false, func(o *options.Options) { o.Cycles = 0 }},
		{"no operations in a group", "Agg 0", false, func(o *options.Options) { o.Agg = 0 }},
		{"warmup below 0", "Warmup -1", false, func(o *options.Options) { o.Warmup = -1 }},
		{"policy 0", "", false, func(o *options.Options) { o.CTAPolicy = 0 }},
		{"policy 2", "", false, func(o *options.Options) { o.CTAPolicy = 2 }},
		{"policy 3", "CTAPolicy 3", false, func(o *options.Options) { o.CTAPolicy = 3 }},
		{"policy -2", "CTAPolicy -2", false, func(o *options.Options) { o.CTAPolicy = -2 }},
		{"average 3", "", false, func(o *options.Options) { o.Average = 3 }},
		{"average 4", "Average 4", false, func(o *options.Options) { o.Average = 4 }},
		{"average -1", "Average -1", false, func(o *options.Options) { o.Average = -1 }},
		{"register 2", "", false, func(o *options.Options) { o.LocalRegister = 2 }},
		{"register 3", "LocalRegister 3", false, func(o *options.Options) { o.LocalRegister = 3 }},
		{"register -1", "LocalRegister -1", false, func(o *options.Options) { o.LocalRegister = -1 }},
		{"blocking 3", "", false, func(o *options.Options) { o.Blocking = 3 }},
		{"blocking 4", "Blocking is 0 to 3", false, func(o *options.Options) { o.Blocking = 4 }},
		{"blocking -1", "Blocking is 0 to 3", false, func(o *options.Options) { o.Blocking = -1 }},
		{"CPU time", "", false, func(o *options.Options) { o.CPUTime = 1 }},
		{"CPU time 2", "CPUTime 0 or 1", false, func(o *options.Options) { o.CPUTime = 2 }},
		{"CPU time -1", "CPUTime 0 or 1", false, func(o *options.Options) { o.CPUTime = -1 }},
		{"unaligned", "", false, func(o *options.Options) { o.Unalign = 1 }},
		{"unaligned by -1", "Unalign at least 0", false, func(o *options.Options) { o.Unalign = -1 }},
		{"a graph", "", true, func(*options.Options) {}},
		{"a graph that blocks as nccl-tests lets it", "", true, func(o *options.Options) { o.Blocking = 3 }},
		{"a graph that blocks", "neither blocks", true, func(o *options.Options) { o.Blocking = 1 }},
		{"a graph with CPU time", "neither blocks", true, func(o *options.Options) { o.CPUTime = 1 }},
	} {
		o := options.Options{Iters: 1, Cycles: 1, Agg: 1, CTAPolicy: options.NoPolicy}
		c.set(&o)
		err := o.Counts()
		if err == nil {
			err = o.Simulated(c.graph)
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.of, err, c.want)
		}
	}
}

// TestVariablesOfTests: the mask of a split comes before the split, in hexadecimal; a bandwidth is a number
// or nothing.
func TestVariablesOfTests(t *testing.T) {
	env := map[string]string{}
	getenv := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	for _, c := range []struct{ mask, split, want string }{{"", "", ""}, {"", "%2", "%2"},
		{"F0", "%2", "AND 0xf0"}, {"0x7", "", "AND 0x7"}} {
		env["NCCL_TESTS_SPLIT_MASK"], env["NCCL_TESTS_SPLIT"] = c.mask, c.split
		if got := options.Split(getenv); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.mask, c.split, got, c.want)
		}
	}
	for text, want := range map[string]float64{"": -1, "0": 0, "12.5": 12.5} {
		env["NCCL_TESTS_MIN_BW"] = text
		if got, err := options.MinBW(getenv); err != nil || got != want {
			t.Errorf("%q: %g %v, want %g", text, got, err, want)
		}
	}
	env["NCCL_TESTS_MIN_BW"] = "fast"
	if _, err := options.MinBW(getenv); err == nil || !strings.Contains(err.Error(), "=fast") {
		t.Error(err)
	}
	if got, err := options.MinBW(func(string) (string, bool) { return "", false }); err != nil || got != -1 {
		t.Errorf("unset: %g %v", got, err)
	}
}
