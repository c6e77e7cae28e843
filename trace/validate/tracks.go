package validate

import (
	"cmp"
	"maps"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

type trackKey struct{ pid, tid int64 }

type span struct {
	start, end units.Time
	line       int
	name       string
}

type mark struct {
	at   units.Time
	line int
	out  bool // s; false: f
}

// trackState is the state of a track. Slices and ends of arrows wait in spans and marks until the track is
// swept.
type trackState struct {
	open  []span // B events without their E yet
	spans []span
	marks []mark
	stack []span     // of the sweep: open slices, each inside the one before
	last  units.Time // latest start
	swept units.Time // all before this time is checked
	begun bool       // swept is valid
}

// defaultSweep is the number of waiting slices and ends of arrows at which the tracks of a time-ordered file
// are swept: checked ones are freed.
const defaultSweep = 1 << 18

const (
	spanBytes = 128 // of a span or mark in a growing list, which is briefly copied
	longName  = 256
)

// nearTrack is a cache entry of a track, by a hash of its numbers: a file has thousands, and a map costs
// three cache lines per event.
type nearTrack struct {
	key   trackKey
	state *trackState
}

// nearPrime distributes the threads of processes over the cache.
const nearPrime = 257

func (c *checker) track(e *chrome.Event) *trackState {
	k := trackKey{e.PID, e.TID}
	near := &c.near[uint64(e.PID*nearPrime+e.TID)%uint64(len(c.near))]
	if near.state != nil && near.key == k {
		return near.state
	}
	t := c.tracks[k]
	if t == nil {
		t = &trackState{}
		c.tracks[k] = t
		c.keep(320, e.Line)
	}
	near.key, near.state = k, t
	return t
}

// keep adds to the memory in use.
func (c *checker) keep(n int64, line int) {
	if err := c.kept.Keep(n, line); err != nil && c.err == nil {
		c.err = err
	}
}

// late reports whether a slice or an arrow comes too late to be checked.
func (c *checker) late(t *trackState, at units.Time, line int) bool {
	if at < t.last {
		c.unsorted = true
	}
	if !t.begun || at >= t.swept {
		return false
	}
	if c.err == nil {
		c.err = outOfOrder(line)
	}
	return true
}

// outOfOrder returns the error for a file that was in the order of time for so long that checked events are
// already freed.
func outOfOrder(line int) error {
	return &trace.LimitError{Line: line,
		Problem: "the file is not sorted by time after this line, and too large to be kept in memory",
		Hint:    "sort its events by ts"}
}

// wait stores a slice until its track is swept.
func (c *checker) wait(t *trackState, s span) {
	if c.late(t, s.start, s.line) {
		return
	}
	t.last = max(t.last, s.start)
	t.spans = append(t.spans, s)
	c.waits(s.line, len(s.name))
}

// mark stores an arrow's end until its track is swept.
func (c *checker) mark(t *trackState, m mark) {
	if c.late(t, m.at, m.line) {
		return
	}
	t.marks = append(t.marks, m)
	c.waits(m.line, 0)
}

func (c *checker) waits(line, name int) {
	n := int64(spanBytes)
	if name > longName {
		n += int64(name)
	}
	c.keep(n, line)
	c.waitBytes += n
	if c.waiting++; c.waiting >= c.sweepAt && !c.unsorted {
		c.sweepAll(false)
	}
}

// sweepAll sweeps every track, up to its last start or to its end, and frees the checked events.
func (c *checker) sweepAll(last bool) {
	for _, k := range slices.SortedFunc(maps.Keys(c.tracks), func(a, b trackKey) int {
		return cmp.Or(cmp.Compare(a.pid, b.pid), cmp.Compare(a.tid, b.tid))
	}) {
		c.sweep(k, c.tracks[k], last)
	}
	c.kept.Free(c.waitBytes)
	c.waiting, c.waitBytes = 0, 0
	if !last {
		c.settleFlows()
	}
}

// sweep checks a track in the order of time: slices must nest, arrows must lie inside a slice. Slices that
// begin at the latest start wait for others that do.
func (c *checker) sweep(k trackKey, t *trackState, last bool) {
	slices.SortStableFunc(t.spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	slices.SortStableFunc(t.marks, func(a, b mark) int { return cmp.Compare(a.at, b.at) })
	spans, marks := 0, 0
	marksUntil := func(limit units.Time, all bool) {
		for ; marks < len(t.marks) && (all || t.marks[marks].at < limit); marks++ {
			m := &t.marks[marks]
			// Each open slice lies inside the one below it, so the lowest decides.
			if len(t.stack) > 0 && t.stack[0].start <= m.at && m.at <= t.stack[0].end {
				continue
			}
			what := "ends"
			if m.out {
				what = "starts"
			}
			c.ours(m.line, "flow-binding", "arrow %s outside every slice of its track (pid %d, tid %d)", what,
				k.pid, k.tid)
		}
	}
	for ; spans < len(t.spans) && (last || t.spans[spans].start < t.last); spans++ {
		s := t.spans[spans]
		marksUntil(s.start, false)
		for len(t.stack) > 0 && t.stack[len(t.stack)-1].end <= s.start {
			t.stack = t.stack[:len(t.stack)-1]
		}
		if n := len(t.stack); n > 0 && s.end > t.stack[n-1].end {
			o := t.stack[n-1]
			c.ours(s.line, "overlap", "slice %s partly overlaps %s of line %d on one track (pid %d, tid %d)",
				quoted(s.name), quoted(o.name), o.line, k.pid, k.tid)
			continue
		}
		t.stack = append(t.stack, s)
	}
	marksUntil(t.last, last)
	t.spans, t.marks = slices.Clone(t.spans[spans:]), slices.Clone(t.marks[marks:])
	if spans > 0 || marks > 0 {
		t.swept, t.begun = t.last, true
	}
}
