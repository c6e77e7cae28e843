package sweep

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
)

// Line is one point's result, a line of a part file.
type Line struct {
	Key    Key             `json:"key"`
	Point  json.RawMessage `json:"point"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	// Provenance: not part of the result.
	Version string  `json:"version"`
	CPU     float64 `json:"cpu_s"`
	Host    string  `json:"host"`
	PID     int     `json:"pid"`
}

// Manifest is DIR/sweep.json: which sweep the results of a folder belong to.
type Manifest struct {
	Format  int    `json:"sweep"`
	Name    string `json:"name,omitempty"`
	Version string `json:"version"` // of the program that began it
	NCCL    string `json:"ncclVersion"`
	Points  int    `json:"points"` // those that the conditions keep
	Digest  string `json:"digest"` // of the keys of all points
	Schema  []Col  `json:"columns"`
	// Spec is the file in the folder that has the specification. Classes are the machine
	// classes of the program, Files what points name, Settings the NCCL variables
	// from outside the specification: all enter the keys.
	Spec     string   `json:"spec"`
	Classes  []Source `json:"classes"`
	Files    []Source `json:"files,omitempty"`
	Settings []string `json:"settings,omitempty"`
}

// Source is a file on which results depend, with the hash of its content.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Col describes a column of results.
type Col struct {
	Name string `json:"name"`
	Type string `json:"type"`
	Unit string `json:"unit,omitempty"`
}

const (
	manifestFile = "sweep.json"
	specFile     = "spec.yaml" // a copy; YAML reads JSON, too
)

// begin writes a folder's manifest, or compares it with the one that is there.
func begin(dir string, m *Manifest, spec []byte) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fail.Input(err)
	}
	name := filepath.Join(dir, manifestFile)
	old, err := readManifest(name)
	switch {
	case err == nil && old.Digest == m.Digest:
		return keepSpec(dir, spec)
	case err == nil:
		return fail.File("%s: the folder holds another sweep (%d points, ours has %d, or files have "+
			"changed); write another --out", name, old.Points, m.Points)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := keepSpec(dir, spec); err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := newfile.Create(name)
	if err != nil {
		return fail.Input(err)
	}
	_, err = f.Write(append(text, '\n'))
	return fail.Input(f.Finish(err))
}

// keepSpec copies the specification, whose prices may have changed: they are in no key.
func keepSpec(dir string, spec []byte) error {
	name := filepath.Join(dir, specFile)
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, spec) {
		return nil
	}
	return fail.Input(newfile.Write(name, spec))
}

func readManifest(name string) (*Manifest, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil || m.Format != FormatVersion {
		return nil, fail.File("%s: no manifest of a sweep of format %d", name, FormatVersion)
	}
	return m, nil
}

// part is a process's own file of results. Lines are appended whole: one write each.
type part struct {
	mu      sync.Mutex
	f       *os.File
	sync    time.Time
	syncing sync.WaitGroup
	failed  atomic.Pointer[error] // of a sync
}

// notName matches the characters of a host's name that are replaced by _ in the name of a part file.
var notName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_.-]`) })

// openPart creates the file of this process in shard i of n.
func openPart(dir string, i, n int, host string, pid int) (*part, error) {
	name := filepath.Join(dir, fmt.Sprintf("part-%dof%d-%s-%d.jsonl", i, n, notName().ReplaceAllString(host,
		"_"), pid))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, fail.Input(err)
	}
	p := &part{f: f}
	// A process of the same number may have been killed in the middle of a line.
	if st, err := f.Stat(); err == nil && st.Size() > 0 {
		var last [1]byte
		if _, err := f.ReadAt(last[:], st.Size()-1); err == nil && last[0] != '\n' {
			if _, err := f.Write([]byte{'\n'}); err != nil {
				return nil, errors.Join(fail.Input(err), f.Close())
			}
		}
	}
	return p, nil
}

// syncEvery is the interval at which results are flushed to disk (fsync).
const syncEvery = 2 * time.Second

func (p *part) add(l *Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	p.mu.Lock()
	defer p.mu.Unlock()
	if n, err := p.f.Write(text); err != nil {
		if n > 0 { // a torn line must not swallow the next one
			_, _ = p.f.Write([]byte{'\n'})
		}
		return fail.Input(err)
	}
	if now := time.Now(); now.Sub(p.sync) > syncEvery {
		p.sync = now
		p.syncing.Go(func() { // points go on meanwhile
			if err := p.f.Sync(); err != nil {
				p.failed.Store(&err)
			}
		})
	}
	if err := p.failed.Load(); err != nil {
		return fail.Input(*err)
	}
	return nil
}

func (p *part) close() error {
	p.syncing.Wait()
	return fail.Input(errors.Join(p.f.Sync(), p.f.Close()))
}

// parts lists the part files of folders, in order.
func parts(dirs ...string) ([]string, error) {
	var out []string
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			return nil, fail.Input(err)
		}
		list, err := filepath.Glob(filepath.Join(dir, "part-*.jsonl"))
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	slices.Sort(out)
	return out, nil
}

// read calls each for every whole line of a part file. A line that was torn (the last of
// a process that was killed, or before an empty disk) is counted, not an error.
func read(name string, each func(l *Line) error) (torn int, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, fail.Input(err)
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<16)
	for {
		text, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return torn, fail.Input(err)
		}
		end := err != nil
		if line := bytes.TrimSpace(text); len(line) > 0 {
			var l Line
			if end || json.Unmarshal(line, &l) != nil || len(l.Key) != 64 || strings.Trim(string(l.Key),
				"0123456789abcdef") != "" {
				torn++
			} else if err := each(&l); err != nil {
				return torn, err
			}
		}
		if end {
			return torn, nil
		}
	}
}
