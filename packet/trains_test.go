package packet

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/simccl/simccl/packet/internal/crew"
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
		c := settings([]CCKind{NoCC, DCQCN, HPCC, Timely, DCTCP, Pint}[r.IntN(6)])
		c.Seed, c.WholeNanos, c.EventOrder = seed, true, r.IntN(2) == 0
		c.Buffer.Bytes, c.Buffer.Shift = []int64{2 << 20, 32 << 20}[r.IntN(2)]+int64(hosts)*120<<10,
			[]int{3, 5, 8}[r.IntN(3)]
		if r.IntN(6) == 0 {
			c.Buffer.HeadroomDelays = 0 // drops
		}
		c.AckFrom, c.AckHigh = int64(1+r.IntN(2)*3), r.IntN(4) == 0
		c.Marking[0].KMin, c.Marking[0].KMax = []int64{5e3, 100e3}[r.IntN(2)], 400e3
		if c.CC.Kind == Pint {
			c.CC.PintBase, c.CC.PintShare = 1.05, 1
		}
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

// TestTrainsChangeNothing: random flows, most of them alone on their way, over stars, chains of switches,
// leaves and spines have the same bits whether their frames go in trains or one by one: with windows that
// hold them, rates that change, pauses, marks, flows that wait for others, and runs that stop.
func TestTrainsChangeNothing(t *testing.T) {
	trains, cut, pauses, marks, hops := int64(0), 0, int64(0), int64(0), int64(0)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		n, hosts := trainNetwork(r)
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
		if r.IntN(4) == 0 {
			c.Stop = units.Time(10+r.IntN(60)) * units.Microsecond
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
		got, want := begun(t, n, flows, c, false, false), begun(t, n, flows, c, false, true)
		if c.Stop == 0 { // what is in progress then depends on where windows end
			if plain := begun(t, n, flows, c, true, false); !reflect.DeepEqual(got.result, plain.result) ||
				!reflect.DeepEqual(got.links, plain.links) {
				t.Errorf("seed %d: %s\nplain: %s", seed, brief(got.result), brief(plain.result))
			}
		}
		if !reflect.DeepEqual(got.result, want.result) || !reflect.DeepEqual(got.links, want.links) {
			t.Errorf("seed %d, %v, %d hosts, %d nodes: %s\none by one: %s", seed, c.CC.Kind, hosts, n.Nodes,
				brief(got.result), brief(want.result))
		}
		if want.trains > 0 {
			t.Fatalf("seed %d: a run of single frames has trains", seed)
		}
		if trains, hops = trains+got.trains, hops+int64(got.result.FrameHops); got.trains > 0 &&
			got.trains < int64(got.result.FrameHops) {
			cut++
		}
		pauses, marks = pauses+got.result.Pauses, marks+got.result.Marks
	}
	if t.Logf("%d of %d frames went in trains; %d pauses, %d marks", trains, hops, pauses, marks); trains <
		hops/10 || cut == 0 || pauses == 0 || marks == 0 {
		t.Errorf("%d of %d frames went in trains, in %d runs not all, %d pauses, %d marks: each should occur",
			trains, hops, cut, pauses, marks)
	}
}

