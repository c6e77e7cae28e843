// Package validate checks Chrome traces: that viewers can show them, and that
// what they show is consistent. Our own traces must pass every rule; on other
// people's files the rules that only we promise are warnings.
package validate

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// Problem is one place where a rule is broken.
type Problem struct {
	Line    int
	Rule    string // short name, stable
	Text    string
	Warning bool
}

// String prints line, severity, text and rule.
func (p Problem) String() string {
	kind := "error"
	if p.Warning {
		kind = "warning"
	}
	return fmt.Sprintf("%d: %s: %s [%s]", p.Line, kind, p.Text, p.Rule)
}

// Report is what a check found.
type Report struct {
	Info                     chrome.Info
	Problems                 []Problem // by line; at most Options.Max of each rule
	Errors, Warnings         int       // all of them
	Tracks, Slices           int
	Flows, Counters, Instant int
	Async                    int
	End                      units.Time
}

// maxPerRule bounds the problems that are told of one rule; all are counted.
const maxPerRule = 5

type trackKey struct{ pid, tid int64 }

type span struct {
	start, end units.Time
	line       int
	name       string
}

type mark struct {
	at   units.Time
	line int
	out  bool // s, else f
}

type trackState struct {
	open  []span // B without E yet
	spans []span
	marks []mark
}

type flow struct{ starts, ends []mark }

type counter struct {
	line    int
	nonzero bool
	at      units.Time
}

type checker struct {
	rep      *Report
	perRule  map[string]int
	own      []Problem // rules that only we promise: severity known at the end
	tracks   map[trackKey]*trackState
	flows    map[string]*flow
	counters map[string]*counter
	async    map[string][]span
	started  bool
}

// Check reads a trace and returns what is wrong with it. An error means that
// the file could not be read as a trace at all.
func Check(r io.Reader) (*Report, error) {
	c := &checker{rep: &Report{}, perRule: map[string]int{}, tracks: map[trackKey]*trackState{},
		flows: map[string]*flow{}, counters: map[string]*counter{}, async: map[string][]span{}}
	info, err := chrome.Read(r, func(e *chrome.Event) error { c.event(e); return nil })
	c.rep.Info = *info
	if err != nil {
		return c.rep, err
	}
	if !c.started && c.rep.Errors == 0 {
		c.warn(1, "empty", "no events")
	}
	c.finish()
	return c.rep, nil
}

func (c *checker) problem(line int, rule, format string, args ...any) {
	c.add(Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
}

func (c *checker) warn(line int, rule, format string, args ...any) {
	c.add(Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...), Warning: true})
}

// ours is a rule of our schema: an error in our files, a warning in others.
func (c *checker) ours(line int, rule, format string, args ...any) {
	c.own = append(c.own, Problem{Line: line, Rule: rule, Text: fmt.Sprintf(format, args...)})
	if len(c.own) > 1000 {
		c.settleOwn()
	}
}

func (c *checker) settleOwn() {
	strict := strings.HasPrefix(c.rep.Info.Schema, "simccl/")
	for _, p := range c.own {
		p.Warning = !strict
		c.add(p)
	}
	c.own = c.own[:0]
}

func (c *checker) add(p Problem) {
	if p.Warning {
		c.rep.Warnings++
	} else {
		c.rep.Errors++
	}
	if c.perRule[p.Rule]++; c.perRule[p.Rule] <= maxPerRule {
		c.rep.Problems = append(c.rep.Problems, p)
	}
}

