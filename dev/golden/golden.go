// Package golden compares what a test made with what a file holds, rewrites
// the file when asked to, finds the reference decisions of NCCL, and damages the numbers of files, which
// readers must refuse then.
//
//	go test ./topo/xml -update            rewrites the goldens of one package
//	SIMCCL_UPDATE=1 go test ./...         rewrites them all (make golden)
//
// The flag exists only in packages whose tests import this one; `go test ./...
// -update` fails in the others, hence the variable. Reference decisions
// (References) are NCCL's and never rewritten.
package golden

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/simccl/simccl/internal/require"
)

var update = flag.Bool("update", false, "rewrite this package's golden files with what the tests made")

// Updating reports whether goldens are to be rewritten instead of compared.
func Updating() bool { return *update || os.Getenv("SIMCCL_UPDATE") == "1" }

// Text compares got with the file (relative to the test's package directory)
// and fails with a unified diff where they differ. When updating, it writes
// the file, and says so.
func Text(t testing.TB, file, got string) {
	t.Helper()
	Bytes(t, file, []byte(got))
}

// Bytes is Text for data that need not be text; its diff is in lines as well.
func Bytes(t testing.TB, file string, got []byte) {
	t.Helper()
	want, err := os.ReadFile(file)
	if err == nil && bytes.Equal(want, got) {
		return
	}
	if Updating() {
		write(t, file, got)
		return
	}
	if err != nil {
		t.Fatalf("no golden to compare with: %v; -update writes it", err)
	}
	t.Errorf("%s differs from what the test made; if that is right, run with -update and say why in the "+
		"commit\n%s",
		file, diff.Diff(file, want, "got", got))
}

// Few is a list, with -short every n-th of it, from the first: short tests keep the rule, the full ones the
// breadth.
func Few[T any](list []T, n int) []T {
	if !testing.Short() {
		return list
	}
	var few []T
	for i := 0; i < len(list); i += n {
		few = append(few, list[i])
	}
	return few
}

func write(t testing.TB, file string, got []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, got, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("wrote %s", file)
}

// root finds the directory of go.mod once, upwards from the test's directory.
var root = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", os.ErrNotExist
		}
		dir = up
	}
})

// Root joins elem to the module's root directory.
func Root(t testing.TB, elem ...string) string {
	t.Helper()
	dir, err := root()
	if err != nil {
		t.Fatalf("looking for go.mod above the test: %v", err)
	}
	return filepath.Join(append([]string{dir}, elem...)...)
}

// Shared joins elem to the background directory beside the checkout
// (../shared), which holds other people's topologies and more goldens than the
// project may carry. Where it is absent the test is skipped: the project's own
// fixtures make the claim without it. With SIMCCL_REQUIRE=shared that is a
// failure instead.
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{Root(t), "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		require.Skip(t, "shared", filepath.Join(append([]string{"../shared"}, elem...)...)+
			", background material beside the checkout, is absent")
	}
	return path
}
