package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/dev/reductions"
)

// A meeting is what tests of a package do without a mutant, as a file beside the mutants' keeps it, so that a
// later call runs none again whose package has not changed: those of all importers take a quarter of an hour.
type meeting struct {
	Suite, Pkg string
	Which      which
	Files      string // the package's, in a hash
	Fails      bool
	Meets      map[int][]string
	Usual      time.Duration
}

type meetings struct{ *reductions.Resumed[meeting] }

// find is what an earlier call saw of tests of a package, nil where it has changed since.
func (k *meetings) find(s *suite, pkg string, of which) *meeting {
	if k == nil {
		return nil
	}
	want := meeting{Suite: filepath.Base(s.dir), Pkg: pkg, Which: of, Files: filesOf(s.m.Packages[pkg].Dir)}
	for i := range slices.Backward(k.All) {
		m := &k.All[i]
		if m.Suite == want.Suite && m.Pkg == pkg && m.Which == of && m.Files == want.Files {
			return m
		}
	}
	return nil
}

func (k *meetings) keep(s *suite, pkg string, of which, m *mode) error {
	if k == nil {
		return nil
	}
	return k.Add(&meeting{Suite: filepath.Base(s.dir), Pkg: pkg, Which: of,
		Files: filesOf(s.m.Packages[pkg].Dir), Fails: m.fails, Meets: m.meets, Usual: m.usual})
}

// filesOf is a hash of the files of a package and of its testdata, by size and time.
func filesOf(dir string) string {
	h := sha256.New()
	_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && filepath.Dir(name) == dir && d.Name() != "testdata":
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		if i, err := d.Info(); err == nil {
			fmt.Fprintln(h, name, i.Size(), i.ModTime().UnixNano())
		}
		return nil
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// meetingsOf reads what the helper notes: a mutant a line, and the test that met it where one is known.
func meetingsOf(text string) map[int][]string {
	meets := map[int][]string{}
	for line := range strings.Lines(text) {
		id, test, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.Atoi(id)
		if tests := meets[n]; test != "" && !slices.Contains(tests, test) {
			meets[n] = append(tests, test)
		} else if tests == nil {
			meets[n] = []string{}
		}
	}
	return meets
}
