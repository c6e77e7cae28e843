package sim

import (
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// waited notes by how much longer a queue pair's message was on the wire than
// it would have been alone, times its bytes.
func (n *network) waited(l *queuePair) {
	alone := units.Time(l.sent) / units.Time(max(1, l.bound))
	wait := n.e.queue.Now - l.since - alone
	if wait <= 0 {
		return
	}
	for int(l.route) >= len(n.waits) {
		n.waits = append(n.waits, 0)
	}
	n.waits[l.route] += wait.Micros() * float64(l.sent) / wire.NanoBytes
	if obs := n.obs; obs != nil {
		obs.Delayed(l, wait)
	}
}

// fullest is the link of a route that needs the longest for what it carries, -1
// without links.
func (n *network) fullest(route wire.RouteID, links []exec.LinkLoad) int {
	at := -1
	for _, u := range n.w.Links.Uses(route) {
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
		if l := n.fullest(wire.RouteID(route), links); l >= 0 {
			links[l].Queue += units.Bytes(waits / over.Micros())
		}
	}
}
