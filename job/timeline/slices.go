package timeline

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// SliceKind says what a stream or a thread of the host does in a Slice.
type SliceKind uint8

// Kinds of slices.
const (
	Computes SliceKind = iota // a compute kernel
	Moves                     // a call moves data
	Waits                     // a call's kernel waits for other ranks
	Hosts                     // a thread of the host
	Queues                    // a kernel waits for SMs; on the critical path only
	Hides                     // a call moves data while the GPU computes (see Hide)
)

// Slice is a span of a stream, of one kind.
type Slice struct {
	From, To units.Time
	Kind     SliceKind
	Name     string
}

// StreamName returns the name of a stream as traces show it.
func StreamName(stream int32) string {
	if workload.OnHost(stream) {
		return fmt.Sprintf("host thread %d", stream-workload.HostStream)
	}
	return fmt.Sprintf("stream %d", stream)
}

// Streams returns the streams of a rank, threads of the host first.
func (t *Timeline) Streams(rank int) (out []int32) {
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	for i := range steps {
		if at := &t.r.Spans[rank][i]; drawn(&steps[i]) && at.End > at.Begin &&
			!slices.Contains(out, steps[i].Stream) {
			out = append(out, steps[i].Stream)
		}
	}
	slices.SortFunc(out, func(a, b int32) int {
		if x, y := workload.OnHost(a), workload.OnHost(b); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	})
	return out
}

// Slices returns the slices of a rank's stream, in the order of time. A call has two: waiting, then moving
// data.
func (t *Timeline) Slices(rank int, stream int32) (out []Slice) {
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	for i := range steps {
		s, at := &steps[i], &t.r.Spans[rank][i]
		if !drawn(s) || s.Stream != stream || at.End <= at.Begin {
			continue
		}
		_, name := label(t.r.Program, s)
		switch {
		case s.Kind == workload.Issue:
			met := t.met(Place{int32(rank), int32(i)})
			c := &t.r.Program.Calls[s.Call]
			name = fmt.Sprintf("%s of %d bytes on %s", name, c.Bytes(), t.r.Program.Comms[c.Comm].Name)
			if met > at.Begin {
				out = append(out, Slice{at.Begin, met, Waits, "waiting for ranks: " + name})
			}
			out = append(out, Slice{met, at.End, Moves, name})
		case workload.OnHost(stream):
			out = append(out, Slice{at.Begin, at.End, Hosts, name})
		case t.r.Program.Communicates(s):
			out = append(out, Slice{at.Begin, at.End, Moves, name})
		default:
			out = append(out, Slice{at.Begin, at.End, Computes, name})
		}
	}
	slices.SortStableFunc(out, func(a, b Slice) int { return cmp.Compare(a.From, b.From) })
	return out
}

// Computing returns the spans in which a rank's GPU computes. Spans less than apart from each other are
// joined.
func (t *Timeline) Computing(rank int, apart units.Time) []Span {
	var out []Span
	steps := t.r.Program.Lists[t.r.Program.Of[rank]].Steps
	for i := range steps {
		s, at := &steps[i], &t.r.Spans[rank][i]
		if s.Kind == workload.Compute && !workload.OnHost(s.Stream) && !t.r.Program.Communicates(s) &&
			at.End > at.Begin {
			out = append(out, Span{at.Begin, at.End + apart})
		}
	}
	out = merge(out)
	for i := range out {
		out[i].To -= apart
	}
	return out
}

// Hide splits the calls that move data: the parts during which the GPU computes become slices of kind Hides.
// computing is Computing's result.
func Hide(list []Slice, computing []Span) (out []Slice) {
	for _, s := range list {
		if s.Kind != Moves {
			out = append(out, s)
			continue
		}
		add := func(from, to units.Time, kind SliceKind) {
			if to > from {
				out = append(out, Slice{from, to, kind, s.Name})
			}
		}
		at := s.From
		first, _ := slices.BinarySearchFunc(computing, s.From, func(c Span, t units.Time) int {
			return cmp.Compare(c.To, t)
		})
		for _, c := range computing[first:] {
			if c.From >= s.To {
				break
			}
			add(at, c.From, Moves)
			add(max(at, c.From), min(c.To, s.To), Hides)
			at = max(at, c.To)
		}
		add(at, s.To, Moves)
	}
	return out
}

// PathSlices returns the critical path as slices.
func (t *Timeline) PathSlices() (out []Slice) {
	kinds := map[PieceKind]SliceKind{Computing: Computes, Hosting: Hosts, Moving: Moves, Unknown: Moves,
		Queued: Queues}
	for _, p := range t.Path() {
		_, name := label(t.r.Program, t.step(p.Place))
		out = append(out, Slice{p.From, p.To, kinds[p.Kind], fmt.Sprintf("rank %d: %s", p.Rank, name)})
	}
	return out
}

// Join joins slices of one kind that are less than apart from each other. A slice shorter than apart is
// joined to the one before it.
func Join(list []Slice, apart units.Time) (out []Slice) {
	count := 0
	for _, s := range list {
		n := len(out)
		if n > 0 && out[n-1].Kind == s.Kind && s.From-out[n-1].To < apart &&
			(s.To-s.From < apart || out[n-1].To-out[n-1].From < apart || count > 1) {
			if out[n-1].To = max(out[n-1].To, s.To); count == 1 {
				out[n-1].Name += ", …"
			}
			count++
			continue
		}
		out, count = append(out, s), 1
	}
	return out
}

// Iteration returns the begin and end of the iteration in the middle of the job, on the first rank's host, or
// on its GPU if the host takes no time; without marks, the whole job.
func (t *Timeline) Iteration() (from, to units.Time) {
	p := t.r.Program
	var at []units.Time
	for _, m := range p.Marks {
		if m.List != p.Of[0] {
			continue
		}
		end := units.Time(0)
		for i := range m.Step {
			end = max(end, t.r.Spans[0][i].Issued)
		}
		at = append(at, end)
	}
	slices.Sort(at)
	if n := len(at); n >= 2 && at[n-1] > at[0] {
		k := (n - 1) / 2
		if at[k+1] > at[k] {
			return at[k], at[k+1]
		}
	}
	return 0, t.r.Elapsed()
}
