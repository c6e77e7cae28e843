package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/simccl/simccl/dev/golist"
)

// A suite is the tests of packages, compiled with one mutant, or with all that are switched.
type suite struct {
	m        *golist.Module
	o        *options
	dir      string // of its files
	switched bool
	places   map[string]int    // by package, their number
	compiled map[string]*tests // by package
	known    *meetings         // what earlier calls saw, nil where none is kept
	memory   int               // that a test may take
}

type tests struct {
	program string // empty until one is needed
	none    bool   // they do not compile
	modes   map[which]*mode
}

// which tests of a package run: the whole, the short ones, or of these the conversations alone.
type which int

const (
	whole which = iota
	short
	stories
)

// A mode of tests without a mutant: which ones it meets, and how long it takes a processor.
type mode struct {
	fails bool             // or takes longer than importers may
	meets map[int][]string // by mutant, tests that were seen to
	usual time.Duration
}

// newSuite makes a suite. The names of a switched one's files, which its programs have in them, are by the
// places, so that a later call of the same draws finds what is compiled in the cache of the go command.
func newSuite(m *golist.Module, o *options, places []*Place) (*suite, error) {
	switched := places != nil
	dir, err := "", error(nil)
	if switched {
		h := sha256.New()
		for _, p := range places {
			fmt.Fprintln(h, m.Packages[p.pkg(m)].Dir, p.Key())
		}
		dir = filepath.Join(os.TempDir(), fmt.Sprintf("mutants-%x", h.Sum(nil)[:8]))
		err = os.MkdirAll(dir, 0o755)
	} else {
		dir, err = os.MkdirTemp("", "mutants-")
	}
	s := &suite{m: m, o: o, dir: dir, switched: switched, places: map[string]int{},
		compiled: map[string]*tests{}, known: o.known, memory: most}
	for _, p := range places {
		s.places[p.pkg(m)]++
	}
	return s, err
}

// replace puts texts in the places of files.
func (s *suite) replace(texts map[string]string) error {
	to := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		original, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		to[original] = s.file(fmt.Sprintf("%d.go", len(to)))
		if err := os.WriteFile(to[original], []byte(texts[name]), 0o644); err != nil {
			return err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": to})
	if err != nil {
		return err
	}
	return os.WriteFile(s.file("overlay.json"), list, 0o644)
}

func (s *suite) file(name string) string { return filepath.Join(s.dir, name) }

func (s *suite) close() error { return os.RemoveAll(s.dir) }

// goes runs the go command with the suite's files; wrong is what it says where it fails.
func (s *suite) goes(ctx context.Context, command string, args ...string) (wrong, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{command, "-overlay", s.file("overlay.json")},
		args...)...)
	out, err := cmd.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return nil, context.Canceled
	case errors.As(err, &exit):
		return fmt.Errorf("%s", out), nil
	}
	return nil, err
}

// of are the tests of a package.
func (s *suite) of(pkg string) *tests {
	if s.compiled[pkg] == nil {
		s.compiled[pkg] = &tests{modes: map[which]*mode{}}
	}
	return s.compiled[pkg]
}

// compile compiles the tests of a package, once.
func (s *suite) compile(ctx context.Context, t *tests, pkg string) error {
	if t.program != "" || t.none {
		return nil
	}
	program := s.file("of" + strings.ReplaceAll(strings.TrimPrefix(pkg, s.m.Path), "/", "-") + ".test")
	wrong, err := s.goes(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-o", program, pkg)
	if err != nil {
		return err
	}
	t.program = program
	if t.none = wrong != nil; t.none && s.switched {
		fmt.Fprintf(os.Stderr, "mutants: tests of %s do not compile with the switches: %v\n", pkg, wrong)
	}
	return nil
}

// usual runs tests without a mutant, once. Those of importers may take so long as importers may in all.
func (s *suite) usual(ctx context.Context, t *tests, pkg string, of which, far int) (*mode, error) {
	if t.modes[of] != nil {
		return t.modes[of], nil
	}
	m := &mode{}
	t.modes[of] = m
	if kept := s.known.find(s, pkg, of); kept != nil {
		*m = mode{fails: kept.Fails, meets: kept.Meets, usual: kept.Usual}
		return m, nil
	}
	if err := os.WriteFile(s.file("met"), nil, 0o600); err != nil {
		return nil, err
	}
	a := asked{id: -1, limit: 10 * time.Minute}
	if far > 0 {
		a.most = s.o.seconds
	}
	by, took, err := s.run(ctx, t, pkg, of, a)
	if err != nil || t.none {
		return m, err
	}
	met, err := os.ReadFile(s.file("met"))
	if err != nil {
		return nil, err
	}
	*m = mode{fails: by != "", meets: meetingsOf(string(met)), usual: took}
	if by != "" && (a.most == 0 || took.Seconds() < 0.9*a.most) {
		fmt.Fprintf(os.Stderr, "mutants: %s fails without any: %s\n", pkg, by)
	}
	return m, s.known.keep(s, pkg, of, m)
}

// asked is what is asked of tests: with a mutant, 0 for none; of these names alone, or without these, as
// go test -run and -skip have them; for how long, and for so many seconds of a processor, 0 for any.
type asked struct {
	id         int
	only, skip string
	limit      time.Duration
	most       float64
}

// bounded gives a test so many seconds of a processor.
const bounded = `ulimit -t "$1"; shift; exec "$0" "$@"`

// most is the memory that a test may take, for a mutant may allocate without an end. Limits of the system
// would count what is reserved: 48 GB by stacks of the fake CUDA driver, all there is by a sanitizer.
const most = 12 << 30

// watch kills a program that takes more.
func watch(ctx context.Context, p *os.Process, most int) {
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
		var size, resident int
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid))
		if err != nil {
			return // no Linux
		}
		if fmt.Sscan(string(text), &size, &resident); resident > most/os.Getpagesize() {
			_ = p.Kill()
		}
	}
}

