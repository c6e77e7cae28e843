package simfiles

import (
	"slices"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/units"
)

// Sizes of frames: PPP 14, IPv4 20, UDP 8 and sequence 6; acknowledgements are
// 60 bytes at least, with INT 14+20+12 and the records (model/rdma-hw.cc).
const (
	header    = 48
	ack       = 60
	ackFields = 46
	pause     = 43
	// Acknowledgements travel in the priority of their flow; at hosts the pauses of this priority hold them,
	// or none with ACK_HIGH_PRIO (scratch/third.cc, ack_q_idx).
	ackHold = 3
	// network/utils/int-header.h: five records of 8 bytes and a count; a time stamp.
	records = 42
	stamp   = 8
)

// lossStream is the random stream of losses: the 50th of the streams with a fixed number, which are in the
// upper half (scratch/third.cc, core/model/random-variable-stream.cc).
const lossStream = 1<<63 + 50

// Sizes and thresholds of model/switch-mmu.cc and model/rdma-hw.cc.
const (
	reserve      = 4 << 10
	resumeOffset = 3 << 10
	nackInterval = 500 * units.Microsecond
)

// micros returns a period, truncated to whole microseconds as in ns-3 (core/model/nstime.h, MicroSeconds
// takes an integer).
func micros(us float64) units.Time { return units.Time(us) * units.Microsecond }

// configure translates the settings of the file into packet's.
func (x *NS3Scenario) configure(s *settings) {
	c := packet.Config{
		Frames: packet.Frames{Payload: int(s.payload), Header: header, Ack: ack, Pause: pause},
		Buffer: packet.Buffer{Bytes: s.buffer << 20, Reserve: reserve, ResumeOffset: resumeOffset,
			Shift: int(s.shift), HeadroomDelays: int(s.headroom)},
		WholeNanos: true, AckHold: ackHold, AckFrom: s.ackInterval, AckChunk: s.chunk, NackGap: nackInterval,
		Stop: units.Time(fixed(s.stop, 1e9)) * units.Nanosecond, EventOrder: true, Stream: x.streams(),
		LossStream: lossStream,
	}
	c.Repair.NoSkip = true
	if s.backTo0 {
		c.Repair.BackTo = s.chunk
	}
	if s.ackHigh {
		c.AckHold = -1
	}
	x.Marking = s.marking()
	if s.qcn {
		c.Marking = x.Marking
	}
	c.CC = packet.CC{Unpaced: !s.bound, VarWindow: s.varWin, MinRate: s.least, AI: s.ai, HAI: s.hai,
		Gain:        s.gain,
		AlphaPeriod: micros(s.alpha), DecreasePeriod: micros(s.decrease), IncreasePeriod: micros(s.timer),
		FastRecovery: int32(s.fast), ClampTarget: s.clamp,
		Utilisation: s.target, Stages: int32(s.miThresh), FastReact: s.fastReact, MultiRate: s.multiRate,
		SampleFeedback: s.sample, Multi: s.intMulti, RateAI: s.dctcp}
	switch s.mode {
	case 1:
		c.CC.Kind = packet.DCQCN
	case 3:
		c.CC.Kind, c.CC.RateCodes = packet.HPCC, true
	case 7:
		c.CC.Kind = packet.Timely
	case 8:
		c.CC.Kind = packet.DCTCP
	}
	x.Config = c
	x.Carry(CarriedBy(c.CC.Kind))
	if s.hasWin || s.mode == 3 {
		x.windows(s)
	}
}

// Carry adds bytes for congestion control to the sizes of frames.
func (x *NS3Scenario) Carry(bytes int) {
	x.Carried = bytes
	x.Config.Frames.Header, x.Config.Frames.Ack = header+bytes, max(ack, ackFields+bytes)
}

// CarriedBy returns the bytes that ns-3's frames carry for a congestion control: HPCC's INT or TIMELY's time
// stamp.
func CarriedBy(kind packet.CCKind) int {
	switch kind {
	case packet.HPCC:
		return records
	case packet.Timely:
		return stamp
	}
	return 0
}

// streams returns the number of the first random stream that is free for marks: ns-3 gives six to each node,
// two to the error model of each link that has its own, and two to the shared error model.
func (x *NS3Scenario) streams() uint64 {
	own := 0
	for _, c := range x.Network.Cables {
		if c.Loss > 0 && !c.SharedLoss {
			own++
		}
	}
	return uint64(6*x.Network.Nodes + 2 + 2*own)
}

