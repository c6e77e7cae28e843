package packet

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestTurnsChangeNothing: random flows over a star or leaves and spines have the same bits whether windows
// take turns, two delays each, or are those of all nodes: with pauses, marks of one stream drawn on both
// sides, idle times, flows that wait for others, and drops, after which windows are those of all nodes.
func TestTurnsChangeNothing(t *testing.T) {
	turns, again, both, pauses, marks := 0, 0, 0, int64(0), int64(0)
	for seed := range uint64(80) {
		r := rand.New(rand.NewPCG(seed, 11))
		leaves, per := 1+r.IntN(3), 2+r.IntN(5)
		hosts, spines := leaves*per, 1+r.IntN(3)
		if leaves == 1 {
			spines = 0
		}
		n := leafSpine(leaves, per, spines, 100e9, 0)
		for i := range n.Cables {
			n.Cables[i].Delay += units.Time(r.IntN(3)*r.IntN(2)) * 100 * units.Nanosecond
			if i >= hosts {
				n.Cables[i].Rate = []int64{25e9, 100e9, 400e9}[r.IntN(3)]
			}
		}
		c := settings([]CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP}[r.IntN(5)])
		c.Seed, c.WholeNanos, c.EventOrder = seed, true, r.IntN(2) == 0
		c.Buffer.Bytes, c.Buffer.Shift = []int64{2 << 20, 32 << 20}[r.IntN(2)]+int64(hosts)*120<<10,
			[]int{3, 5, 8}[r.IntN(3)]
		if r.IntN(6) == 0 {
			c.Buffer.HeadroomDelays = 0 // drops
		}
		c.AckFrom, c.AckHigh = int64(1+r.IntN(2)*3), r.IntN(4) == 0
		c.Marking[0].KMin, c.Marking[0].KMax = []int64{5e3, 100e3}[r.IntN(2)], 400e3
		if c.EventOrder {
			c.Stream = 8
		}
		var flows []Flow
		for i := range 4 + r.IntN(20) {
			f := Flow{Src: int32(r.IntN(hosts)), Dst: int32(r.IntN(hosts)), Bytes: 1 + r.Int64N(300_000),
				Priority: uint8(3 + r.IntN(2)), DstPort: 100,
				Start: units.Time(r.IntN(3)) * units.Time(r.IntN(40)) * units.Microsecond}
			if f.Src == f.Dst {
				f.Dst = (f.Dst + 1) % int32(hosts)
			}
			if i > 2 && r.IntN(3) == 0 {
				f.Deps = []int32{int32(r.IntN(i))}
			}
			flows = append(flows, f)
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d leaves of %d hosts: %s\nplain: %s", seed, c.CC.Kind, leaves, per,
				brief(got.result), brief(want.result))
		}
		if got.turns {
			if turns++; leaves > 1 && c.EventOrder && got.result.Marks > 0 {
				both++
			}
		} else if want.result.Drops > 0 {
			again++
		}
		pauses, marks = pauses+got.result.Pauses, marks+got.result.Marks
	}
	if turns == 0 || again == 0 || both == 0 || pauses == 0 || marks == 0 {
		t.Errorf("%d runs in turns, %d begun anew, %d whose two sides draw marks, %d pauses, %d marks: "+
			"each should occur", turns, again, both, pauses, marks)
	}
}

// TestMarksOfBothSides: marks of one stream are drawn in the order of time over leaves and spines also where
// windows take turns, which they do only where no sender minds a mark.
func TestMarksOfBothSides(t *testing.T) {
	drawn := 0
	for seed := range uint64(24) {
		r := rand.New(rand.NewPCG(seed, 12))
		n := leafSpine(3, 4, 2, 100e9, 0)
		for i := 12; i < len(n.Cables); i++ {
			n.Cables[i].Rate = []int64{40e9, 100e9, 200e9}[r.IntN(3)]
		}
		c := settings([]CCKind{NoCC, HPCC, Timely, DCQCN}[r.IntN(4)])
		c.Seed, c.WholeNanos, c.EventOrder, c.Stream = seed, true, true, 8
		c.Buffer.Bytes = []int64{4 << 20, 64 << 20}[r.IntN(2)]
		c.Marking = []Marking{{Rate: 40e9, KMin: 3e3, KMax: 2e6, PMax: 0.9},
			{Rate: 100e9, KMin: 3e3, KMax: 2e6, PMax: 0.9}}
		var flows []Flow
		for i := range 40 {
			flows = append(flows, Flow{Src: int32(4 + i%8), Dst: int32(r.IntN(4)), Bytes: 1 +
				r.Int64N(100_000), Priority: 3, DstPort: 100,
				Start: units.Time(r.IntN(60)) * units.Microsecond})
		}
		got, want := either(t, n, flows, c, false), either(t, n, flows, c, true)
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v: %s\nplain: %s", seed, c.CC.Kind, brief(got.result), brief(want.result))
		}
		if got.turns && c.CC.Kind == DCQCN {
			t.Errorf("seed %d: senders mind marks, but windows took turns", seed)
		}
		if got.turns && got.result.Marks > 100 {
			drawn++
		}
	}
	if drawn == 0 {
		t.Error("no run in turns has a hundred marks")
	}
}