// trainNetwork is a random network with an even number of hosts: a star, leaves and spines, or a chain of
// switches.
func trainNetwork(r *rand.Rand) (n *Network, hosts int) {
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
func begun(t *testing.T, n *Network, flows []Flow, c *Config, plain, single bool) played {
	t.Helper()
	ordered := false
	for inTurn := !plain; ; {
		e, err := build(n, flows, c, ordered, inTurn)
		if err != nil {
			t.Fatal(err)
		}
		e.plain, e.single, e.crowd = plain, single, 0
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

// trains is what share of the frames that leave switches are in runs of at least so many of one flow, where
// nothing else comes to their port in the window, or nothing else but acknowledgements; and that come to
// their port by one port, all of which leave by it.
type trains struct {
	hops, records, inPlace int
	pure, mixed            map[int]int
}

// count simulates flows and counts.
func count(t *testing.T, n *Network, flows []Flow, c *Config) trains {
	t.Helper()
	e, err := build(n, flows, c, false, false)
	if err != nil {
		t.Fatal(err)
	}
	all, w := trains{pure: map[int]int{}, mixed: map[int]int{}}, &e.workers[0]
	for now, busy := e.next(0), 0; e.live > 0 && now != never; {
		end := now + e.look
		e.began = now
		e.do(w, crew.Order{Phase: crew.Take, End: end})
		busy = w.busy
		e.settle()
		for i := range e.switches {
			all.window(e, &e.switches[i])
		}
		e.do(w, crew.Order{Phase: crew.Act, End: end})
		if now = end; busy == 0 {
			now = e.next(end)
		}
	}
	return all
}

// window counts what arrived at a switch in a window.
func (a *trains) window(e *engine, s *swtch) {
	type place struct {
		at   int64
		port uint32
		f    *frame
	}
	by, ways := map[uint16][]place{}, map[uint32]map[uint16]bool{}
	for i := range s.arrived {
		if f, port := &s.arrived[i], s.entry(e, i); f.Flow >= 0 {
			out := e.outs[f.Route]
			by[out] = append(by[out], place{f.At, port, f})
			if ways[port] == nil {
				ways[port] = map[uint16]bool{}
			}
			ways[port][out] = true
		}
	}
	equal := func(x, y place) bool {
		return x.f.Flow == y.f.Flow && (x.f.Flags^y.f.Flags)&flagAck == 0 && x.f.Size == y.f.Size
	}
	for _, some := range by {
		slices.SortStableFunc(some, func(x, y place) int { return int(x.at - y.at) })
		a.hops, a.records = a.hops+len(some), a.records+1
		one, pure, data := true, true, map[int32]int{}
		for i, x := range some {
			one, pure = one && x.port == some[0].port, pure && equal(x, some[0])
			if i > 0 && !equal(x, some[i-1]) {
				a.records++
			}
			if x.f.Flags&flagAck == 0 {
				data[x.f.Flow]++
			}
		}
		if one && len(ways[some[0].port]) == 1 {
			a.inPlace += len(some)
		}
		for _, k := range []int{2, 4, 8} {
			if pure && len(some) >= k {
				a.pure[k] += len(some)
			}
			for _, n := range data {
				if !pure && len(data) == 1 && n >= k {
					a.mixed[k] += n
				}
			}
		}
	}
}

// TestTrains counts trains of frames (go test -run TestTrains -v): there are many where a flow is alone on
// its links, and next to none where flows meet, as docs/adr/0026 has it. What it counts is a bound for what
// goes in trains.
func TestTrains(t *testing.T) {
	ring := func(hosts int, bytes int64) (flows []Flow) {
		for i := range hosts {
			flows = append(flows, Flow{Src: int32(i), Dst: int32((i + 1) % hosts), Bytes: bytes, Priority: 3,
				DstPort: 100})
		}
		return flows
	}
	all := func(hosts int, bytes int64) (flows []Flow) {
		for k := 1; k < hosts; k++ {
			for i := range hosts {
				flows = append(flows, Flow{Src: int32(i), Dst: int32((i + k) % hosts), Bytes: bytes,
					Priority: 3, DstPort: 100})
			}
		}
		return flows
	}
	into := func(hosts int, bytes int64) (flows []Flow) {
		for i := 1; i < hosts; i++ {
			flows = append(flows, Flow{Src: int32(i), Bytes: bytes, Priority: 3, DstPort: 100})
		}
		return flows
	}
	for _, c := range []struct {
		name        string
		n           *Network
		flows       []Flow
		least, most float64 // share in trains of 4 and more on a port where nothing else comes
	}{
		{"one flow", leafSpine(1, 2, 0, 100e9, 0), ring(2, 1_000_000)[:1], 0.99, 1},
		{"ring of 16 hosts, 2 leaves, 8 spines", leafSpine(2, 8, 8, 100e9, 0), ring(16, 1_000_000), 0.1, 0.4},
		{"permutation of 32 hosts, 4 leaves, 8 spines", leafSpine(4, 8, 8, 100e9, 0),
			permuted(32, 8, 1_000_000), 0.05, 0.4},
		{"alltoall of 16 hosts, 2 leaves, 8 spines", leafSpine(2, 8, 8, 100e9, 0), all(16, 62_000), 0, 0.02},
		{"incast of 32 to 1", leafSpine(1, 33, 0, 100e9, 0), into(33, 100_000), 0, 0.1},
	} {
		x := count(t, c.n, c.flows, settings(NoCC))
		share := func(n int) float64 { return float64(n) / float64(x.hops) }
		t.Logf("%-45s pure 2+ %.2f, 4+ %.2f, 8+ %.2f; with acknowledgements 2+ %.2f, 4+ %.2f, 8+ %.2f; "+
			"frames a record %.2f; in place %.2f", c.name, share(x.pure[2]), share(x.pure[4]),
			share(x.pure[8]),
			share(x.mixed[2]), share(x.mixed[4]), share(x.mixed[8]), float64(x.hops)/float64(x.records),
			share(x.inPlace))
		if got := share(x.pure[4]); got < c.least || got > c.most {
			t.Errorf("%s: %.3f of the frames are in trains of 4 and more, want %g to %g", c.name, got,
				c.least, c.most)
		}
	}
}