// marking returns the ECN thresholds of the rates that occur in all three maps (KMIN, KMAX, PMAX).
func (s *settings) marking() (m []packet.Marking) {
	var rates []int64
	for r := range s.kmin { //lint:sorted below
		if s.marked(r) {
			rates = append(rates, r)
		}
	}
	slices.Sort(rates)
	for _, r := range rates { // above KMAX all are marked, even where KMIN is larger (switch-mmu.cc)
		m = append(m, packet.Marking{Rate: r, KMin: 1000 * min(s.kmin[r], s.kmax[r]), KMax: 1000 * s.kmax[r],
			PMax: s.pmax[r]})
	}
	return m
}

// windows sets windows and base round trips: with GLOBAL_T the largest of all pairs of hosts, else the values
// of each flow's pair.
func (x *NS3Scenario) windows(s *settings) {
	at := adjacent(&x.Network)
	var most pair
	byDst := map[int32][]pair{}
	for v := range x.Network.Nodes {
		if x.Network.Switch[v] {
			continue
		}
		to := x.measure(at, int32(v), s.payload)
		for u, p := range to {
			if !x.Network.Switch[u] && u != v {
				most.rtt, most.bdp = max(most.rtt, p.rtt), max(most.bdp, p.bdp)
			}
		}
		if !s.globalT {
			byDst[int32(v)] = to
		}
	}
	if s.hasWin {
		x.Config.CC.Window = most.bdp
	}
	x.Config.CC.BaseRTT = units.Time(most.rtt) * units.Nanosecond
	if s.globalT {
		return
	}
	for i := range x.Flows {
		f := &x.Flows[i]
		p := byDst[f.Dst][f.Src]
		f.BaseRTT = units.Time(p.rtt) * units.Nanosecond
		if s.hasWin {
			f.Window = p.bdp
		}
	}
}

// pair is the base round trip (ns) and the bandwidth-delay product (bytes) of two hosts.
type pair struct{ rtt, bdp int64 }

// near is a neighbour and the cable to it.
type near struct {
	node  int32
	cable *packet.Cable
}

// adjacent lists each node's neighbours in ns-3's order (hosts, then switches from last to first); of
// parallel cables the last is used.
func adjacent(n *packet.Network) [][]near {
	at := make([][]near, n.Nodes)
	join := func(a, b int32, c *packet.Cable) {
		for i := range at[a] {
			if at[a][i].node == b {
				at[a][i].cable = c
				return
			}
		}
		at[a] = append(at[a], near{b, c})
	}
	for i := range n.Cables {
		c := &n.Cables[i]
		join(c.A, c.B, c)
		join(c.B, c.A, c)
	}
	for _, l := range at {
		slices.SortFunc(l, func(a, b near) int {
			if n.Switch[a.node] != n.Switch[b.node] {
				if n.Switch[b.node] {
					return -1
				}
				return 1
			}
			if n.Switch[a.node] {
				return int(b.node - a.node)
			}
			return int(a.node - b.node)
		})
	}
	return at
}

// measure returns the pair of values for each node and host dst, along the first shortest path of a
// breadth-first search.
func (x *NS3Scenario) measure(at [][]near, dst int32, payload int64) []pair {
	n := x.Network.Nodes
	delay, send, rate, seen := make([]int64, n), make([]int64, n), make([]int64, n), make([]bool, n)
	seen[dst] = true
	rate[dst] = 1 << 62
	queue := []int32{dst}
	for i := 0; i < len(queue); i++ {
		v := queue[i]
		for _, k := range at[v] {
			if seen[k.node] {
				continue
			}
			seen[k.node] = true
			delay[k.node] = delay[v] + int64(k.cable.Delay/units.Nanosecond)
			send[k.node] = send[v] + payload*8_000_000_000/k.cable.Rate
			rate[k.node] = min(rate[v], k.cable.Rate)
			if x.Network.Switch[k.node] {
				queue = append(queue, k.node)
			}
		}
	}
	to := make([]pair, n)
	for u := range to {
		if seen[u] && int32(u) != dst {
			rtt := 2*delay[u] + send[u]
			to[u] = pair{rtt, int64(float64(rtt) * float64(rate[u]) / 1e9 / 8)}
		}
	}
	return to
}
