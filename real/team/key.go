package team

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/simccl/simccl/real/internal/bootstrap"
)

// Secret is the key material that all processes of a run share; other keys derive from it (Key).
type Secret []byte

// Key derives the key for one purpose: ranks of another job that connect by mistake do not join.
func (s Secret) Key(purpose string) (out [16]byte) {
	m := hmac.New(sha256.New, s)
	m.Write([]byte("simccl " + purpose))
	copy(out[:], m.Sum(nil))
	return out
}

// SecretVariable is the environment variable that holds a secret.
const SecretVariable = "SIMCCL_SECRET"

// userKey reads this user's key, and creates one if there is none: in the configuration directory, which
// hosts of a cluster mostly share, or, if all processes are on this host (loopback), in the directory of
// temporary files.
func userKey(loopback bool) (Secret, error) {
	var tried []error
	dir, err := configDir()
	if err == nil {
		var key Secret
		if key, err = keyIn(filepath.Join(dir, "simccl")); err == nil {
			return key, nil
		}
	}
	tried = append(tried, err)
	if loopback {
		key, err := keyIn(filepath.Join(os.TempDir(), fmt.Sprint("simccl-", os.Getuid())))
		if err == nil {
			return key, nil
		}
		tried = append(tried, err)
	}
	return nil, Refuse("the ranks need a common secret, and there is no place for a key of this user's "+
		"(%v); set %s to the same random word for all, as `openssl rand -hex 16` prints one, or write "+
		"--secret-file FILE",
		errors.Join(tried...), SecretVariable)
}

// configDir returns this user's configuration directory if there is a home; it creates no home.
func configDir() (string, error) {
	home, err := os.UserHomeDir()
	if err == nil {
		_, err = os.Stat(home)
	}
	if err != nil {
		return "", err
	}
	return os.UserConfigDir()
}

// keyIn reads the key in a directory, or creates both. If several processes create it at once, one wins: a
// link appears whole, or not at all.
func keyIn(dir string) (Secret, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "key")
	key, err := readKey(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	fresh, err := bootstrap.NewSecret()
	if err != nil {
		return nil, err
	}
	var tail [8]byte
	_, _ = rand.Read(tail[:]) // never fails
	temporary := filepath.Join(dir, ".key."+hex.EncodeToString(tail[:]))
	defer os.Remove(temporary)
	if err := os.WriteFile(temporary, []byte(hex.EncodeToString(fresh[:])+"\n"), 0o600); err != nil {
		return nil, err
	}
	if err := os.Link(temporary, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(name)
}

// readKey reads a key that no other user can have written or read.
func readKey(name string) (Secret, error) {
	if _, err := os.Lstat(name); err != nil {
		return nil, err
	}
	if err := private(name); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) < 16 {
		return nil, fmt.Errorf("%s: no key of 32 hexadecimal digits; remove the file", name)
	}
	return key, nil
}

// private returns an error for a file that is a link, belongs to another user or is accessible to others.
func private(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	kind, open, want := "file", fs.FileMode(0o077), fs.FileMode(0o600)
	if info.IsDir() { // a user who may write there may replace the key
		kind, open, want = "directory", 0o022, 0o700
	}
	switch {
	case !info.IsDir() && !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a plain %s", name, kind)
	case !ours(info):
		return fmt.Errorf("%s: the %s belongs to another user", name, kind)
	case info.Mode().Perm()&open != 0:
		return fmt.Errorf("%s: the %s is open to other users; chmod %o", name, kind, want)
	}
	return nil
}

// Given lists the sources of a Secret that precede this user's own key.
type Given struct {
	File string // a file that holds it
	// the secret itself; every user of the host can read it in the list of processes
	Word   string
	Read   func(file string) ([]byte, error) // reads File
	Getenv func(name string) (string, bool)  // returns SecretVariable
	Warn   func(format string, args ...any)  // called if Word is used
}

// Find returns the secret of the file, the word, SecretVariable or this user's own key; loopback says that
// all processes are on this host.
func (g *Given) Find(loopback bool) (Secret, error) {
	switch {
	case g.File != "" && g.Word != "":
		return nil, Refuse("--secret and --secret-file: write one of them")
	case g.File != "":
		b, err := g.Read(g.File)
		if err != nil {
			return nil, Input(fmt.Errorf("--secret-file: %w", err))
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			return nil,
				Input(fmt.Errorf("--secret-file %s: the file is empty; `openssl rand -hex 16` writes a "+
					"secret", g.File))
		}
		return b, nil
	case g.Word != "":
		g.Warn("--secret is visible in the process list to every user of this host; write --secret-file "+
			"FILE or set %s", SecretVariable)
		return Secret(g.Word), nil
	}
	if v, _ := g.Getenv(SecretVariable); v != "" {
		return Secret(v), nil
	}
	return userKey(loopback)
}
