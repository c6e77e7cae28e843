package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder replaces a test so that its failures can be checked.
type recorder struct {
	testing.TB
	text   strings.Builder
	failed bool
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.text.WriteString(strings.TrimSpace(format))
	for _, a := range args {
		if b, ok := a.([]byte); ok {
			r.text.Write(b)
		}
	}
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }
func (r *recorder) Logf(string, ...any)               {}

func TestDifferenceFailsWithADiff(t *testing.T) {
	if Updating() {
		t.Skip("goldens are being rewritten")
	}
	file := filepath.Join(t.TempDir(), "want.txt")
	if err := os.WriteFile(file, []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var r recorder
	Text(&r, file, "one\ntwo\n")
	if r.failed {
		t.Fatal("equal text failed")
	}
	Text(&r, file, "one\nTWO\n")
	if !r.failed || !strings.Contains(r.text.String(), "-two") || !strings.Contains(r.text.String(), "+TWO") {
		t.Fatalf("no diff: %s", r.text.String())
	}
	r = recorder{}
	Text(&r, file+".absent", "x")
	if !r.failed {
		t.Fatal("a missing golden passed")
	}
}

func TestUpdateWritesTheFile(t *testing.T) {
	t.Setenv("SIMCCL_UPDATE", "1")
	file := filepath.Join(t.TempDir(), "new", "want.txt")
	Text(t, file, "made\n")
	if got, err := os.ReadFile(file); err != nil || string(got) != "made\n" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestOwnReferencesAreWhole(t *testing.T) {
	refs := own(t)
	nvls, env := 0, 0
	for _, r := range refs {
		if r.Multicast {
			nvls++
		}
		if len(r.Env) > 0 {
			env++
		}
		if r.Nodes < 1 || r.Machine+".xml" != filepath.Base(r.Topo) {
			t.Errorf("%+v", r)
		}
	}
	if len(refs) != 157 || nvls == 0 || env == 0 {
		t.Errorf("%d references, %d with multicast, %d with settings", len(refs), nvls, env)
	}
	refs[0].Load(t)
	for _, key := range []string{"system", "paths", "graphs", "graphsFinal", "channels", "tuning"} {
		if _, ok := refs[0].Doc[key]; !ok {
			t.Errorf("%s has no %s", refs[0].Name, key)
		}
	}
}

// TestReaderThatPassesOverNumbersFails: a reader that refuses a damaged number at its line passes; one that
// reads it, or names another line, fails.
func TestReaderThatPassesOverNumbersFails(t *testing.T) {
	read := func(at int, refuses bool) func(string) error {
		return func(text string) error {
			if i := strings.Index(text, "4x2"); i >= 0 && refuses {
				return fmt.Errorf("f:%d:1: no number", at+strings.Count(text[:i], "\n"))
			}
			return nil
		}
	}
	for _, c := range []struct {
		read func(string) error
		fail bool
	}{{read(1, true), false}, {read(1, false), true}, {read(2, true), true}} {
		var r recorder
		Damage(&r, Input{Name: "f", Text: "a 1\nb 22\n", Read: c.read})
		if r.failed != c.fail {
			t.Errorf("fails %t, want %t: %s", r.failed, c.fail, r.text.String())
		}
	}
}
