package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/simccl/simccl/dev/golist"
)

// mutated is the text of a file with the change.
func mutated(text []byte, p *Place) []byte {
	return bytes.Join([][]byte{text[:p.offset], []byte(p.New), text[p.end:]}, nil)
}

// test runs the tests that may notice a mutant until one does.
func test(ctx context.Context, m *golist.Module, p *Place, seconds float64) (*row, error) {
	begin := time.Now()
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(p.File)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, filepath.Base(p.File))
	if err := os.WriteFile(file, mutated(text, p), 0o644); err != nil {
		return nil, err
	}
	original, err := filepath.Abs(p.File)
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: file}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		return nil, err
	}
	name := m.Path
	if d := filepath.ToSlash(filepath.Dir(p.File)); d != "." {
		name += "/" + d
	}
	r := &row{Place: *p, Verdict: forgotten}
	err = r.circles(ctx, m, name, overlay, seconds)
	r.Seconds = math.Round(time.Since(begin).Seconds())
	return r, err
}

// circles runs the package's tests, short and whole, and the short ones of its importers, ring by ring.
func (r *row) circles(ctx context.Context, m *golist.Module, name, overlay string, seconds float64) error {
	if err := run(ctx, 10*time.Minute, "build", "-overlay", overlay, name); err != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		r.Verdict = unusable
		return nil
	}
	own := m.Packages[name].Tested()
	begin := time.Now()
	for far, ring := range m.Rings([]string{name}) {
		var runs [][]string
		switch {
		case far == 0 && own:
			runs = [][]string{{"-short", name}, {name}}
		case far == 0:
			begin = time.Now()
		case time.Since(begin).Seconds() > seconds:
			return nil
		case len(ring) > 0:
			runs = [][]string{append([]string{"-short"}, ring...)}
		}
		for _, args := range runs {
			r.Verdict = survives
			limit := 20 * time.Minute
			if far > 0 {
				limit = time.Duration((seconds - time.Since(begin).Seconds() + 1) * float64(time.Second))
			}
			err := run(ctx, limit, append([]string{"test", "-overlay", overlay, "-vet=off", "-failfast",
				"-timeout", "10m", "-exec", bounded}, args...)...)
			switch failed := (*failure)(nil); {
			case ctx.Err() != nil:
				return context.Canceled
			case errors.Is(err, context.DeadlineExceeded):
				return nil // the importers' time is over
			case errors.As(err, &failed):
				r.Verdict, r.By = dies, failed.by
				return nil
			case err != nil:
				return err
			}
		}
		if far == 0 {
			begin = time.Now()
		}
	}
	return nil
}

// bounded gives a test so much address space (KiB): a mutant may allocate without an end.
const bounded = `sh -c 'ulimit -v 16000000; exec "$0" "$@"'`

// A failure is a run of the go command that noticed the mutant.
type failure struct{ by string }

func (f *failure) Error() string { return f.by }

var failing = regexp.MustCompile(`(?m)^(?:\s*--- FAIL: (\S+)|panic: (.*)|FAIL\t(\S+))`)

// run runs the go command. Random tests draw the same for each mutant.
func run(ctx context.Context, limit time.Duration, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "RAPID_SEED=1")
	cmd.WaitDelay = 10 * time.Second
	// The command's own end lets it end its tests, which a kill would leave behind.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		return err
	}
	if args[0] == "build" {
		return fmt.Errorf("%s", out)
	}
	by := "?"
	if f := failing.FindSubmatch(out); f != nil {
		by = strings.TrimSpace(string(bytes.Join(f[1:], nil)))
	}
	return &failure{by}
}
