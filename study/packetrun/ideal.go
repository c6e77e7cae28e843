package packetrun

import (
	"math"
	"math/bits"
	"slices"

	"github.com/simccl/simccl/packet"
)

// ideals are the times that flows would take alone, as the HPCC simulator computes them (third.cc:222-268,
// 917-923 and 165-167 of commit 9f4be2a): the delay of the route there and back, a payload's transmission
// over each of its links, and all frames, with headers and without telemetry, over the slowest. The bytes of
// one frame are so counted twice: a flow that meets no other can be faster by that.
type ideals struct {
	near            [][]neighbour // by node, in the order of their numbers
	switches        []bool
	payload, header int64
	to              map[int32][]route // by destination: from each node
}

// neighbour is the node behind a cable; of several cables to it the last, as the simulator has it.
type neighbour struct {
	node, cable int32
	cost        cost
}

// cost is a cable's delay and rate in the units of the HPCC simulator.
type cost struct {
	delay int64 // ns
	rate  int64 // bit/s
}

// route is the way to a destination: ns, ns, bit/s.
type route struct{ delay, transmission, rate int64 }

func newIdeals(n *packet.Network, payload, header int) *ideals {
	x := &ideals{near: make([][]neighbour, n.Nodes), switches: n.Switch, payload: int64(payload),
		header: int64(header), to: map[int32][]route{}}
	for i, c := range n.Cables {
		for _, ends := range [][2]int32{{c.A, c.B}, {c.B, c.A}} {
			b := neighbour{ends[1], int32(i), cost{int64(c.Delay) / nanosecond, c.Rate}}
			all := &x.near[ends[0]]
			if k := slices.IndexFunc(*all, func(o neighbour) bool { return o.node == b.node }); k >= 0 {
				(*all)[k] = b
				continue
			}
			*all = append(*all, b)
		}
	}
	for _, all := range x.near {
		slices.SortFunc(all, func(a, b neighbour) int { return int(a.node - b.node) })
	}
	return x
}

// routes returns the way from each node to a host, over switches.
func (x *ideals) routes(dst int32) []route {
	if r := x.to[dst]; r != nil {
		return r
	}
	all, queue := make([]route, len(x.near)), []int32{dst}
	seen := make([]bool, len(x.near))
	all[dst], seen[dst] = route{rate: math.MaxInt64}, true
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, b := range x.near[at] {
			if seen[b.node] {
				continue
			}
			seen[b.node] = true
			all[b.node] = route{all[at].delay + b.cost.delay,
				all[at].transmission + lasts(x.payload, b.cost.rate), min(all[at].rate, b.cost.rate)}
			if x.switches[b.node] {
				queue = append(queue, b.node)
			}
		}
	}
	x.to[dst] = all
	return all
}

// of returns the ideal time of a flow in ns.
func (x *ideals) of(src, dst int32, bytes int64) int64 {
	r := x.routes(dst)[src]
	return 2*r.delay + r.transmission + lasts(bytes+((bytes-1)/x.payload+1)*x.header, r.rate)
}

// lasts returns how long bytes last at a rate in bit/s: ns, without a fraction.
func lasts(bytes, rate int64) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 8_000_000_000)
	q, _ := bits.Div64(hi, lo, uint64(rate))
	return int64(q)
}
