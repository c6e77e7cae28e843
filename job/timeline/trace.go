package timeline

import (
	"fmt"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// maxPeers bounds the arrows of a collective: from the last member's kernel to at most this many others.
const maxPeers = 64

// Write writes a job's trace: a process for each rank, a track for each stream, a slice for each step; arrows
// from the host's launch to the kernel, and from the kernel of an operation that began last to the kernels
// that waited for it; the critical path; queues, marks and pauses of a packet network, and the rates of its
// queue pairs. name returns the name of a rank; nil: its number. The arguments of a call's slice say since
// when its stream was ready and how long the call takes by itself.
func (t *Timeline) Write(sink trace.Sink, name func(rank int) string) {
	if name == nil {
		name = func(rank int) string { return fmt.Sprintf("rank %d", rank) }
	}
	w := writer{t: t, sink: sink, name: name, tracks: make([]map[int32]trace.TrackID, len(t.of))}
	for rank := range t.of {
		w.rank(rank)
	}
	w.peers()
	w.path()
	w.network()
}

type writer struct {
	t      *Timeline
	sink   trace.Sink
	name   func(int) string
	tracks []map[int32]trace.TrackID
	arrows int64
}

// rank writes the slices of a rank and the arrows of its launches.
func (w *writer) rank(rank int) {
	t := w.t
	w.tracks[rank] = map[int32]trace.TrackID{}
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	for i := range steps {
		s, at := &steps[i], &t.r.Spans[rank][i]
		if !drawn(s) || at.End <= at.Begin {
			continue
		}
		e := trace.Event{Track: w.track(rank, s.Stream), Start: at.Begin, Dur: at.End - at.Begin}
		w.describe(&e, rank, i)
		w.sink.Emit(&e)
		if workload.OnHost(s.Stream) {
			continue
		}
		for _, d := range slices.Backward(s.Deps) {
			if from := &t.r.Spans[rank][d]; workload.OnHost(steps[d].Stream) && drawn(&steps[d]) &&
				from.End > from.Begin {
				w.arrow("launch", w.track(rank, steps[d].Stream), from.End-1, e.Track, at.Begin)
				break
			}
		}
	}
}

// drawn reports whether a step has a slice.
func drawn(s *workload.Step) bool { return s.Kind == workload.Compute || s.Kind == workload.Issue }

// arrow writes an arrow between two moments within slices.
func (w *writer) arrow(name string, from trace.TrackID, start units.Time, to trace.TrackID, end units.Time) {
	w.arrows++
	w.sink.Emit(&trace.Event{Phase: trace.FlowStart, Track: from, Start: min(start, end), Cat: name,
		Name: name, ID: w.arrows})
	w.sink.Emit(&trace.Event{Phase: trace.FlowEnd, Track: to, Start: end, Cat: name, Name: name,
		ID: w.arrows})
}

// peers writes the arrows between the kernels of an operation.
func (w *writer) peers() {
	t := w.t
	left := make([]int32, len(t.ops))
	for rank := range t.of {
		steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
		for i, o := range t.of[rank] {
			if o == 0 {
				continue
			}
			op, p := &t.ops[o-1], Place{int32(rank), int32(i)}
			at := t.span(p)
			c := &t.r.Program.Calls[steps[i].Call]
			if p == op.last || at.End <= at.Begin || at.End <= op.start || left[o-1] == maxPeers ||
				op.last.Rank == p.Rank {
				continue
			}
			left[o-1]++
			last := t.span(op.last)
			if last.End <= last.Begin {
				continue
			}
			w.arrow(c.Func.String(), w.track(int(op.last.Rank), t.step(op.last).Stream), op.start,
				w.track(rank, steps[i].Stream), op.start)
		}
	}
}

// path writes the critical path on a track of its own.
func (w *writer) path() {
	track := trace.TrackID(-1)
	for _, p := range w.t.Path() {
		if track < 0 {
			track = w.sink.Track(trace.Track{Process: nccl.CriticalPID, ProcessName: "critical path",
				ProcessSort: -1 << 30, Thread: 1, ThreadName: "what the end waited for"})
		}
		e := trace.Event{Track: track, Start: p.From, Dur: p.To - p.From}
		w.describe(&e, int(p.Rank), int(p.Step))
		if p.Kind == Queued {
			e.Cat, e.Name, e.Tint, e.Args = "wait", "wait for SMs", trace.Waits, nil
		}
		e.Args = append([]trace.Arg{trace.Int("rank", int64(p.Rank))}, e.Args...)
		w.sink.Emit(&e)
	}
}

// track returns the track of a rank's stream, and makes it on first use.
func (w *writer) track(rank int, stream int32) trace.TrackID {
	if id, ok := w.tracks[rank][stream]; ok {
		return id
	}
	name := fmt.Sprintf("stream %d", stream)
	sort := int64(stream) + 1<<16
	if workload.OnHost(stream) {
		name, sort = fmt.Sprintf("host thread %d", stream-workload.HostStream),
			int64(stream-workload.HostStream)
	}
	id := w.sink.Track(trace.Track{Process: nccl.RankPID + int64(rank), ProcessName: w.name(rank),
		ProcessSort: int64(rank), Thread: int64(stream), ThreadName: name, ThreadSort: sort})
	w.tracks[rank][stream] = id
	return id
}

// describe sets the name and arguments of a step's slice.
func (w *writer) describe(e *trace.Event, rank, i int) {
	r := w.t.r
	p := Place{int32(rank), int32(i)}
	s, at := w.t.step(p), w.t.span(p)
	e.Cat, e.Name = label(r.Program, s)
	switch e.Cat {
	case "NCCL":
		e.Tint = trace.Sends
	case "compute":
		e.Tint = trace.Computes
	}
	if s.Kind == workload.Compute {
		e.Args = []trace.Arg{trace.Int("step", int64(i)),
			trace.Num("alone_us", s.Time.Micros()*r.Program.FactorOf(rank))}
		return
	}
	c, x := &r.Program.Calls[s.Call], &r.Calls[s.Call]
	e.Args = []trace.Arg{trace.Int("step", int64(i)), trace.Str("comm", r.Program.Comms[c.Comm].Name),
		trace.Int("bytes", int64(c.Bytes())), trace.Num("alone_us", x.Alone.Micros()),
		trace.Num("waited_us", (at.Begin - at.Issued).Micros()),
		trace.Num("late_us", (w.t.met(p) - at.Begin).Micros()), trace.Int("channels", int64(x.Channels))}
}

// label returns the category and name of a step: compute, host or NCCL, and the kernel or operation.
func label(p *workload.Program, s *workload.Step) (cat, name string) {
	switch {
	case s.Kind == workload.Issue:
		return "NCCL", p.Calls[s.Call].Func.String()
	case workload.OnHost(s.Stream):
		cat = "host"
	case p.Communicates(s):
		cat = "NCCL"
	default:
		cat = "compute"
	}
	if s.Work > 0 {
		return cat, p.Works[s.Work-1].Name
	}
	return cat, cat
}