func (c *checker) event(e *chrome.Event) {
	if e.BadTS != "" {
		c.problem(e.Line, "time", "%q: ts and dur must be JSON numbers of microseconds: %s", e.Name, e.BadTS)
		return
	}
	if e.Phase == 'M' {
		if c.started {
			c.ours(e.Line, "metadata-first", "metadata %q after the first event", e.Name)
		}
		if e.HasTS && e.TS != 0 {
			c.problem(e.Line, "metadata-ts", "metadata %q has a ts; leave it out", e.Name)
		}
		return
	}
	c.started = true
	if !e.HasTS {
		c.problem(e.Line, "time", "%q (ph %q) has no ts", e.Name, e.Phase)
		return
	}
	if e.TS < 0 && c.rep.Info.Base == 0 {
		c.problem(e.Line, "time", "%q starts at %s; shift the trace so that nothing is before 0", e.Name, e.TS)
	}
	c.rep.End = max(c.rep.End, e.TS+e.Dur)
	if e.PID == e.TID && e.PID != 0 && e.Phase != 'C' {
		c.ours(e.Line, "tid-is-pid", "tid %d equals its pid: Perfetto takes that thread for the main thread", e.TID)
	}
	switch e.Phase {
	case 'X':
		c.slice(e)
	case 'B', 'E':
		c.beginEnd(e)
	case 's', 't', 'f':
		c.arrow(e)
	case 'C':
		c.count(e)
	case 'i', 'I', 'R':
		c.rep.Instant++
	case 'b', 'n', 'e':
		c.asyncEvent(e)
	case 'S', 'T', 'p', 'F', 'N', 'O', 'D', 'v', 'V', 'P', 'c', '(', ')': // older kinds, shown or ignored
	default:
		c.problem(e.Line, "phase", "%q has no event type (ph %q)", e.Name, e.Phase)
	}
}

func (c *checker) track(e *chrome.Event) *trackState {
	k := trackKey{e.PID, e.TID}
	t := c.tracks[k]
	if t == nil {
		t = &trackState{}
		c.tracks[k] = t
	}
	return t
}

func (c *checker) slice(e *chrome.Event) {
	c.rep.Slices++
	if !e.HasDur {
		c.problem(e.Line, "time", "slice %q has no dur", e.Name)
		return
	}
	if e.Dur < 0 {
		c.problem(e.Line, "time", "slice %q lasts %s", e.Name, e.Dur)
		return
	}
	if e.Dur < trace.Tick {
		c.ours(e.Line, "too-short", "slice %q is shorter than 1 ns", e.Name)
	}
	t := c.track(e)
	t.spans = append(t.spans, span{e.TS, e.TS + e.Dur, e.Line, e.Name})
}

func (c *checker) beginEnd(e *chrome.Event) {
	t := c.track(e)
	if e.Phase == 'B' {
		c.rep.Slices++
		t.open = append(t.open, span{start: e.TS, line: e.Line, name: e.Name})
		return
	}
	if len(t.open) == 0 {
		c.problem(e.Line, "nesting", "end of %q without a begin", e.Name)
		return
	}
	b := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	if e.Name != "" && b.name != "" && e.Name != b.name {
		c.problem(e.Line, "nesting", "end of %q, but %q of line %d is open", e.Name, b.name, b.line)
	}
	if e.TS < b.start {
		c.problem(e.Line, "time", "%q ends at %s before it begins at %s", b.name, e.TS, b.start)
		return
	}
	b.end = e.TS
	t.spans = append(t.spans, b)
}

func (c *checker) arrow(e *chrome.Event) {
	k := e.Cat + "\x00" + e.Name + "\x00" + e.ID
	f := c.flows[k]
	if f == nil {
		f = &flow{}
		c.flows[k] = f
	}
	m := mark{e.TS, e.Line, e.Phase == 's'}
	switch e.Phase {
	case 's':
		c.rep.Flows++
		f.starts = append(f.starts, m)
	case 'f':
		f.ends = append(f.ends, m)
	default:
		return
	}
	t := c.track(e)
	t.marks = append(t.marks, m)
}

// checkFlow wants every end to have its own start, not after it.
func (c *checker) checkFlow(k string, f *flow) {
	id := strings.Split(k, "\x00")[2]
	byTime := func(a, b mark) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.line, b.line)) }
	slices.SortFunc(f.starts, byTime)
	slices.SortFunc(f.ends, byTime)
	if c.rep.Info.Part != nil && (len(f.starts) == 0 || len(f.ends) == 0) {
		return // its other end is in another rank's file
	}
	for i, end := range f.ends {
		switch {
		case len(f.starts) == 0:
			c.problem(end.line, "flow", "arrow %s ends, but never starts", id)
		case i >= len(f.starts):
			c.problem(end.line, "flow", "arrow %s ends twice", id)
		case end.at < f.starts[i].at:
			c.problem(end.line, "flow", "arrow %s ends at %s before it starts at %s in line %d", id, end.at, f.starts[i].at, f.starts[i].line)
		}
	}
	for _, start := range f.starts[min(len(f.starts), len(f.ends)):] {
		c.warn(start.line, "flow", "arrow %s starts, but never ends", id)
	}
}

