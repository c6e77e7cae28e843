package sweep

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/simccl/simccl/internal/fail"
)

// claims are files by which processes share points of uneven cost: each takes batches of
// keys by creating a file that must not exist (O_EXCL is atomic on NFS v3 and later,
// open(2)).
type claims struct {
	dir  string
	mine map[string]*os.File
	not  map[string]bool
}

const (
	// batchDigits of a key name its batch: 256 of them.
	batchDigits = 2
	// stale is the time without renewal after which a claim expires
	stale = 10 * time.Minute
)

func newClaims(dir string) (*claims, error) {
	c := &claims{dir: filepath.Join(dir, "claims"), mine: map[string]*os.File{}, not: map[string]bool{}}
	return c, fail.Input(os.MkdirAll(c.dir, 0o777))
}

// take reports whether this process has the batch of a key, taking it if it is free.
func (c *claims) take(k Key) (bool, error) {
	batch := string(k[:batchDigits])
	now := time.Now()
	if f := c.mine[batch]; f != nil {
		return true, fail.Input(os.Chtimes(f.Name(), now, now))
	}
	if c.not[batch] {
		return false, nil
	}
	name := filepath.Join(c.dir, batch)
	for range 2 {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			c.mine[batch] = f
			return true, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return false, fail.Input(err)
		}
		st, err := os.Stat(name)
		if err == nil && now.Sub(st.ModTime()) < stale {
			break
		}
		// Two that find it stale rename it apart; one of them succeeds.
		if err := os.Rename(name, name+".stale"); err != nil {
			break
		}
	}
	c.not[batch] = true
	return false, nil
}

// close releases the claims, so that a process that continues the sweep may take them.
func (c *claims) close() {
	for _, f := range c.mine { //lint:sorted each file by itself
		_ = f.Close()
		_ = os.Remove(f.Name())
	}
}
