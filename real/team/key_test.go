package team

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestKeysAreNoFunctionOfTheAddress: two users who start the same command line
// have different keys, and so have two jobs of one user.
func TestKeysAreNoFunctionOfTheAddress(t *testing.T) {
	seen := map[[16]byte]string{}
	for _, user := range []string{"one", "two"} {
		t.Setenv("HOME", t.TempDir())
		t.Setenv("XDG_CONFIG_HOME", "")
		for _, root := range []string{"127.0.0.1:29600", "127.0.0.1:29601"} {
			p := Finder{Rank: 1, NRanks: 2, Root: root, Getenv: func(string) (string, bool) {
				return "", false
			}, Secret: userKey}
			at, err := p.Find()
			if err != nil {
				t.Fatal(err)
			}
			who := user + " at " + root
			if other, double := seen[at.id.Secret]; double || at.id.Secret == [16]byte{} {
				t.Errorf("%s has the key of %s", who, other)
			}
			seen[at.id.Secret] = who
		}
	}
}

// TestUserKeyIsPrivate: one key for all who ask at once, in a file that only its
// user reads; a file or directory that others could have touched is refused.
func TestUserKeyIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "simccl")
	keys := make([]Secret, 16)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			var err error
			if keys[i], err = keyIn(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, k := range keys {
		if !bytes.Equal(k, keys[0]) || len(k) != 16 {
			t.Fatalf("keys %x and %x", k, keys[0])
		}
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Errorf("the directory holds %v, %v", list, err)
	}
	name := filepath.Join(dir, "key")
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for _, c := range []struct {
		name string
		mode os.FileMode
		want string
	}{{name, 0o644, "chmod 600"}, {dir, 0o777, "chmod 700"}} {
		if err := os.Chmod(c.name, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := keyIn(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s with mode %o: %v", c.name, c.mode, err)
		}
		if err := os.Chmod(c.name, c.mode&0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(name, name+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(name+".moved", name); err != nil {
		t.Fatal(err)
	}
	if _, err := keyIn(dir); err == nil {
		t.Error("a link is read")
	}
}

// TestWithoutAHome: ranks of one host share a key among temporary files; ranks
// of several need to be given a secret, and no home is made.
func TestWithoutAHome(t *testing.T) {
	home := filepath.Join(t.TempDir(), "none")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("TMPDIR", t.TempDir())
	if k, err := userKey(true); err != nil || len(k) != 16 {
		t.Errorf("one host: %x, %v", k, err)
	}
	var refusal *Refusal
	if k, err := userKey(false); !errors.As(err, &refusal) || refusal.Kind != BadArgument ||
		!strings.Contains(err.Error(), "set SIMCCL_SECRET") {
		t.Errorf("several hosts: %x, %v", k, err)
	}
	if _, err := os.Stat(home); err == nil {
		t.Error("a home was made")
	}
}