func (c *checker) count(e *chrome.Event) {
	c.rep.Counters++
	for _, a := range e.Args {
		v := a.Num
		switch a.Kind {
		case trace.IntArg:
			v = float64(a.Int)
		case trace.StringArg:
			c.problem(e.Line, "counter", "counter %q: %s is no number", e.Name, a.Key)
			continue
		}
		k := fmt.Sprintf("%d\x00%s\x00%s\x00%s", e.PID, e.Name, e.ID, a.Key)
		s := c.counters[k]
		if s == nil {
			s = &counter{}
			c.counters[k] = s
		}
		if e.TS >= s.at {
			*s = counter{e.Line, v != 0, e.TS}
		}
	}
}

func (c *checker) asyncEvent(e *chrome.Event) {
	k := fmt.Sprintf("%d\x00%s\x00%s", e.PID, e.Cat, e.ID)
	switch e.Phase {
	case 'b':
		c.rep.Async++
		c.async[k] = append(c.async[k], span{start: e.TS, line: e.Line, name: e.Name})
	case 'e':
		open := c.async[k]
		if len(open) == 0 {
			c.problem(e.Line, "async", "end of %q (id %s) without a begin", e.Name, e.ID)
			return
		}
		b := open[len(open)-1]
		c.async[k] = open[:len(open)-1]
		if e.TS < b.start {
			c.problem(e.Line, "async", "%q ends at %s before it begins at %s in line %d", e.Name, e.TS, b.start, b.line)
		}
	}
}

func (c *checker) finish() {
	c.settleOwn()
	c.rep.Tracks = len(c.tracks)
	for _, k := range sortedKeys(c.tracks, func(a, b trackKey) int { return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid)) }) {
		c.checkTrack(k, c.tracks[k])
	}
	for _, k := range sortedKeys(c.flows, strings.Compare) {
		c.checkFlow(k, c.flows[k])
	}
	for _, k := range sortedKeys(c.counters, strings.Compare) {
		if s := c.counters[k]; s.nonzero {
			c.ours(s.line, "counter-end", "counter %q does not end at 0", strings.Split(k, "\x00")[1])
		}
	}
	for _, k := range sortedKeys(c.async, strings.Compare) {
		for _, b := range c.async[k] {
			c.problem(b.line, "async", "begin of %q without an end", b.name)
		}
	}
	c.settleOwn()
	if n := c.rep.Info.Mended; n > 0 {
		m := c.rep.Info.FirstMend
		c.warn(m.Line, "json", "not valid JSON in %d places, understood nevertheless; first: %s", n, m.Problem)
	}
	slices.SortStableFunc(c.rep.Problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

func sortedKeys[K comparable, V any](m map[K]V, order func(a, b K) int) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, order)
	return keys
}

// checkTrack sweeps one track: slices must nest, arrows must lie inside one.
func (c *checker) checkTrack(k trackKey, t *trackState) {
	for _, b := range t.open {
		c.problem(b.line, "nesting", "begin of %q without an end", b.name)
	}
	slices.SortStableFunc(t.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	slices.SortStableFunc(t.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	var stack []span
	m := 0
	marksUntil := func(limit units.Time, all bool) {
		for ; m < len(t.marks) && (all || t.marks[m].at < limit); m++ {
			at := t.marks[m].at
			inside := slices.ContainsFunc(stack, func(s span) bool { return s.start <= at && at <= s.end })
			if !inside {
				what := "ends"
				if t.marks[m].out {
					what = "starts"
				}
				c.problem(t.marks[m].line, "flow-binding", "arrow %s outside every slice of its track (pid %d, tid %d)", what, k.pid, k.tid)
			}
		}
	}
	for _, s := range t.spans {
		marksUntil(s.start, false)
		for len(stack) > 0 && stack[len(stack)-1].end <= s.start {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 && s.end > stack[n-1].end {
			o := stack[n-1]
			c.problem(s.line, "overlap", "slice %q partly overlaps %q of line %d on one track (pid %d, tid %d)", s.name, o.name, o.line, k.pid, k.tid)
			continue
		}
		stack = append(stack, s)
	}
	marksUntil(0, true)
}
