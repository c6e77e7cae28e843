// Package validate checks Chrome traces: viewers must be able to show them, and the content must be
// consistent. Our own traces must pass every rule; on foreign files the rules of our schema are warnings.
package validate

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// Options are limits and outputs of a check.
type Options struct {
	// All lists every problem, not only some of each kind.
	All bool
	// Memory bounds the memory used for the trace; 0: trace.DefaultMemory. For a file in the order of time,
	// as ours are, only tracks and arrows are stored.
	Memory units.Bytes

	sweepAt int // 0: defaultSweep
}

type counter struct {
	line    int
	nonzero bool
	at      units.Time
}

// counterKey identifies a counter: each process and argument has its own.
type counterKey struct {
	pid           int64
	name, id, arg string
}

func (k counterKey) compare(o counterKey) int {
	return cmp.Or(cmp.Compare(k.pid, o.pid), strings.Compare(k.name, o.name), strings.Compare(k.id, o.id),
		strings.Compare(k.arg, o.arg))
}

type checker struct {
	rep      *Report
	all      bool
	kinds    map[kindKey]*kind
	own      []found // violations of our own rules: severity known at the end
	tracks   map[trackKey]*trackState
	near     [1 << 12]nearTrack
	flows    map[flowKey]*flow
	done     map[flowID]struct{} // complete arrows
	counters map[counterKey]*counter
	async    map[string][]span
	started  bool

	kept      *trace.Budget
	err       error      // the memory limit was exceeded
	unsorted  bool       // the file is not in the order of time
	arrowAt   units.Time // latest end of an arrow
	settledAt units.Time // up to this time, arrows are settled
	waiting   int        // number of slices and ends of arrows that wait for a sweep
	waitBytes int64
	sweepAt   int
}

// Check reads a trace and returns its problems. An error means that the file could not be read as a trace at
// all, or not within a limit (trace.LimitError).
func Check(r io.Reader) (*Report, error) { return CheckWith(r, Options{}) }

// CheckWith is Check with limits and other options.
func CheckWith(r io.Reader, opt Options) (*Report, error) {
	c := &checker{rep: &Report{}, all: opt.All, sweepAt: cmp.Or(opt.sweepAt, defaultSweep),
		kinds: map[kindKey]*kind{}, tracks: map[trackKey]*trackState{}, kept: trace.NewBudget(opt.Memory),
		flows: map[flowKey]*flow{}, done: map[flowID]struct{}{}, counters: map[counterKey]*counter{},
		async: map[string][]span{}}
	info, err := chrome.Read(r, func(e *chrome.Event) error { c.event(e); return c.err })
	c.rep.Info = *info
	if err != nil {
		return c.rep, err
	}
	if !c.started && c.rep.Errors == 0 {
		c.warn(1, "empty", "no events")
	}
	c.finish()
	return c.rep, c.err
}

func (c *checker) event(e *chrome.Event) {
	if e.BadTS != "" {
		c.problem(e.Line, "time", "%s: ts and dur must be JSON numbers of microseconds: %s", quoted(e.Name),
			e.BadTS)
		return
	}
	if e.Phase == 'M' {
		if c.started {
			c.ours(e.Line, "metadata-first", "metadata %s after the first event", quoted(e.Name))
		}
		if e.HasTS && e.TS != 0 {
			c.ours(e.Line, "metadata-ts", "metadata %s has a ts; leave it out", quoted(e.Name))
		}
		return
	}
	c.started = true
	if !e.HasTS {
		c.problem(e.Line, "time", "%s (ph %q) has no ts", quoted(e.Name), e.Phase)
		return
	}
	if e.TS < 0 && c.rep.Info.Base == 0 {
		c.problem(e.Line, "time", "%s starts at %s; shift the trace so that nothing is before 0",
			quoted(e.Name), e.TS)
	}
	c.rep.End = max(c.rep.End, e.TS+e.Dur)
	if e.PID == e.TID && e.PID != 0 && e.Phase != 'C' {
		c.ours(e.Line, "tid-is-pid", "tid %d equals its pid: Perfetto takes that thread for the main thread",
			e.TID)
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
	case 'S', 'T', 'p', 'F', 'N', 'O', 'D', 'v', 'V', 'P', 'c', '(', ')': // obsolete kinds, shown or ignored
	default:
		c.problem(e.Line, "phase", "%s has no event type (ph %q)", quoted(e.Name), e.Phase)
	}
}

