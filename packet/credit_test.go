package packet

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestCredits: links with credits lose nothing and pause nothing; an incast
// takes as long as under PFC, and a buffer of less than a round trip of the link
// bounds the rate.
func TestCredits(t *testing.T) {
	var flows []Flow
	for i := range 8 {
		flows = append(flows, Flow{Src: int32(i), Dst: 8, Bytes: 1_000_000, Priority: 3, DstPort: 100})
	}
	c := settings(NoCC)
	c.Marking, c.Buffer.Bytes = nil, 32<<20
	pfc, err := Run(star(9, 100e9, 0), flows, c)
	if err != nil {
		t.Fatal(err)
	}
	c.Buffer.Credits = 128 << 10
	r, err := Run(star(9, 100e9, 0), flows, c)
	if err != nil || r.Stall != nil || r.Pauses != 0 || r.Drops != 0 {
		t.Fatalf("%v: %v, %s", err, r.Stall, brief(r))
	}
	end := func(r *Result) (t units.Time) {
		for _, f := range r.Flows {
			t = max(t, f.End)
		}
		return t
	}
	if d := end(r) - end(pfc); d > 2*units.Microsecond || d < -2*units.Microsecond {
		t.Errorf("an incast with credits ends at %v, under PFC at %v", end(r), end(pfc))
	}
	if r.PeakQueue > 8*c.Buffer.Credits {
		t.Errorf("a queue of %d bytes, 8 links have credits for %d each", r.PeakQueue, c.Buffer.Credits)
	}
	// The eight hosts share a link: each waits for most of the time for credit.
	live, err := build(star(9, 100e9, 0), flows, c, false, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := live.run(); err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		paused := units.Time(live.links[live.hosts[i].out].Stats.Paused)
		if waits := paused > end(r)/2; waits != (i < 8) || paused > end(r) {
			t.Errorf("host %d waited %v of %v for credit", i, paused, end(r))
		}
	}
	// A frame's room comes back after 83 ns, 1 us there and 1 us back: 8 kB a round
	// trip of 2.083 us are 31 Gb/s.
	c.Buffer.Credits = 8 * 1048
	r, err = Run(star(9, 100e9, 0), flows[:1], c)
	if err != nil {
		t.Fatal(err)
	}
	rate := 8 * 1.048e6 / r.Flows[0].End.Micros() / 1e3
	if rate < 29 || rate > 33 {
		t.Errorf("%.1f Gb/s with credits for 8 frames, want about 31", rate)
	}
}

// TestCreditsAndWorkers: credits give the same bits for any number of workers.
func TestCreditsAndWorkers(t *testing.T) {
	n, flows, c := leafSpine(4, 4, 3, 100e9, 0), mesh(16, 200_000), settings(NoCC)
	c.Buffer.Credits = 64 << 10
	want, err := Run(n, flows, c)
	if err != nil || want.Stall != nil || want.Pauses != 0 {
		t.Fatalf("%v: %v", err, want.Stall)
	}
	c.Workers = 3
	e, err := build(n, flows, c, false, false)
	if err != nil {
		t.Fatal(err)
	}
	e.crowd = 0
	if _, err := e.run(); err != nil {
		t.Fatal(err)
	}
	if got := e.collect(want.Windows); brief(got) != brief(want) {
		t.Errorf("3 workers: %s\none: %s", brief(got), brief(want))
	}
}

