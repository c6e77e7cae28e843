package host

import (
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// noteDelay adds up by how much longer a queue pair's message was on the wire
// than it would have been alone, times its bytes.
func (n *Network) noteDelay(l *QueuePair) {
	alone := units.Time(l.Sent) / units.Time(max(1, l.bound))
	wait := n.queue.Now - l.Since - alone
	if wait <= 0 {
		return
	}
	for int(l.Route) >= len(n.waits) {
		n.waits = append(n.waits, 0)
	}
	n.waits[l.Route] += wait.Micros() * float64(l.Sent) / wire.NanoBytes
	if obs := n.Observer; obs != nil {
		obs.Delayed(l, wait)
	}
}

// Fullest is the link of a route that needs the longest for what it carries, -1
// without links.
func (n *Network) Fullest(r wire.RouteID, links []exec.LinkLoad) int {
	at := -1
	for _, u := range n.Table.Links.Uses(r) {
		if l := int(u.Link); at < 0 || links[l].Ideal() > links[at].Ideal() {
			at = l
		}
	}
	return at
}

// Queues estimates how many bytes wait before each link: by Little's law, the
// bytes that come in a time times how long they wait. A message waits where its
// route is fullest. Links are in the order of the model's.
func (n *Network) Queues(links []exec.LinkLoad, over units.Time) {
	if over <= 0 {
		return
	}
	for r, waits := range n.waits {
		if waits == 0 {
			continue
		}
		if l := n.Fullest(wire.RouteID(r), links); l >= 0 {
			links[l].Queue += units.Bytes(waits / over.Micros())
		}
	}
}
