package tap

import (
	"cmp"
	"maps"
	"slices"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/internal/host"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// backlog is the mean number of bytes queued while a message was on the wire.
type backlog struct {
	route    wire.RouteID
	from, to units.Time
	bytes    float64
}

// waited notes a message of the last operation that was held up by so much.
func (t *Tracer) waited(l *host.QueuePair, wait units.Time) {
	if !t.open || l.Since < t.shift || t.depth < nccl.DetailStep {
		return
	}
	t.backlog = append(t.backlog, backlog{l.Route, l.Since, t.e.Queue.Now, float64(l.Sent) / wire.NanoBytes *
		float64(wait) / float64(t.e.Queue.Now-l.Since)})
}

// queues writes how many bytes waited before each link, by time. Where a message
// waited is known when all loads are: at the fullest link of its route.
func (t *Tracer) queues(res *exec.Result) {
	if t.ports != nil { // they were reported
		for _, l := range slices.Sorted(maps.Keys(t.ports)) {
			if p := t.ports[l]; p.Paused {
				t.rec.PortEnds(t.link(l), &p, t.e.Queue.Now, t.shift)
			}
		}
		return
	}
	type change struct {
		link  int
		at    units.Time
		bytes float64
	}
	var all []change
	for i := range t.backlog {
		b := &t.backlog[i]
		if l := t.e.Net.Fullest(b.route, res.Links); l >= 0 {
			all = append(all, change{l, b.from, b.bytes}, change{l, b.to, -b.bytes})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.link, b.link), cmp.Compare(a.at, b.at))
	})
	waiting := 0.0
	for i, c := range all {
		waiting += c.bytes
		last := i+1 == len(all) || all[i+1].link != c.link
		if last {
			waiting = 0
		}
		if last || all[i+1].at != c.at {
			t.rec.Waiting(t.link(wire.LinkID(c.link)), c.at-t.shift, units.Bytes(waiting+0.5))
		}
	}
}
