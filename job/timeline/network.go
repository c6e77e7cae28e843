package timeline

import (
	"maps"
	"slices"
	"strings"

	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/trace/nccl"
)

// LeftOut returns the number of packet network states that were not kept because there were too many.
func (t *Timeline) LeftOut() int64 {
	if t.r.Network == nil {
		return 0
	}
	return t.r.Network.Left
}

// network writes the history of the packet network, on the same tracks as in the trace of one operation.
func (w *writer) network() {
	n := w.t.r.Network
	if n == nil {
		return
	}
	x := netWriter{rec: nccl.New(w.sink, nccl.Options{Detail: nccl.DetailStep}), links: map[int32]int{},
		ports: map[int32]nccl.PortTrace{}, pairs: make([]string, len(n.Pairs))}
	rank := func(place int32) string { return strings.TrimPrefix(w.name(int(place)), "rank ") }
	for i := range n.Pairs {
		p := &n.Pairs[i]
		x.pairs[i] = nccl.QueuePair(rank(p.Src), rank(p.Dst), p.Channel, p.Number, p.Of)
	}
	x.link = func(l int32) int {
		id, ok := x.links[l]
		if !ok {
			id = x.rec.Link(n.Link(l), 0)
			x.links[l] = id
		}
		return id
	}
	n.Each(x.state)
	for _, l := range slices.Sorted(maps.Keys(x.ports)) {
		p := x.ports[l]
		x.rec.PortEnds(x.link(l), &p, max(w.t.r.Elapsed(), p.At), 0)
	}
}

// netWriter writes the states of ports and queue pairs to a trace.
type netWriter struct {
	rec   *nccl.Recorder
	link  func(int32) int
	links map[int32]int // link of the Network → link of the recorder
	ports map[int32]nccl.PortTrace
	pairs []string
}

// state writes the state of a port or queue pair.
func (x *netWriter) state(s *job.PortState) {
	if s.Queue >= 0 {
		x.rec.Pace(x.pairs[s.Queue], s.At, float64(s.Rate)*1e-6)
		return
	}
	p := x.ports[s.Link]
	now := nccl.PortState{At: s.At, Queued: s.Queued, Marks: s.Marks, Paused: s.Paused, Credits: s.Credits}
	x.rec.PortChanges(x.link(s.Link), &p, &now, 0)
	p.Note(&now)
	x.ports[s.Link] = p
}
