package sim

import (
	"github.com/simccl/simccl/exec"
	simnet "github.com/simccl/simccl/sim/net"
	"github.com/simccl/simccl/units"
)

// waited notes by how much longer a queue pair's message was on the wire than
// it would have been alone, times its bytes.
func (n *network) waited(l *queuePair) {
	c := &n.conns[l.conn]
	alone := units.Time(l.sent) / units.Time(max(1, c.bound))
	wait := n.e.now - l.since - alone
	if wait <= 0 {
		return
	}
	for int(l.route) >= len(n.waits) {
		n.waits = append(n.waits, 0)
	}
	n.waits[l.route] += wait.Micros() * float64(l.sent) / simnet.NanoBytes
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
		fullest := -1
		for _, u := range n.w.net.Uses(simnet.RouteID(route)) {
			if l := int(u.Link); fullest < 0 || links[l].Ideal() > links[fullest].Ideal() {
				fullest = l
			}
		}
		if fullest >= 0 {
			links[fullest].Queue += units.Bytes(waits / over.Micros())
		}
	}
}
