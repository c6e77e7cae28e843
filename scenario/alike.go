package scenario

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/trace"
)

// drawnRanks is the largest communicator whose trace of steps shows every rank without
// being asked to: of a larger one, ranks that behave alike are drawn once.
const drawnRanks = 128

// everyRank is the word of Outputs.Ranks for all of them.
const everyRank = "all"

// AlikeWarning says that a trace shows some ranks for all.
type AlikeWarning struct {
	Ranks, Drawn int
	Left         int // ranks that do what no drawn rank does: their classes are smaller
}

// Error counts them.
func (e *AlikeWarning) Error() string {
	left := ""
	if e.Left > 0 {
		left = fmt.Sprintf(", of the largest such classes; %d ranks are in none of these", e.Left)
	}
	return fmt.Sprintf("the trace draws %d of %d ranks: each stands for those that do the same at the same times, as its name says%s. --trace-ranks all draws every rank, 0-7 some", e.Drawn, e.Ranks, left)
}

// sameRanks are the ranks of one operation by what they do: two of a class have the same
// slices at the same times, peers apart.
type sameRanks struct {
	first []int32 // by rank: the lowest of its class
	count []int32 // by rank: of the lowest of a class, how many it has
	path  trace.Memory
}

// drawn reports whether a rank is the lowest of its class.
func (a *sameRanks) drawn(rank int) bool { return a.first[rank] == int32(rank) }

func (a *sameRanks) classes() (n int) {
	for i := range a.first {
		if a.drawn(i) {
			n++
		}
	}
	return n
}

// summarised reports whether a trace is to draw alike ranks once.
func (r *Running) summarised(opt *nccltrace.Options) bool {
	o := &r.Spec.Outputs
	return r.Site.Comm.NRanks > drawnRanks && o.Ranks == "" && o.Profile == "" && opt.Detail >= nccltrace.DetailStep && opt.Mask == 0 && !opt.Periods
}

// alike simulates an operation to see which ranks do the same; the critical path, which
// needs the steps of all ranks, is found with it.
func (r *Running) alike(ctx context.Context, at Operation, opt nccltrace.Options, progress func(float64)) (*sameRanks, error) {
	seen := &alikeSink{sums: make([]uint64, r.Site.Comm.NRanks)}
	sink := nccltrace.CriticalPath(seen, r.opt.Cancelled)
	if _, err := r.Simulate(ctx, at, sink, opt, progress); err != nil {
		return nil, err
	}
	if err := sink.Close(); err != nil {
		return nil, err
	}
	a := &sameRanks{first: make([]int32, len(seen.sums)), count: make([]int32, len(seen.sums)), path: seen.path}
	lowest := map[uint64]int32{}
	for rank, sum := range seen.sums {
		first, ok := lowest[sum]
		if !ok {
			first = int32(rank)
			lowest[sum] = first
		}
		a.first[rank] = first
		a.count[first]++
	}
	return a, nil
}

// named is the sink that draws the classes.
func (a *sameRanks) named(to trace.Sink, nodeOf []int32) trace.Sink {
	s := &namedAlike{to, a, map[string]bool{}, map[trace.TrackID]bool{}}
	for rank := range a.first {
		if a.drawn(rank) {
			s.nodes[fmt.Sprintf("node%d", nodeOf[rank])] = true
		}
	}
	return s
}

// alikeSink sums up what each rank does and keeps the critical path.
type alikeSink struct {
	sums   []uint64 // by rank; the order of events does not matter
	tracks []trace.Track
	known  map[[2]int64]trace.TrackID
	path   trace.Memory
	onPath []trace.TrackID // by track, plus one; 0: not of the path
}

// Track keeps a lane.
func (s *alikeSink) Track(t trace.Track) trace.TrackID {
	key := [2]int64{t.Process, t.Thread}
	if known, ok := s.known[key]; ok {
		return known
	}
	if s.known == nil {
		s.known = map[[2]int64]trace.TrackID{}
	}
	s.known[key] = trace.TrackID(len(s.tracks))
	id := trace.TrackID(0)
	if t.Process == nccltrace.CriticalPID {
		id = s.path.Track(t) + 1
	}
	s.tracks, s.onPath = append(s.tracks, t), append(s.onPath, id)
	return trace.TrackID(len(s.tracks) - 1)
}

// Emit adds a slice to its rank.
func (s *alikeSink) Emit(e *trace.Event) {
	if id := s.onPath[e.Track]; id > 0 {
		c := *e
		c.Track = id - 1
		s.path.Emit(&c)
		return
	}
	t := &s.tracks[e.Track]
	rank := t.Process - nccltrace.RankPID
	if e.Phase != trace.Slice || rank < 0 || rank >= int64(len(s.sums)) {
		return
	}
	h := mix(uint64(e.Start)) ^ mix(uint64(e.Dur)+1<<62) ^ mix(uint64(t.Thread)+3<<60)
	for _, c := range []byte(e.Name) {
		h = mix(h + uint64(c))
	}
	s.sums[rank] += mix(h)
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Close does nothing.
func (s *alikeSink) Close() error { return nil }

// namedAlike says in a process's name for how many ranks it stands.
type namedAlike struct {
	trace.Sink
	*sameRanks
	nodes map[string]bool // of ranks that are drawn, "node0"
	off   map[trace.TrackID]bool
}

// Track registers a lane.
func (s *namedAlike) Track(t trace.Track) trace.TrackID {
	if rank := t.Process - nccltrace.RankPID; rank >= 0 && rank < int64(len(s.count)) && s.count[rank] > 1 {
		t.ProcessName += fmt.Sprintf(" · and %d alike", s.count[rank]-1)
	}
	id := s.Sink.Track(t)
	if t.Process == nccltrace.LinksPID {
		node, _, _ := strings.Cut(t.ThreadName, " ")
		s.off[id] = strings.HasPrefix(node, "node") && !s.nodes[node]
	}
	return id
}

// Emit passes an event on, but for what links of nodes carry of which no rank is drawn.
func (s *namedAlike) Emit(e *trace.Event) {
	if !s.off[e.Track] {
		s.Sink.Emit(e)
	}
}

// Close adds the critical path. The largest classes come first.
func (s *namedAlike) Close() error {
	if o, ok := s.Sink.(trace.Orderer); ok {
		for rank, n := range s.count {
			if s.drawn(rank) {
				o.Order(nccltrace.RankPID+int64(rank), -int64(n))
			}
		}
	}
	ids := make([]trace.TrackID, len(s.path.Tracks))
	for i, t := range s.path.Tracks {
		ids[i] = s.Sink.Track(t)
	}
	for i := range s.path.Events {
		e := s.path.Events[i]
		e.Track = ids[e.Track]
		s.Sink.Emit(&e)
	}
	return s.Sink.Close()
}

// most of a trace's ranks that are not asked for, the largest classes first.
const mostDrawn = 16

// trim leaves out the smallest classes where there are more than mostDrawn, and counts
// their ranks.
func (a *sameRanks) trim() (left int) {
	var all []int32
	for rank := range a.first {
		if a.drawn(rank) {
			all = append(all, int32(rank))
		}
	}
	slices.SortStableFunc(all, func(x, y int32) int { return int(a.count[y] - a.count[x]) })
	for _, rank := range all[min(len(all), mostDrawn):] {
		a.first[rank] = -1
		left += int(a.count[rank])
	}
	return left
}