var failing = regexp.MustCompile(`(?m)^(?:\s*--- FAIL: (\S+)|panic: (.*))`)

// ofRapid makes random tests draw the same for each mutant, and end at the first failure: to shrink
// its input takes half a minute, and neither that nor its file is read.
var ofRapid = []string{"RAPID_SEED=1", "RAPID_SHRINKTIME=1ms", "RAPID_NOFAILFILE=true"}

// run runs tests and says which one fails, and what it took of processors.
func (s *suite) run(ctx context.Context, t *tests, pkg string, of which, a asked) (by string,
	took time.Duration, err error) {
	if err := s.compile(ctx, t, pkg); err != nil || t.none {
		return "", 0, err
	}
	if err := os.WriteFile(s.file("on"), []byte(strconv.Itoa(a.id)), 0o600); err != nil {
		return "", 0, err
	}
	seconds, tests := "unlimited", cmp.Or(a.only, s.o.tests)
	if of == stories {
		tests = "Conversations"
	}
	if a.most > 0 {
		seconds = strconv.Itoa(int(math.Ceil(a.most)))
	}
	within, cancel := context.WithTimeout(ctx, a.limit)
	defer cancel()
	cmd := exec.CommandContext(within, "sh", "-c", bounded, t.program, seconds, "-test.failfast",
		"-test.timeout", a.limit.String(), "-test.short="+strconv.FormatBool(of != whole), "-test.run", tests,
		"-test.skip", a.skip)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.m.Packages[pkg].Dir, append(os.Environ(), ofRapid...), 10*time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = cmd.Start(); err == nil {
		go watch(within, cmd.Process, s.memory)
		err = cmd.Wait()
	}
	if p := cmd.ProcessState; p != nil {
		took = p.UserTime() + p.SystemTime()
	}
	exit := (*exec.ExitError)(nil)
	switch {
	case ctx.Err() != nil:
		return "", took, context.Canceled
	case within.Err() != nil:
		return "no end within " + a.limit.String(), took, nil
	case errors.As(err, &exit):
		if f := failing.FindSubmatch(out.Bytes()); f != nil {
			return strings.TrimSpace(string(bytes.Join(f[1:], nil))), took, nil
		}
		return pkg, took, nil
	}
	return "", took, err
}

// alone tests a mutant that cannot be switched.
func alone(ctx context.Context, m *golist.Module, o *options, p *Place) (*row, error) {
	text, err := os.ReadFile(p.File)
	if err != nil {
		return nil, err
	}
	s, err := newSuite(m, o, nil)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.replace(map[string]string{p.File: string(mutated(text, p))}); err != nil {
		return nil, err
	}
	return s.test(ctx, p)
}

// mutated is the text of a file with the change.
func mutated(text []byte, p *Place) []byte {
	return bytes.Join([][]byte{text[:p.offset], []byte(p.New), text[p.end:]}, nil)
}

// test runs the tests that may notice a mutant until one does.
func (s *suite) test(ctx context.Context, p *Place) (*row, error) {
	r, done, err := s.near(ctx, p)
	if err != nil || done {
		return r, err
	}
	return r, s.far(ctx, r)
}

// near runs the tests of a mutant's package, short and whole, with -cited the conversations before.
func (s *suite) near(ctx context.Context, p *Place) (r *row, done bool, err error) {
	r = &row{Place: *p, Verdict: forgotten}
	name := p.pkg(s.m)
	if !s.switched {
		if wrong, err := s.goes(ctx, "build", name); err != nil || wrong != nil {
			r.Verdict = unusable
			return r, true, err
		}
	}
	rings := s.m.Rings([]string{name})
	if s.o.cited && s.o.tests == "" {
		if done, err := s.story(ctx, r, name, rings); err != nil || done {
			return r, done, err
		}
	}
	for _, pkg := range rings[0] {
		for _, of := range []which{short, whole} {
			if !s.mayRun(pkg) {
				continue
			}
			took, err := s.dies(ctx, r, pkg, of, time.Hour, 0)
			if r.Seconds += took; err != nil || r.Verdict == dies {
				r.Held = byPackage
				return r, true, err
			}
		}
	}
	return r, false, nil
}