func (c *checker) slice(e *chrome.Event) {
	c.rep.Slices++
	if !e.HasDur {
		c.problem(e.Line, "time", "slice %s has no dur", quoted(e.Name))
		return
	}
	if e.Dur < 0 {
		c.problem(e.Line, "time", "slice %s lasts %s", quoted(e.Name), e.Dur)
		return
	}
	if e.Dur < trace.Tick {
		c.ours(e.Line, "too-short", "slice %s is shorter than 1 ns", quoted(e.Name))
	}
	c.wait(c.track(e), span{e.TS, e.TS + e.Dur, e.Line, e.Name})
}

func (c *checker) beginEnd(e *chrome.Event) {
	t := c.track(e)
	if e.Phase == 'B' {
		c.rep.Slices++
		t.open = append(t.open, span{start: e.TS, line: e.Line, name: e.Name})
		c.unsorted = true // the order of slices is known only at their ends
		c.keep(spanBytes+int64(len(e.Name)), e.Line)
		return
	}
	if len(t.open) == 0 {
		c.ours(e.Line, "nesting", "end of %s without a begin", quoted(e.Name))
		return
	}
	b := t.open[len(t.open)-1]
	t.open = t.open[:len(t.open)-1]
	if e.Name != "" && b.name != "" && e.Name != b.name {
		c.ours(e.Line, "nesting", "end of %s, but %s of line %d is open", quoted(e.Name), quoted(b.name),
			b.line)
	}
	if e.TS < b.start {
		c.problem(e.Line, "time", "%s ends at %s before it begins at %s", quoted(b.name), e.TS, b.start)
		return
	}
	b.end = e.TS
	c.wait(t, b)
}

func (c *checker) count(e *chrome.Event) {
	c.rep.Counters++
	for _, a := range e.Args {
		v := a.Num
		switch a.Kind {
		case trace.IntArg:
			v = float64(a.Int)
		case trace.StringArg:
			c.problem(e.Line, "counter", "counter %s: %s is no number", quoted(e.Name), bare(a.Key))
			continue
		}
		k := counterKey{e.PID, e.Name, e.ID, a.Key}
		s := c.counters[k]
		if s == nil {
			s = &counter{}
			c.counters[k] = s
			c.keep(int64(len(k.name)+len(k.id)+len(k.arg))+128, e.Line)
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
		c.keep(int64(len(k)+len(e.Name))+2*spanBytes, e.Line)
	case 'e':
		open := c.async[k]
		if len(open) == 0 {
			c.ours(e.Line, "async", "end of %s (id %s) without a begin", quoted(e.Name), bare(e.ID))
			return
		}
		b := open[len(open)-1]
		if c.async[k] = open[:len(open)-1]; len(open) == 1 {
			delete(c.async, k)
		}
		c.kept.Free(int64(len(k)+len(b.name)) + 2*spanBytes)
		if e.TS < b.start {
			c.problem(e.Line, "async", "%s ends at %s before it begins at %s in line %d", quoted(e.Name),
				e.TS, b.start, b.line)
		}
	}
}

func (c *checker) finish() {
	c.settleOwn()
	c.rep.Tracks = len(c.tracks)
	c.sweepAll(true)
	for _, k := range slices.SortedFunc(maps.Keys(c.tracks), func(a, b trackKey) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	}) {
		for _, b := range c.tracks[k].open {
			c.ours(b.line, "nesting", "begin of %s without an end", quoted(b.name))
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.flows), flowKey.compare) {
		c.checkFlow(k, c.flows[k])
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.counters), counterKey.compare) {
		if s := c.counters[k]; s.nonzero {
			c.ours(s.line, "counter-end", "counter %s does not end at 0", quoted(k.name))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(c.async)) {
		for _, b := range c.async[k] {
			c.ours(b.line, "async", "begin of %s without an end", quoted(b.name))
		}
	}
	c.settleOwn()
	if n := c.rep.Info.Repaired; n > 0 {
		m := c.rep.Info.FirstRepair
		c.warn(m.Line, "json", "not valid JSON in %d places, understood nevertheless; first: %s", n,
			m.Problem)
	}
	c.list()
}
