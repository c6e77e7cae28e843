package scenario

import (
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/profile"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

type eventFiles struct {
	Trace   *chrome.Writer  // nil: no trace
	Profile *profile.Writer // nil: no profile
}

// Abort gives up what Close has not finished.
func (f *eventFiles) Abort() {
	if f.Trace != nil {
		f.Trace.Abort()
	}
	if f.Profile != nil {
		f.Profile.Abort()
	}
}

// All sends everything to all files.
func (f *eventFiles) All() trace.Sink {
	var list []trace.Sink
	if f.Trace != nil {
		list = append(list, f.Trace)
	}
	if f.Profile != nil {
		list = append(list, f.Profile)
	}
	return trace.Tee(list...)
}

// callSink makes room before the simulator's events for the host's calls,
// which come first: the simulator's operation begins at zero.
type callSink struct {
	trace.Sink
	Shift units.Time
	Over  map[[2]int64]bool // lanes without a reserved number
}

// Track counts lanes that have no number reserved.
func (c *callSink) Track(t trace.Track) trace.TrackID {
	if nccl.Overflows(&t) {
		if c.Over == nil {
			c.Over = map[[2]int64]bool{}
		}
		c.Over[[2]int64{t.Process, t.Thread}] = true
	}
	return c.Sink.Track(t)
}

// Emit moves an event behind the calls.
func (c *callSink) Emit(e *trace.Event) {
	start := e.Start
	e.Start += c.Shift
	c.Sink.Emit(e)
	e.Start = start
}

// runnerUp is the next best of a choice and how much slower it is.
func runnerUp(c *tuning.Choice) (name string, ratio float64) {
	best := float32(-1)
	for _, a := range coll.Algorithms() {
		for _, p := range coll.Protocols() {
			t := c.Times[a][p]
			if t <= 0 || a == c.Algo && p == c.Proto || best >= 0 && t >= best {
				continue
			}
			best, name = t, a.LogName()+"/"+p.LogName()
		}
	}
	if best < 0 || c.TimeUs <= 0 {
		return "", 0
	}
	return name, float64(best) / float64(c.TimeUs)
}

// Phase is a part of writing the outputs that takes long.
type Phase struct {
	Name string // "writing trace"
	// Share is the part that is done; nil where Counts has how many of how many.
	Share  func() float64
	Counts func() (done, total int64)
	// Later is about how many times as long the parts that are sure to follow take.
	Later float64
}

// Written is a file of Outputs that is complete.
type Written struct {
	Member string // of Outputs: "trace", "profile", "ops"
	Name   string
	Events int64 // of a trace
}

// Listener is called with the progress of writing outputs. Its members may be nil.
type Listener struct {
	Phase func(Phase)   // is called as each part begins
	Wrote func(Written) // is called with each file once it is there
}

// began reports that a part begins.
func (l *Listener) began(p Phase) {
	if l.Phase != nil {
		l.Phase(p)
	}
}

// made reports that a file is complete.
func (l *Listener) made(w Written) {
	if l.Wrote != nil {
		l.Wrote(w)
	}
}