// TestCreditsOfLostFrames: credits for frames that are lost on a cable, or dropped with it, come back: with
// at least as many frames lost as there are credits, flows go on, with any number of workers.
func TestCreditsOfLostFrames(t *testing.T) {
	const us = units.Microsecond
	for i, fault := range []Fault{
		{Cable: 0, From: 20 * us, To: 60 * us, Down: true},
		{Cable: 4, From: 20 * us, To: 60 * us, Loss: 0.5},
		{Cable: 4, From: 20 * us, Down: true, Reroute: true},
	} {
		n, c := leafSpine(2, 2, 2, 100e9, 0), settings(NoCC)
		c.Buffer.Credits, c.Faults = 40*1048, []Fault{fault}
		c.Repair.Selective, c.Repair.Reorder, c.Repair.Timeout, c.Repair.Retries = true, Overtaken, 100*us, 7
		var flows []Flow
		for k := range int32(8) {
			flows = append(flows, Flow{Src: k % 2, Dst: 2 + k/2%2, Bytes: 500_000, Priority: 3, DstPort: 100 +
				uint16(k)})
		}
		var want *Result
		for c.Workers = 1; c.Workers < 4; c.Workers++ {
			got := crowded(t, n, flows, c, false)
			if want == nil {
				want = got
			}
			if got.Lost+got.Drops < 40 || got.Stall != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("fault %d, %d workers: %s, %d drops, %v; one: %s", i, c.Workers, brief(got),
					got.Drops, got.Stall, brief(want))
			}
		}
	}
}

// TestCreditsInOrder: credits that come back to several nodes at one time let frames begin in an order that
// does not depend on who simulates the nodes.
func TestCreditsInOrder(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 17))
		n, c := leafSpine(4, 2, 0, 100e9, 0), settings(NoCC)
		for i := range int32(4) { // a ring of switches
			n.Cables = append(n.Cables, Cable{A: 8 + i, B: 8 + (i+1)%4, Rate: 100e9,
				Delay: units.Microsecond})
		}
		var err error
		if c.CC, err = Preset([]string{"none", "swift"}[seed%2], 100e9); err != nil {
			t.Fatal(err)
		}
		c.Seed, c.Buffer.Credits, c.EventOrder, c.Stream, c.Marking = seed, int64(4+seed%3)*1048, true, 8, nil
		flows := slices.Concat(waiting(r, 8), mesh(8, 60_000))
		want := crowded(t, n, flows, c, true)
		for _, c.Workers = range []int{2, 3, 5} {
			if got := crowded(t, n, flows, c, true); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d, %d workers: %s\none: %s", seed, c.Workers, brief(got), brief(want))
			}
		}
	}
}

// TestLanes: each priority has credits and queues of its own, as a virtual lane of InfiniBand. An incast
// fills the trunk's buffer; a flow that shares the trunk and its lane waits for it, one on another lane
// takes its turns: as the incast gets a quarter of a link through the trunk, it ends before two thirds of
// the trunk would carry it.
func TestLanes(t *testing.T) {
	n := &Network{Nodes: 9, Switch: []bool{false, false, false, false, false, false, false, true, true}}
	for i, at := range []int32{7, 7, 8, 8, 8, 8, 8} {
		n.Cables = append(n.Cables, Cable{A: int32(i), B: at, Rate: 100e9, Delay: units.Microsecond})
	}
	n.Cables = append(n.Cables, Cable{A: 7, B: 8, Rate: 100e9, Delay: units.Microsecond})
	var us []float64
	for _, lane := range []uint8{3, 4} {
		var flows []Flow
		for _, p := range [][2]int32{{1, 6}, {0, 5}, {2, 5}, {3, 5}, {4, 5}} {
			flows = append(flows, Flow{Src: p[0], Dst: p[1], Bytes: 2_000_000, Priority: 3, DstPort: 100})
		}
		flows[0].Priority = lane
		c := settings(NoCC)
		c.Marking, c.Buffer.Credits = nil, 64<<10
		r, err := Run(n, flows, c)
		if err != nil || r.Stall != nil || r.Drops > 0 {
			t.Fatalf("%v: %s, stall %v", err, brief(r), r.Stall)
		}
		us = append(us, r.Flows[0].End.Micros())
	}
	alone := 2000*0.083 + 5
	if us[0] < 2.5*alone || us[1] > 1.5*alone || us[1] < alone {
		t.Errorf("alone it takes %.0f us, behind the incast %.0f, on another lane %.0f", alone, us[0], us[1])
	}
}
