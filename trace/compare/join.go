package compare

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/units"
)

// Parts reports whether traces are the files that the ranks of one run wrote, one each. Error: they are
// parts, but not of one run.
func Parts(heads []*chrome.Info) (bool, error) {
	seen := map[int]bool{}
	for _, h := range heads {
		if h.Part == nil {
			return false, nil
		}
		if seen[h.Part.Rank] {
			return true, fmt.Errorf("two files are of rank %d; give each rank's once", h.Part.Rank)
		}
		if h.Part.Of != heads[0].Part.Of {
			return true, fmt.Errorf("rank %d is one of %d, rank %d one of %d: these are two runs",
				heads[0].Part.Rank, heads[0].Part.Of, h.Part.Rank, h.Part.Of)
		}
		seen[h.Part.Rank] = true
	}
	return len(heads) > 0, nil
}

// Joined is the outcome of joining the ranks' files into one trace.
type Joined struct {
	Arrows int // between ranks of different files
	// Loose counts arrows with one end only (the other rank's file is missing), Early arrows that would end
	// before they start, because clocks are not known precisely enough.
	Loose, Early int
	Left         int // events that cannot be expressed in the schema
	Clocks       []chrome.ClockSync
}

// Join merges the files of one run's ranks: times by rank 0's clock, arrows between files by their ids,
// counters of a port that several ranks use as their sum. It does not close the sink.
func Join(to trace.Sink, heads []*chrome.Info, traces []io.Reader, kept *trace.Budget) (*Joined, error) {
	j := &joiner{to: to, arrows: map[string]*arrow{}, counters: map[[2]string][]reading{}}
	zero := make([]int64, len(heads)) // by file: its time zero by rank 0's clock
	for i, h := range heads {
		zero[i] = h.EpochNs
		for _, c := range h.ClockSync {
			if c.Rank == h.Part.Rank {
				zero[i] -= c.OffsetNs
			}
			j.Clocks = append(j.Clocks, c)
		}
	}
	first := slices.Min(zero)
	for i, r := range traces {
		late := zero[i] - first
		if late < 0 || late > int64(math.MaxInt64/units.Nanosecond) {
			return nil,
				&TraceError{i, fmt.Errorf("rank %d's clock is more than 106 days from another's; were the "+
					"files written in one run?", heads[i].Part.Rank)}
		}
		j.file, j.later = i, units.Time(late)*units.Nanosecond
		j.merger = newMerger(to, kept)
		if _, err := chrome.Read(r, j.event); err != nil {
			return nil, &TraceError{i, err}
		}
		j.Left += j.left
	}
	j.join()
	j.count()
	slices.SortFunc(j.Clocks, func(a, b chrome.ClockSync) int { return cmp.Compare(a.Rank, b.Rank) })
	return &j.Joined, nil
}

type joiner struct {
	Joined
	*merger
	to       trace.Sink
	file     int
	later    units.Time
	arrows   map[string]*arrow
	counters map[[2]string][]reading
}

// arrow holds the known ends of an arrow.
type arrow struct {
	event [2]trace.Event
	file  [2]int
	has   [2]bool
}

// reading is a counter's value from a time on, in one file.
type reading struct {
	at    units.Time
	value float64
	file  int
	track trace.TrackID
	key   string
}

func (j *joiner) event(e *chrome.Event) error {
	if e.TS > math.MaxInt64-j.later-max(e.Dur, 0) {
		e.BadTS = "beyond the times that a trace can hold"
	}
	e.TS += j.later
	switch {
	case e.BadTS != "":
	case e.Phase == 's' || e.Phase == 'f':
		k := e.Cat + "\x00" + e.Name + "\x00" + e.ID
		a := j.arrows[k]
		if a == nil {
			a = &arrow{}
			j.arrows[k] = a
			if err := j.kept.Keep(int64(len(k))+480, e.Line); err != nil {
				return err
			}
		}
		end, phase := 0, trace.FlowStart
		if e.Phase == 'f' {
			end, phase = 1, trace.FlowEnd
		}
		at, err := j.track(e)
		if err != nil {
			return err
		}
		a.event[end] = trace.Event{Phase: phase, Track: at, Start: e.TS, Cat: e.Cat, Name: e.Name}
		a.file[end], a.has[end] = j.file, true
		return nil
	case e.Phase == 'C' && len(e.Args) == 1:
		v := e.Args[0].Num
		if e.Args[0].Kind == trace.IntArg {
			v = float64(e.Args[0].Int)
		}
		at, err := j.track(e)
		if err != nil {
			return err
		}
		k := [2]string{fmt.Sprint(e.PID), e.Name}
		j.counters[k] = append(j.counters[k], reading{e.TS, v, j.file, at, e.Args[0].Key})
		return j.kept.Keep(96, e.Line)
	}
	return j.merger.event(e)
}

// join writes the arrows that have both ends, numbered in the order of their starts.
func (j *joiner) join() {
	var all []*arrow
	for _, a := range j.arrows { //lint:sorted below
		switch {
		case !a.has[0] || !a.has[1]:
			j.Loose++
		case a.event[1].Start < a.event[0].Start:
			j.Early++
		default:
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b *arrow) int {
		return cmp.Or(cmp.Compare(a.event[0].Start, b.event[0].Start), cmp.Compare(a.event[0].Track,
			b.event[0].Track),
			cmp.Compare(a.event[1].Start, b.event[1].Start), cmp.Compare(a.event[1].Track, b.event[1].Track))
	})
	for i, a := range all {
		if a.file[0] != a.file[1] {
			j.Arrows++
		}
		for end := range a.event {
			a.event[end].ID = int64(i + 1)
			j.to.Emit(&a.event[end])
		}
	}
}

// count writes the counters: at each change, the sum of all files' values.
func (j *joiner) count() {
	var keys [][2]string
	for k := range j.counters { //lint:sorted below
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		list := j.counters[k]
		slices.SortStableFunc(list, func(a, b reading) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.file, b.file))
		})
		now := map[int]float64{}
		sum := 0.0
		for _, r := range list {
			sum += r.value - now[r.file]
			now[r.file] = r.value
			j.to.Emit(&trace.Event{Phase: trace.Counter, Track: r.track, Start: r.at, Name: k[1],
				Args: []trace.Arg{trace.Num(r.key, sum)}})
		}
	}
}
