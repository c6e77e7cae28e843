package spec

import (
	"slices"

	"github.com/simccl/simccl/packet/cc"
)

// Timed reports whether ports do something by themselves: credits come back, or pauses end.
func (b *Buffer) Timed() bool { return b.Credits > 0 || b.Quanta > 0 }

// LeastQuanta is how many quanta a pause must last: half of them, 32 bytes each, leave room for one more
// frame and a pause of each priority ahead of the one that repeats it.
func (c *Config) LeastQuanta() int { return (c.Frames.Most() + 7*c.Frames.Pause + 31) / 32 }

// LeastFrame is the bytes of the shortest frame that there may be.
func (c *Config) LeastFrame() int {
	least := max(1, min(c.Frames.Ack, c.Frames.Pause, c.Frames.Header))
	if c.CC.CNPBytes > 0 {
		least = min(least, c.CC.CNPBytes)
	}
	return least
}

// Plain reports whether ports and receivers do what no shortcut of the engine knows.
func (c *Config) Plain() bool { return c.Buffer.Quanta > 0 || c.CutThrough > 0 || c.CC.CNPBytes > 0 }

// Steady reports whether no cable fails or loses frames, ports do nothing by themselves, and each cable ends
// at a switch.
func Steady(n *Network, c *Config) bool {
	return !c.Buffer.Timed() && len(c.Faults) == 0 &&
		!slices.ContainsFunc(n.Cables, func(c Cable) bool {
			return c.Loss > 0 || !n.Switch[c.A] && !n.Switch[c.B]
		})
}

// InOrder reports whether no frame of a flow overtakes another, and no acknowledgement another one.
func (c *Config) InOrder() bool {
	return !c.Repair.Selective && c.Buffer.Trim == 0 && c.Paths <= 1 && c.Routing.Balance == Hashed &&
		!slices.ContainsFunc(c.Faults, func(f Fault) bool { return f.Reroute })
}

// few is how many data frames a run has at most that keeps the order of events from the start: there it costs
// less than a millisecond.
const few = 1000

// Ordered reports whether the order of events counts from the start: where senders look at
// what each frame met, where losses are drawn in turn, and where there are few frames.
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

// Classes is a dense class for each priority in use, in order, and how many there are with that of
// control frames, 0.
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

// OneWay is by node the only one that it sends to, if it receives no flow and that sends none;
// -1 for all others.
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

// Receivers says of each node whether a flow leads to it.
func Receivers(nodes int, flows []Flow) []bool {
	receives := make([]bool, nodes)
	for i := range flows {
		receives[flows[i].Dst] = true
	}
	return receives
}

// Along is the directions of the cables of a path, twice the cable and one more for that from B to A.
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

// Lossy is the cables that lose frames, those together that draw from one stream.
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
