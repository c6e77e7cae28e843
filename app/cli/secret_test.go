package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/real/team"
)

// secretIn reads the secret of a command line with the given variables.
func secretIn(t *testing.T, f Secret, noEnv bool, environ ...string) (team.Secret, string, error) {
	t.Helper()
	var errs bytes.Buffer
	s, err := f.Read(&App{Process: process.Process{Err: &errs, Environ: environ, NoEnv: noEnv}}, true)
	return s, errs.String(), err
}

// TestWhereSecretsComeFrom: a file takes precedence over the variable, --no-env hides no
// secret, and without any there is this user's key.
func TestWhereSecretsComeFrom(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("of the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags Secret
		noEnv bool
		want  string
		warns bool
	}{
		{"file", Secret{File: file}, false, "of the file", false},
		{"variable", Secret{}, false, "of the variable", false},
		{"variable with --no-env", Secret{}, true, "of the variable", false},
		{"word", Secret{Word: "of the flag"}, true, "of the flag", true},
	} {
		got, said, err := secretIn(t, c.flags, c.noEnv, "SIMCCL_SECRET=of the variable")
		if err != nil || string(got) != c.want || strings.Contains(said, "process list") != c.warns {
			t.Errorf("%s: %q, says %q: %v", c.name, got, said, err)
		}
	}
	own, _, err := secretIn(t, Secret{}, true)
	if err != nil || len(own) != 16 {
		t.Fatalf("this user's key: %x, %v", own, err)
	}
	if empty, _, err := secretIn(t, Secret{}, false, "SIMCCL_SECRET="); err != nil ||
		!bytes.Equal(empty, own) {
		t.Errorf("an empty variable gives %x, %v", empty, err)
	}
	t.Setenv("HOME", t.TempDir())
	if other, _, err := secretIn(t, Secret{}, true); err != nil || bytes.Equal(other, own) {
		t.Errorf("another user's key: %x, %v", other, err)
	}
}
