package host

import (
	"math/bits"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim/wire"
	"github.com/simccl/simccl/units"
)

// noteDelay adds up by how much longer a queue pair's message was on the wire
// than it would have been alone, times its bytes.
func (n *Network) noteDelay(l *QueuePair) {
	rate := l.bound
	if l.rate > 0 {
		rate = l.rate
	}
	alone := units.Time(l.Sent) / units.Time(max(1, rate))
	wait := n.queue.Now - l.Since - alone
	if wait <= 0 {
		return
	}
	for int(l.Route) >= len(n.waits) {
		n.waits = append(n.waits, integral{})
	}
	n.waits[l.Route].add(uint64(l.Sent), uint64(wait))
	if obs := n.Observer; obs != nil {
		obs.Delayed(l, wait)
	}
}

// Fullest is the link of a route that needs the longest for what it carries, of equal ones the
// first on its path; -1 without links.
func (n *Network) Fullest(r wire.RouteID, links []exec.LinkLoad) int {
	at := -1
	for _, u := range n.Table.Path(r) {
		if l := int(u.Link); at < 0 || links[l].Ideal() > links[at].Ideal() {
			at = l
		}
	}
	return at
}

// Queues estimates how many bytes wait before each link: by Little's law, the
// bytes that come in a time times how long they wait. A message waits where its
// route is fullest; where it represents several, as many as cross that link wait.
// Links are in the order of the model's.
func (n *Network) Queues(links []exec.LinkLoad, over units.Time) {
	if over <= 0 {
		return
	}
	sums := make([]integral, len(links))
	for r, waits := range n.waits {
		if waits == (integral{}) {
			continue
		}
		if l := n.Fullest(wire.RouteID(r), links); l >= 0 {
			sums[l].grow(waits, n.crossing(wire.RouteID(r), l))
		}
	}
	for l := range sums {
		links[l].Queue += units.Bytes(sums[l].float() / wire.NanoBytes / float64(over))
	}
}

// crossing is how many messages cross a link where one takes a route.
func (n *Network) crossing(r wire.RouteID, link int) uint64 {
	if n.Folded {
		for _, u := range n.Table.Path(r) {
			if int(u.Link) == link {
				return uint64(u.Count / max(1, n.weights[weighed{r, u.Link}]))
			}
		}
	}
	return 1
}

// weighed is a link that each message of a route uses several times over.
type weighed struct {
	route wire.RouteID
	link  wire.LinkID
}

// Weigh notes how many times over each message of a folded route uses a link.
func (n *Network) Weigh(r wire.RouteID, l wire.LinkID, by int32) {
	if n.weights == nil {
		n.weights = map[weighed]int32{}
	}
	n.weights[weighed{r, l}] = by
}

// integral is a sum of work times how long it waited, in nano-bytes times
// picoseconds: 128 bits, for a sum must not depend on how it was split up.
type integral struct{ hi, lo uint64 }

func (s *integral) add(work, wait uint64) {
	hi, lo := bits.Mul64(work, wait)
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, lo, 0)
	s.hi, _ = bits.Add64(s.hi, hi, carry)
}

// minus returns what a sum has grown by since an earlier one.
func (s integral) minus(before integral) integral {
	lo, borrow := bits.Sub64(s.lo, before.lo, 0)
	hi, _ := bits.Sub64(s.hi, before.hi, borrow)
	return integral{hi, lo}
}

// grow adds another sum so many times.
func (s *integral) grow(by integral, times uint64) {
	s.add(by.lo, times)
	s.hi += by.hi * times
}

func (s integral) float() float64 { return float64(s.hi)*(1<<64) + float64(s.lo) }
