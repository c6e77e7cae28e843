// Package require ends tests on machines without the required hardware or software: by a skip that names it,
// or by a failure if SIMCCL_REQUIRE lists it (SIMCCL_REQUIRE=cuda,nccl,ib), so that a machine meant for such
// tests cannot pass without running them. MPIEnv is the environment of those that start mpirun.
package require

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// names lists the valid words of SIMCCL_REQUIRE; others fail the test.
var names = []string{"cuda", "nccl", "ib", "rxe", "shared", "chromium"}

// Skip skips a test that needs something absent, or fails it if it is required; why is what was found
// instead.
func Skip(t testing.TB, what string, why any) {
	t.Helper()
	for _, n := range strings.Split(os.Getenv("SIMCCL_REQUIRE"), ",") {
		if n != "" && !slices.Contains(names, n) {
			t.Fatalf("SIMCCL_REQUIRE=%s: there is no %q; write some of %s", os.Getenv("SIMCCL_REQUIRE"), n,
				strings.Join(names, ","))
		}
	}
	if slices.Contains(strings.Split(os.Getenv("SIMCCL_REQUIRE"), ","), what) {
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
