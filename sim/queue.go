package sim

import (
	"cmp"
	"slices"

	"github.com/simccl/simccl/exec"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

// waited notes by how much longer a queue pair's message was on the wire than
// it would have been alone, times its bytes.
func (n *network) waited(l *queuePair) {
	alone := units.Time(l.sent) / units.Time(max(1, l.bound))
	wait := n.e.now - l.since - alone
	if wait <= 0 {
		return
	}
	for int(l.route) >= len(n.waits) {
		n.waits = append(n.waits, 0)
	}
	n.waits[l.route] += wait.Micros() * float64(l.sent) / simnet.NanoBytes
	n.e.tr.waited(n.e, l, wait)
}

// fullest is the link of a route that needs the longest for what it carries, -1
// without links.
func (n *network) fullest(route simnet.RouteID, links []exec.LinkLoad) int {
	at := -1
	for _, u := range n.w.net.Uses(route) {
		if l := int(u.Link); at < 0 || links[l].Ideal() > links[at].Ideal() {
			at = l
		}
	}
	return at
}

// queues estimates how many bytes wait before each link: by Little's law, the
// bytes that come in a time times how long they wait. A message waits where its
// way is fullest. Links are in the order of the model's.
func (n *network) queues(links []exec.LinkLoad, over units.Time) {
	if over <= 0 {
		return
	}
	for route, waits := range n.waits {
		if waits == 0 {
			continue
		}
		if l := n.fullest(simnet.RouteID(route), links); l >= 0 {
			links[l].Queue += units.Bytes(waits / over.Micros())
		}
	}
}

// backlog is what a message had waiting while it was on the wire, in the mean.
type backlog struct {
	route    simnet.RouteID
	from, to units.Time
	bytes    float64
}

// waited notes a message of the last operation that was held up by so much.
func (t *tracer) waited(e *engine, l *queuePair, wait units.Time) {
	if t == nil || !t.open || l.since < t.shift || t.depth < nccltrace.DetailStep {
		return
	}
	t.backlog = append(t.backlog, backlog{l.route, l.since, e.now, float64(l.sent) / simnet.NanoBytes * float64(wait) / float64(e.now-l.since)})
}

// queues writes how many bytes waited before each link, by time. Where a message
// waited is known when all loads are: at the fullest link of its way.
func (t *tracer) queues(e *engine, res *exec.Result) {
	type change struct {
		link  int
		at    units.Time
		bytes float64
	}
	var all []change
	for i := range t.backlog {
		b := &t.backlog[i]
		if l := e.nw.fullest(b.route, res.Links); l >= 0 {
			all = append(all, change{l, b.from, b.bytes}, change{l, b.to, -b.bytes})
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Or(cmp.Compare(a.link, b.link), cmp.Compare(a.at, b.at)) })
	waiting := 0.0
	for i, c := range all {
		waiting += c.bytes
		last := i+1 == len(all) || all[i+1].link != c.link
		if last {
			waiting = 0
		}
		if last || all[i+1].at != c.at {
			t.rec.Waiting(t.link(e, simnet.LinkID(c.link)), c.at-t.shift, units.Bytes(waiting+0.5))
		}
	}
}