// TestShortcutsChangeNothing: random flows, most of them alone on their way, over stars, chains of switches,
// leaves and spines have the same bits with and without shortcuts: with windows that hold them, rates that
// change, pauses, marks and flows that wait for others.
func TestShortcutsChangeNothing(t *testing.T) {
	pauses, marks := int64(0), int64(0)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		n, hosts := pairsNetwork(r)
		c := settings([]CCKind{NoCC, DCQCN}[r.IntN(2)])
		c.Seed, c.WholeNanos, c.EventOrder, c.AckHigh = seed, r.IntN(4) > 0, r.IntN(3) == 0, r.IntN(4) == 0
		c.Frames.Payload = []int{256, 1000, 4096}[r.IntN(3)]
		c.Buffer.Bytes, c.Buffer.Shift = []int64{1 << 20, 32 << 20}[r.IntN(2)]+int64(hosts)*220<<10,
			[]int{3, 5, 8}[r.IntN(3)]
		c.Marking[0].KMin, c.Marking[0].KMax = []int64{0, 5e3, 100e3}[r.IntN(3)], 400e3
		c.Marking = append(c.Marking, Marking{Rate: 25e9, KMin: 2e3, KMax: 400e3, PMax: 0.1})
		if c.EventOrder {
			c.Stream = 8
		}
		var flows []Flow
		for i := range 1 + r.IntN(hosts) {
			f := Flow{Src: int32(2 * i % hosts), Dst: int32((2*i + 1) % hosts), Bytes: 1 + r.Int64N(600_000),
				Priority: 3, DstPort: 100,
				Start:  units.Time(r.IntN(3)) * units.Time(r.IntN(30_000)) * units.Nanosecond,
				Window: []int64{0, 0, 20_000, 60_000, 200_000}[r.IntN(5)]}
			if r.IntN(5) == 0 {
				f.Bytes = int64(c.Frames.Payload) * (1 + r.Int64N(100))
			}
			if r.IntN(4) == 0 {
				f.Src, f.Dst = int32(r.IntN(hosts)), int32(r.IntN(hosts))
			}
			if f.Src == f.Dst {
				f.Dst = (f.Dst + 1) % int32(hosts)
			}
			if i > 1 && r.IntN(4) == 0 {
				f.Deps = []int32{int32(r.IntN(i))}
			}
			flows = append(flows, f)
		}
		got, want := begun(t, n, flows, c, false), begun(t, n, flows, c, true)
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d hosts, %d nodes: %s\nplain: %s", seed, c.CC.Kind, hosts, n.Nodes,
				brief(got.result), brief(want.result))
		}
		pauses, marks = pauses+got.result.Pauses, marks+got.result.Marks
	}
	if pauses == 0 || marks == 0 {
		t.Errorf("%d pauses, %d marks: each should occur", pauses, marks)
	}
}

// pairsNetwork is a random network with an even number of hosts: a star, leaves and spines, or a chain of
// switches.
func pairsNetwork(r *rand.Rand) (n *Network, hosts int) {
	hosts = 2 * (1 + r.IntN(4))
	switch r.IntN(3) {
	case 0:
		n = leafSpine(1, hosts, 0, 100e9, 0)
	case 1:
		n = leafSpine(2, hosts/2, 1+r.IntN(3), 100e9, 0)
	default:
		n = leafSpine(1, hosts, 0, 100e9, 0)
		last := int32(n.Nodes - 1)
		for range 1 + r.IntN(3) {
			n.Switch = append(n.Switch, true)
			n.Cables = append(n.Cables, Cable{A: last, B: int32(n.Nodes), Rate: 100e9,
				Delay: units.Microsecond})
			last = int32(n.Nodes)
			n.Nodes++
		}
		for i := 1; i < hosts; i += 2 { // receivers are at the other end
			n.Cables[i].B = last
		}
	}
	for i := range n.Cables {
		c := &n.Cables[i]
		if c.Delay += units.Time(r.IntN(3)*r.IntN(2)) * 300 * units.Nanosecond; r.IntN(8) == 0 {
			c.Rate = []int64{25e9, 40e9, 400e9}[r.IntN(3)]
		}
	}
	return n, hosts
}

// begun is either, begun anew where marks make the order of events count.
func begun(t *testing.T, n *Network, flows []Flow, c *Config, plain bool) played {
	t.Helper()
	ordered := false
	for inTurn := !plain; ; {
		e, err := build(n, flows, c, ordered, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		e.noFastPath, e.crowd = plain, 0
		switch _, err = e.run(); err {
		case nil:
			return e.played()
		case errOrder:
			ordered = true
		case errAgain:
			inTurn = false
		default:
			t.Fatal(err)
		}
	}
}
