package intercept_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/intercept"
)

// TestOnlyOwnMemory: a process reaches no memory but its own through the collector, whatever process it says
// that it is and whatever it shows; it gets the reason, and the report says it once.
func TestOnlyOwnMemory(t *testing.T) {
	m := two(t)
	steal := example(t, "steal")
	for _, c := range []struct{ mode, told, parent string }{
		{"claim", `^2 simccl intercept refuses this process: process \d+ says that it is process \d+`,
			"untouched"},
		{"show", `^2 simccl intercept refuses this process: process \d+ shows /proc/\d+/mem for its memory`,
			"untouched"},
		{"none", `^2 simccl intercept refuses this process: process \d+ has not shown its memory`,
			"untouched"},
		{"own", `^own: AAAAAAhed`, "untouched"},
		{"orphan", `^own: AAAAAAhed`, "untouched"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			r := intercepted(t, m, func(o *intercept.Options) { o.Data = true }, steal, c.mode)
			if r.Exit != 0 {
				t.Fatalf("ended with %d: %s%s", r.Exit, r.out, r.errs)
			}
			if !regexp.MustCompile(c.told).MatchString(r.out) || !strings.HasSuffix(r.out, "parent: "+
				c.parent+"\n") {
				t.Errorf("printed %q", r.out)
			}
			if refused := strings.HasPrefix(c.told, "^2"); refused != (r.Faults == 1) {
				t.Errorf("%d faults: %q", r.Faults, r.warnings)
			}
		})
	}
}
