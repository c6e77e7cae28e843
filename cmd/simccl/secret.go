package main

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

	"github.com/simccl/simccl/real/bootstrap"
	"github.com/spf13/pflag"
)

// secretFlags say what the processes of a run share and strangers do not know.
type secretFlags struct{ file, word string }

func (s *secretFlags) register(f *pflag.FlagSet) {
	f.StringVar(&s.file, "secret-file", "", "`FILE` with the secret that all ranks share (default $SIMCCL_SECRET, else a key of this user's, made at first use)")
	f.StringVar(&s.word, "secret", "", "`WORD` in place of it; every user of the host can read it in the list of processes")
}

// secret is what all processes of a run know.
type secret []byte

// key makes the secret of one purpose: ranks of another job that meet by mistake
// do not join.
func (s secret) key(purpose string) (out [16]byte) {
	m := hmac.New(sha256.New, s)
	m.Write([]byte("simccl " + purpose))
	copy(out[:], m.Sum(nil))
	return out
}

// secretName is the variable that holds a secret. --no-env does not hide it:
// that option is about settings, and leaving a secret out would open the door.
const secretName = "SIMCCL_SECRET"

// read finds the secret: --secret-file, --secret, SIMCCL_SECRET, or this user's
// own key. loopback says that all processes are on this host.
func (s *secretFlags) read(a *app, loopback bool) (secret, error) {
	switch {
	case s.file != "" && s.word != "":
		return nil, usage("--secret and --secret-file: write one of them")
	case s.file != "":
		b, err := os.ReadFile(a.path(s.file))
		if err != nil {
			return nil, input(fmt.Errorf("--secret-file: %w", err))
		}
		if b = bytes.TrimSpace(b); len(b) == 0 {
			return nil, input(fmt.Errorf("--secret-file %s: the file is empty; `openssl rand -hex 16` writes a secret", s.file))
		}
		return b, nil
	case s.word != "":
		a.warn("--secret stands in the list of processes, where every user of this host can read it; write --secret-file FILE or set %s", secretName)
		return secret(s.word), nil
	}
	sub := *a
	sub.noEnv = false
	if v, _ := sub.getenv(secretName); v != "" {
		return secret(v), nil
	}
	return userKey(loopback)
}

// userKey reads this user's key, and makes one where there is none: in the
// configuration directory, which hosts of a cluster mostly share, or, where all
// processes are on this host, in the directory of temporary files.
func userKey(loopback bool) (secret, error) {
	var tried []error
	dir, err := configDir()
	if err == nil {
		var key secret
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
	return nil, usage("the ranks need a common secret, and there is no place for a key of this user's (%v); set %s to the same random word for all, as `openssl rand -hex 16` prints one, or write --secret-file FILE",
		errors.Join(tried...), secretName)
}

// configDir is this user's, if there is a home: none is made.
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

// keyIn reads the key in a directory, or makes both. Of several processes that
// make it at once, one wins: a link appears whole, or not at all.
func keyIn(dir string) (secret, error) {
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

// readKey reads a key that nobody else can have written or read.
func readKey(name string) (secret, error) {
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

// private refuses what is a link, belongs to another user or is open to others.
func private(name string) error {
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	kind, open, want := "file", fs.FileMode(0o077), fs.FileMode(0o600)
	if info.IsDir() { // who may write there may replace the key
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

// secretHint says what to do where the secrets differ.
func secretHint(err error) error {
	if !errors.Is(err, bootstrap.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w; all ranks need the same %s or --secret-file, or one home directory, where each user's key is", err, secretName)
}
