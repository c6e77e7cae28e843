package nccl

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// kernelSpan is the span of a kernel on one channel.
type kernelSpan struct {
	lane
	start, end units.Time
}

// kernels holds the kernels of a trace, for its critical path.
type kernels struct {
	lanes []lane                 // by track id
	spans []kernelSpan           // in the order of emission
	by    map[lane][]kernelSpan  // by start
	ended map[int32][]kernelSpan // by rank, in the order of their ends
}

// track records the rank and channel whose kernels are on a track.
func (k *kernels) track(id trace.TrackID, t *trace.Track) {
	for int(id) >= len(k.lanes) {
		k.lanes = append(k.lanes, lane{rank: -1})
	}
	if t.Process >= RankPID && t.Process < NICPID && t.Thread >= kernelTID && t.Thread < proxyTID {
		k.lanes[id] = lane{int32(t.Process - RankPID), int32((t.Thread - kernelTID) % perComm)}
	}
}

// emit stores the spans of kernels.
func (k *kernels) emit(e *trace.Event) {
	if e.Phase != trace.Slice || e.Cat != "GPU" || int(e.Track) >= len(k.lanes) ||
		k.lanes[e.Track].rank < 0 || len(k.spans) == maxPathSlices {
		return
	}
	k.spans = append(k.spans, kernelSpan{k.lanes[e.Track], e.Start, e.Start + e.Dur})
}

// order sorts the stored spans into by and ended.
func (k *kernels) order() {
	k.by, k.ended = make(map[lane][]kernelSpan), make(map[int32][]kernelSpan)
	slices.SortStableFunc(k.spans, func(a, b kernelSpan) int { return cmp.Compare(a.start, b.start) })
	for _, s := range k.spans {
		k.by[s.lane] = append(k.by[s.lane], s)
		k.ended[s.rank] = append(k.ended[s.rank], s)
	}
	for _, spans := range k.ended { //lint:sorted each is sorted on its own
		slices.SortStableFunc(spans, func(a, b kernelSpan) int { return cmp.Compare(a.end, b.end) })
	}
}

// last returns the kernel that ends last, if it ends after t; of equal ones that of the lowest rank and
// channel.
func (k *kernels) last(t units.Time) (found kernelSpan, later bool) {
	for _, s := range k.spans {
		if s.end-t >= trace.Tick && (!later || s.end > found.end || s.end == found.end &&
			compareLanes(s.lane, found.lane) < 0) {
			found, later = s, true
		}
	}
	return found, later
}

func compareLanes(a, b lane) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.channel, b.channel))
}

// at returns the latest kernel of a channel that began before t.
func (k *kernels) at(l lane, t units.Time) (kernelSpan, bool) {
	spans := k.by[l]
	n, _ := slices.BinarySearchFunc(spans, t, func(s kernelSpan, t units.Time) int {
		return cmp.Compare(s.start, t)
	})
	if n == 0 {
		return kernelSpan{}, false
	}
	return spans[n-1], true
}

// before returns the kernel of a rank that ended last, at t or earlier.
func (k *kernels) before(rank int32, t units.Time) (kernelSpan, bool) {
	spans := k.ended[rank]
	n, _ := slices.BinarySearchFunc(spans, t, func(s kernelSpan, t units.Time) int {
		if s.end <= t {
			return -1
		}
		return 1
	})
	if n == 0 {
		return kernelSpan{}, false
	}
	return spans[n-1], true
}

// walk is the state of finding the critical path backwards.
type walk struct {
	p   *pathSink
	by  []channelPath
	at  units.Time  // all later time is explained
	out []pathPiece // the latest first
}

// add assigns the time from start, at least zero, to w.at to a piece of a channel, and moves w.at to its
// begin.
func (w *walk) add(start units.Time, name string, l lane) {
	if from := max(min(start, w.at), 0); from < w.at {
		w.out = append(w.out, pathPiece{from, w.at, name, l.rank, l.channel})
		w.at = from
	}
}

// back explains the time between two steps of a channel and returns the earlier step; it returns false if
// there is none and everything is explained. Within a kernel the time is the kernel's. A kernel waits for its
// launch, and the launch for the previous kernel on its rank.
func (w *walk) back(l lane) (step int32, ok bool) {
	for {
		var before cause
		known := false
		if at, ok := w.p.channels[l]; ok {
			before, known = w.p.before(&w.by[at], w.at)
		}
		k, inside := w.p.kernels.at(l, w.at)
		if known && (!inside || before.end >= k.start) {
			w.add(before.end, "kernel", l)
			return before.step, true
		}
		if !inside {
			w.add(0, "launch", l)
			return 0, false
		}
		w.add(k.start, "kernel", l)
		previous, ok := w.p.kernels.before(l.rank, w.at)
		if !ok {
			w.add(0, "launch", l)
			return 0, false
		}
		w.add(previous.end, "launch", l)
		l = previous.lane
	}
}
