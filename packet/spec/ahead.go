package spec

import (
	"slices"

	"github.com/simccl/simccl/packet/cc"
)

// Timed reports whether ports have events other than frames: returning credits, or pauses that run out.
func (b *Buffer) Timed() bool { return b.Credits > 0 || b.Quanta > 0 }

// LeastQuanta returns the shortest pause, in quanta, that can be renewed before it ends: half of it leaves
// room for one more frame and a PAUSE of each priority ahead of the renewal.
func (c *Config) LeastQuanta() int { return (c.Frames.Most() + 7*c.Frames.Pause + 31) / 32 }

// LeastFrame returns the bytes of the shortest frame.
func (c *Config) LeastFrame() int {
	least := max(1, min(c.Frames.Ack, c.Frames.Pause, c.Frames.Header))
	if c.CC.CNPBytes > 0 {
		least = min(least, c.CC.CNPBytes)
	}
	return least
}

// Plain reports whether a setting is on that the engine's fast paths do not handle.
func (c *Config) Plain() bool { return c.Buffer.Quanta > 0 || c.CutThrough > 0 || c.CC.CNPBytes > 0 }

// Steady reports whether only frames change the network (no faults, losses or port events) and every cable
// has a switch at one end.
func Steady(n *Network, c *Config) bool {
	return !c.Buffer.Timed() && len(c.Faults) == 0 &&
		!slices.ContainsFunc(n.Cables, func(c Cable) bool {
			return c.Loss > 0 || !n.Switch[c.A] && !n.Switch[c.B]
		})
}

// InOrder reports whether frames and acknowledgements of a flow never overtake each other.
func (c *Config) InOrder() bool {
	return !c.Repair.Selective && c.Buffer.Trim == 0 && c.Paths <= 1 && c.Routing.Balance == Hashed &&
		!slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Reroute })
}

// few is the number of data frames up to which the order of events is kept from the start, as that costs less
// than a millisecond.
const few = 1000

// Ordered reports whether the order of simultaneous events is kept from the start: congestion control reads
// each frame's telemetry or delay, losses are drawn from one stream, or there are few frames.
func Ordered(n *Network, flows []Flow, c *Config) bool {
	lossy := slices.ContainsFunc(n.Cables, func(c Cable) bool { return c.Loss > 0 })
	if c.EventOrderAlways || lossy || c.CC.Kind != cc.None && c.CC.Kind != cc.DCQCN {
		return true
	}
	frames, payload := int64(0), int64(max(1, c.Frames.Payload))
	for i := range flows {
		if frames += (flows[i].Bytes + payload - 1) / payload; frames > few {
			return false
		}
	}
	return true
}

// Classes maps each priority in use to a dense class, 1, 2, …, and returns the number of classes including
// class 0, control.
func Classes(flows []Flow) (n int, of [8]uint8) {
	var used [8]bool
	for i := range flows {
		used[flows[i].Priority] = true
	}
	n = 1
	for p := 1; p < 8; p++ {
		if used[p] {
			of[p] = uint8(n)
			n++
		}
	}
	return n, of
}

// OneWay returns, for each node that sends to a single node and receives nothing, that receiver if it sends
// nothing itself; -1 for all other nodes.
func OneWay(nodes int, flows []Flow) []int32 {
	const none, several = -1, -2
	to, gets, out := make([]int32, nodes), make([]bool, nodes), make([]int32, nodes)
	for i := range to {
		to[i] = none
	}
	for i := range flows {
		f := &flows[i]
		if gets[f.Dst] = true; to[f.Src] == none || to[f.Src] == f.Dst {
			to[f.Src] = f.Dst
		} else {
			to[f.Src] = several
		}
	}
	for i, dst := range to {
		if out[i] = none; dst >= 0 && !gets[i] && to[dst] == none {
			out[i] = dst
		}
	}
	return out
}

// Receivers reports by node whether it is the destination of a flow.
func Receivers(nodes int, flows []Flow) []bool {
	receives := make([]bool, nodes)
	for i := range flows {
		receives[flows[i].Dst] = true
	}
	return receives
}

// Along returns the links of a path of cables: 2·cable from A to B, 2·cable+1 back. Error: *InputError if it
// does not lead from src to dst.
func Along(n *Network, src, dst int32, path []int32) (there []int32, err error) {
	if len(path) == 0 {
		return nil, Wrong("no path from host %d to host %d", src, dst)
	}
	at := src
	for _, c := range path {
		if c < 0 || int(c) >= len(n.Cables) {
			return nil, Wrong("cable %d: there are cables 0 to %d", c, len(n.Cables)-1)
		}
		switch x := &n.Cables[c]; at {
		case x.A:
			at, there = x.B, append(there, 2*c)
		case x.B:
			at, there = x.A, append(there, 2*c+1)
		default:
			return nil, Wrong("cable %d does not begin at node %d", c, at)
		}
	}
	if at != dst {
		return nil, Wrong("its path ends at node %d in place of %d", at, dst)
	}
	return there, nil
}

// Lossy returns the groups of lossy cables; each group draws from one random stream.
func Lossy(n *Network) (all [][]int32) {
	var shared []int32
	for i := range n.Cables {
		switch c := &n.Cables[i]; {
		case c.Loss == 0:
		case c.SharedLoss:
			shared = append(shared, int32(i))
		default:
			all = append(all, []int32{int32(i)})
		}
	}
	if shared != nil {
		all = append(all, shared)
	}
	return all
}