// far runs the short tests of importers, ring by ring.
func (s *suite) far(ctx context.Context, r *row) error {
	spent := 0.0
	for _, ring := range s.m.Rings([]string{r.pkg(s.m)})[1:] {
		for _, pkg := range ring {
			if !s.mayRun(pkg) {
				continue
			}
			took, err := s.dies(ctx, r, pkg, short,
				time.Duration((s.o.seconds-spent)*float64(time.Second)), 1)
			if r.Seconds += took; err != nil {
				return err
			}
			if spent += took; r.Verdict == dies {
				r.Held = byImporter
				return nil
			}
		}
	}
	return nil
}

// What holds a rule.
const (
	byStory    = "by a story"
	byPackage  = "by another test of its package"
	byImporter = "by a test of what imports it"
	byNone     = "by none"
)

// mayRun reports whether -by has a package.
func (s *suite) mayRun(pkg string) bool {
	return s.o.by == nil || slices.Contains(s.o.by, strings.TrimPrefix(pkg, s.m.Path+"/"))
}

// story runs the conversations of the mutant's room.
func (s *suite) story(ctx context.Context, r *row, name string, rings [][]string) (done bool, err error) {
	for _, ring := range rings {
		for _, pkg := range ring {
			_, none := os.Stat(filepath.Join(s.m.Packages[pkg].Dir, "testdata", "rules"))
			if none != nil || !s.mayRun(pkg) || name != pkg && !strings.HasPrefix(name, pkg+"/") {
				continue
			}
			took, err := s.dies(ctx, r, pkg, stories, time.Hour, 0)
			if r.Seconds += took; err != nil {
				return false, err
			}
			if r.Verdict == dies {
				r.Held = byStory
				return true, nil
			}
		}
	}
	return false, nil
}

// dies runs the tests of a package with a mutant, if they meet it and are not longer than is left.
func (s *suite) dies(ctx context.Context, r *row, pkg string, of which, left time.Duration,
	far int) (took float64, err error) {
	t := s.of(pkg)
	if !s.switched || s.places[pkg] == 1 && far == 0 && !s.o.met && t.modes[of] == nil {
		return s.first(ctx, t, r, pkg, of)
	}
	usual, err := s.usual(ctx, t, pkg, of, far)
	if err != nil || t.none || usual.fails {
		return 0, err
	}
	r.Verdict = survives
	first, met := usual.meets[r.id]
	if !met || far > 0 && usual.usual > left {
		return 0, nil
	}
	if s.o.met && (of == stories || s.o.tests != "") {
		r.Verdict, r.By = dies, "meets it: "+pkg
		return 0, nil
	}
	// a busy machine may take ten times as long
	a := asked{id: r.id, limit: time.Minute + 10*usual.usual, most: 10 + 5*usual.usual.Seconds()}
	by, spent := "", time.Duration(0)
	if len(first) > 0 && of != stories && s.o.tests == "" { // those that meet it, then the others
		a.only = "^(" + strings.Join(first, "|") + ")$"
		if by, spent, err = s.run(ctx, t, pkg, of, a); err == nil && by == "" {
			a.only, a.skip = "", a.only
		}
	}
	if err == nil && by == "" {
		var rest time.Duration
		by, rest, err = s.run(ctx, t, pkg, of, a)
		spent += rest
	}
	if by != "" {
		r.Verdict, r.By = dies, by
	}
	return tenths(spent), err
}

// first runs the tests of a package with its only mutant, or one that cannot be switched. What they do
// without it matters where they fail alone: then the one that fails must pass without.
func (s *suite) first(ctx context.Context, t *tests, r *row, pkg string, of which) (took float64, err error) {
	if m := t.modes[of]; m != nil && m.fails {
		return 0, nil
	}
	a := asked{id: r.id, limit: 20 * time.Minute, most: 300}
	by, spent, err := s.run(ctx, t, pkg, of, a)
	switch {
	case err != nil || t.none:
		return 0, err
	case by == "":
		r.Verdict = survives
		return tenths(spent), nil
	}
	a.id = 0
	if test, _, _ := strings.Cut(by, "/"); strings.HasPrefix(test, "Test") {
		a.only = "^" + test + "$"
	}
	was, more, err := s.without(ctx, t, pkg, of, a)
	if err != nil {
		return 0, err
	}
	if was == "" {
		r.Verdict, r.By = dies, by
	} else {
		t.modes[of] = &mode{fails: true}
		fmt.Fprintf(os.Stderr, "mutants: %s fails without any: %s\n", pkg, was)
	}
	return tenths(spent + more), nil
}

// without runs tests of a package without a mutant: where it cannot be switched off, of the source as it is.
func (s *suite) without(ctx context.Context, t *tests, pkg string, of which, a asked) (by string,
	took time.Duration, err error) {
	if s.switched {
		return s.run(ctx, t, pkg, of, a)
	}
	plain, err := newSuite(s.m, s.o, nil)
	if err != nil {
		return "", 0, err
	}
	defer plain.close()
	if err := plain.replace(nil); err != nil {
		return "", 0, err
	}
	return plain.run(ctx, plain.of(pkg), pkg, of, a)
}

func tenths(d time.Duration) float64 { return math.Round(d.Seconds()*10) / 10 }
