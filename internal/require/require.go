// Package require ends tests whose machine lacks something: by a skip that says
// what, or, where SIMCCL_REQUIRE lists it (SIMCCL_REQUIRE=cuda,nccl,ib), by a
// failure. A machine that is there to run such tests so cannot pass without.
package require

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// Names that SIMCCL_REQUIRE knows; others in it are an error of the user who wrote
// them.
var names = []string{"cuda", "nccl", "ib", "rxe", "shared", "chromium"}

// listed reports whether SIMCCL_REQUIRE requires what.
func listed(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("SIMCCL_REQUIRE"), ","), what)
}

// Skip ends a test for want of what: why reports what was looked for.
func Skip(t testing.TB, what string, why any) {
	t.Helper()
	for _, n := range strings.Split(os.Getenv("SIMCCL_REQUIRE"), ",") {
		if n != "" && !slices.Contains(names, n) {
			t.Fatalf("SIMCCL_REQUIRE=%s: there is no %q; write some of %s", os.Getenv("SIMCCL_REQUIRE"), n,
				strings.Join(names, ","))
		}
	}
	if listed(what) {
		t.Fatalf("SIMCCL_REQUIRE requires %s: %v", what, why)
	}
	t.Skipf("needs %s: %v", what, why)
}

// Hardware ends a test whose hardware or library is absent, which err indicates by
// matching absent (exec.ErrUnsupported), and fails it for any other error.
func Hardware(t testing.TB, what string, err, absent error) {
	t.Helper()
	if errors.Is(err, absent) {
		Skip(t, what, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
