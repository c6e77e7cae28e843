package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
)

const (
	// shownRanks is the largest communicator whose trace of steps has every rank without
	// being asked to.
	shownRanks = 128
	// mostDrawn bounds the ranks of a trace that are not asked for: the largest classes.
	mostDrawn = 16
)

// summarised reports whether a trace is to have equivalent ranks once.
func summarised(n int, opt *nccl.Options) bool {
	return n > shownRanks && opt.Detail >= nccl.DetailStep && opt.Mask == 0 && !opt.Periods
}

// equivalentRanks are the ranks of one operation by what they do: two of a class have the
// same slices at the same times, peers apart. It is the Sink of a simulation that finds
// the classes, and the warning of what a trace leaves out.
type equivalentRanks struct {
	trace.Sink
	seen   watcher
	nodeOf []int32
	first  []int32 // by rank: the lowest of its class, -1 where the class is not drawn
	count  []int32 // by rank: of the lowest of a class, how many it has
	NDrawn int
	Left   int // ranks of classes that are not drawn
}

// watchRanks returns the Sink of a simulation whose ranks are compared; nodeOf is each rank's
// node. The critical path, which needs the steps of all ranks, is found with it.
func watchRanks(nodeOf []int32, cancelled func() error) *equivalentRanks {
	e := &equivalentRanks{nodeOf: nodeOf}
	e.seen = watcher{sums: make([]uint64, len(nodeOf)), known: map[[2]int64]trace.TrackID{}}
	e.Sink = nccl.CriticalPath(&e.seen, cancelled)
	return e
}

// Error counts the ranks that are drawn, and those that are not.
func (e *equivalentRanks) Error() string {
	left := ""
	if e.Left > 0 {
		left = fmt.Sprintf(" The other %d ranks do something else.", e.Left)
	}
	return fmt.Sprintf("the trace draws %d of %d ranks, each for all that do the same at the same times; "+
		"the name of its process says for how many.%s --trace-ranks %s draws every rank, 0-7 some",
		e.NDrawn, len(e.first), left, allRanks)
}

// Drawn reports whether a rank is drawn: the lowest of its class.
func (e *equivalentRanks) Drawn(rank int) bool { return e.first[rank] == int32(rank) }

// Close ends the simulation and finds the classes.
func (e *equivalentRanks) Close() error {
	if err := e.Sink.Close(); err != nil {
		return err
	}
	n := len(e.seen.sums)
	e.first, e.count = make([]int32, n), make([]int32, n)
	lowest := map[uint64]int32{}
	var classes []int32
	for rank, sum := range e.seen.sums {
		first, ok := lowest[sum]
		if !ok {
			first = int32(rank)
			lowest[sum], classes = first, append(classes, first)
		}
		e.first[rank] = first
		e.count[first]++
	}
	slices.SortStableFunc(classes, func(x, y int32) int { return int(e.count[y] - e.count[x]) })
	e.NDrawn = min(len(classes), mostDrawn)
	for _, rank := range classes[e.NDrawn:] {
		e.first[rank] = -1
		e.Left += int(e.count[rank])
	}
	return nil
}

// Draw returns the Sink of the trace: it names the classes, has the links of the nodes of
// drawn ranks, and the critical path of all.
func (e *equivalentRanks) Draw(to trace.Sink) trace.Sink {
	s := &sharedTrace{Sink: to, equivalentRanks: e, nodes: map[string]bool{}, off: map[trace.TrackID]bool{}}
	for rank := range e.first {
		if e.Drawn(rank) {
			s.nodes[fmt.Sprintf("node%d", e.nodeOf[rank])] = true
		}
	}
	return s
}

// watcher sums up what each rank does and keeps the critical path.
type watcher struct {
	sums   []uint64 // by rank; the order of events does not matter
	tracks []trace.Track
	known  map[[2]int64]trace.TrackID
	path   trace.Memory
	onPath []trace.TrackID // by track, plus one; 0: not of the path
}

// Track keeps a lane.
func (s *watcher) Track(t trace.Track) trace.TrackID {
	key := [2]int64{t.Process, t.Thread}
	if id, ok := s.known[key]; ok {
		return id
	}
	id := trace.TrackID(len(s.tracks))
	s.known[key] = id
	path := trace.TrackID(0)
	if t.Process == nccl.CriticalPID {
		path = s.path.Track(t) + 1
	}
	s.tracks, s.onPath = append(s.tracks, t), append(s.onPath, path)
	return id
}

// Emit adds a slice to its rank.
func (s *watcher) Emit(e *trace.Event) {
	if id := s.onPath[e.Track]; id > 0 {
		c := *e
		c.Track = id - 1
		s.path.Emit(&c)
		return
	}
	t := &s.tracks[e.Track]
	rank := t.Process - nccl.RankPID
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
func (s *watcher) Close() error { return nil }

// sharedTrace writes the trace of the drawn ranks.
type sharedTrace struct {
	trace.Sink
	*equivalentRanks
	nodes map[string]bool // of drawn ranks, "node0"
	off   map[trace.TrackID]bool
}

// Track registers a lane.
func (s *sharedTrace) Track(t trace.Track) trace.TrackID {
	if rank := t.Process - nccl.RankPID; rank >= 0 && rank < int64(len(s.count)) && s.count[rank] > 1 {
		t.ProcessName += fmt.Sprintf(" · and %d equivalent", s.count[rank]-1)
	}
	id := s.Sink.Track(t)
	if t.Process == nccl.LinksPID {
		node, _, _ := strings.Cut(t.ThreadName, " ")
		s.off[id] = strings.HasPrefix(node, "node") && !s.nodes[node]
	}
	return id
}

// Emit passes an event on, but for loads of links of other nodes.
func (s *sharedTrace) Emit(e *trace.Event) {
	if !s.off[e.Track] {
		s.Sink.Emit(e)
	}
}

// Close adds the critical path. The largest classes come first.
func (s *sharedTrace) Close() error {
	if o, ok := s.Sink.(trace.Orderer); ok {
		for rank, n := range s.count {
			if s.Drawn(rank) {
				o.Order(nccl.RankPID+int64(rank), -int64(n))
			}
		}
	}
	path := &s.seen.path
	ids := make([]trace.TrackID, len(path.Tracks))
	for i, t := range path.Tracks {
		ids[i] = s.Sink.Track(t)
	}
	for i := range path.Events {
		e := path.Events[i]
		e.Track = ids[e.Track]
		s.Sink.Emit(&e)
	}
	return s.Sink.Close()
}
