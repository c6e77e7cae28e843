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
