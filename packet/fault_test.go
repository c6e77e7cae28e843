package packet

import (
	"testing"

	"github.com/simccl/simccl/packet/internal/port"
	"github.com/simccl/simccl/units"
)

// one is a flow of 10 MB between two hosts of a star, with faults on the
// sender's cable; it returns when it ends.
func one(t *testing.T, r Repair, faults ...Fault) (units.Time, *Result) {
	t.Helper()
	c := settings(NoCC)
	c.Repair, c.Faults = r, faults
	x, err := Run(star(2, 100e9, 0), []Flow{{Src: 0, Dst: 1, Bytes: 10_000_000, Priority: 3, DstPort: 100}},
		c)
	if err != nil {
		t.Fatal(err)
	}
	if !x.Flows[0].Done {
		t.Fatalf("%+v: %v", faults, x.Stall)
	}
	return x.Flows[0].End, x
}

// TestFaults: what a fault costs a single flow can be computed.
func TestFaults(t *testing.T) {
	us := func(n int) units.Time { return units.Time(n) * units.Microsecond }
	well, _ := one(t, Repair{})
	repair := Repair{Timeout: us(50)}
	for _, c := range []struct {
		name      string
		repair    Repair
		faults    []Fault
		low, high units.Time // later than without faults
	}{
		{"half the rate for 100 us", Repair{}, []Fault{{From: us(100), To: us(200), Slow: 0.5}}, us(49),
			us(51)},
		{"a storm of pauses for 300 us", Repair{}, []Fault{{From: us(100), To: us(400), Storm: true}},
			us(298), us(302)},
		{"down for 200 us", repair, []Fault{{From: us(100), To: us(300), Down: true}}, us(200), us(260)},
		{"flapping", repair, []Fault{{From: us(100), To: us(200), Down: true}, {From: us(300), To: us(400),
			Down: true}}, us(200), us(320)},
		{"a tenth of a percent lost", repair, []Fault{{From: us(100), Loss: 0.001}}, us(10), us(400)},
	} {
		got, r := one(t, c.repair, c.faults...)
		if d := got - well; d < c.low || d > c.high {
			t.Errorf("%s: %v later, want %v to %v; %s", c.name, d, c.low, c.high, brief(r))
		}
	}
}

// TestPauseDuringStorm: an incast pauses a host whose cable has a storm just then, for as long as it takes a
// pause to arrive. The pause goes on when the storm is over and is known by the port behind which it was.
func TestPauseDuringStorm(t *testing.T) {
	n, flows, c := star(5, 100e9, 0), []Flow(nil), settings(NoCC)
	c.Marking = nil
	for i := int32(1); i < 5; i++ {
		flows = append(flows, Flow{Src: i, Dst: 0, Bytes: 1_000_000, Priority: 3, DstPort: 100})
	}
	met := 0
	for from := 100 * units.Nanosecond; from < 80*units.Microsecond; from += 700 * units.Nanosecond {
		c.Faults = []Fault{{Cable: 1, From: from, To: from + 900*units.Nanosecond, Storm: true}}
		e, err := build(n, flows, c, false, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = e.run(); err != nil {
			t.Fatal(err)
		}
		if r := e.collect(0); r.Stall != nil || r.Pauses == 0 {
			t.Fatalf("a storm from %v: %d pauses, %v", from, r.Pauses, r.Stall)
		}
		p := e.links[2].Report(e.simulated)
		if p.First >= from && p.First < from+900*units.Nanosecond {
			met++
			if p.Behind != 1 {
				t.Errorf("a storm from %v: the host's link waits behind link %d, want 1, that to host 0",
					from, p.Behind)
			}
		}
	}
	if met == 0 {
		t.Error("no pause came during a storm")
	}
}

// TestStopped: whenever a run stops, that is why flows did not end, and no XON that was about to be sent, or
// to arrive, was lost.
func TestStopped(t *testing.T) {
	n, c := star(5, 100e9, 0), settings(NoCC)
	c.Marking = nil
	var flows []Flow
	for i := int32(1); i < 5; i++ {
		flows = append(flows, Flow{Src: i, Dst: 0, Bytes: 1_000_000, Priority: 3, DstPort: 100})
	}
	pauses := int64(0)
	for c.Stop = 40 * units.Microsecond; c.Stop < 120*units.Microsecond; c.Stop += 250 * units.Nanosecond {
		r, err := Run(n, flows, c)
		if err != nil {
			t.Fatal(err)
		}
		if s := r.Stall; s == nil || !s.Stopped || s.Paused[0] >= 0 || len(s.Deadlock) > 0 {
			t.Errorf("stopped at %v: %v", c.Stop, s)
		}
		pauses += r.Pauses
	}
	if pauses == 0 {
		t.Error("nothing was paused")
	}
}

// TestDeadCable: the flow is unfinished, and the result says why.
func TestDeadCable(t *testing.T) {
	c := settings(NoCC)
	c.Faults = []Fault{{From: 100 * units.Microsecond, Down: true}}
	r, err := Run(star(2, 100e9, 0), []Flow{{Src: 0, Dst: 1, Bytes: 10_000_000, Priority: 3}}, c)
	if err != nil || r.Flows[0].Done || r.Stall == nil || r.Lost == 0 {
		t.Errorf("%v: %+v, stall %v", err, r.Flows, r.Stall)
	}
}

// TestDeadlock: three switches in a ring, routes of two hops around it, buffers
// so small that each pauses the one before: the cycle is named.
func TestDeadlock(t *testing.T) {
	n := &Network{Nodes: 9, Switch: []bool{false, false, false, false, false, false, true, true, true}}
	for i := range 6 {
		n.Cables = append(n.Cables, Cable{A: int32(i), B: int32(6 + i%3), Rate: 100e9,
			Delay: units.Microsecond})
	}
	for i := range 3 {
		n.Cables = append(n.Cables, Cable{A: int32(6 + i), B: int32(6 + (i+1)%3), Rate: 25e9,
			Delay: units.Microsecond})
	}
	c := settings(NoCC)
	c.Marking = nil
	c.Buffer.Bytes = 512 << 10
	var flows []Flow
	for i := range 3 {
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i + 1) % 3), Bytes: 3_000_000, Priority: 3},
			Flow{Src: int32(i + 3), Dst: int32((i+2)%3 + 3), Bytes: 3_000_000, Priority: 3})
	}
	// Shortest paths have one hop between switches: no cycle of waits.
	if r, err := Run(n, flows, c); err != nil || r.Stall != nil {
		t.Fatalf("one hop each: %v, %v", err, r.Stall)
	}
	// A cycle of paused queues is found where there is one.
	e, err := build(n, flows, c, false, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		l := &e.links[2*(6+i)]
		l.Waiting, l.Paused = 2, 2
	}
	if got := port.Cycle(e.links, e.net.Nodes); len(got) != 3 {
		t.Errorf("cycle %v, want the three switches", got)
	}
}

func TestFaultsAreChecked(t *testing.T) {
	for _, f := range []Fault{{Cable: 9}, {From: 5, To: 5}, {Slow: 2}, {Loss: -1}, {Slow: 1e-9}} {
		c := settings(NoCC)
		c.Faults = []Fault{f}
		if _, err := Run(star(2, 100e9, 0), nil, c); err == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
}

// TestFaultsOfOneCableOverlap: what faults of one cable do does not depend on the order in which they are
// given, and none undoes another.
func TestFaultsOfOneCableOverlap(t *testing.T) {
	us := units.Microsecond
	half, tenth, storm := Fault{To: 500 * us, Slow: 0.5}, Fault{From: 500 * us, To: 900 * us, Slow: 0.1},
		Fault{From: 100 * us, To: 200 * us, Storm: true}
	slow, _ := one(t, Repair{}, half, tenth)
	if end, _ := one(t, Repair{}, tenth, half); end != slow {
		t.Errorf("%v, in the other order %v", slow, end)
	}
	// What the storm holds up at half of the rate is sent at all of it in the end.
	if end, _ := one(t, Repair{}, half, tenth, storm); end < slow+45*us || end > slow+55*us {
		t.Errorf("ends at %v with a storm of 100 us on the slow link, at %v without", end, slow)
	}
}

// TestSlowStart: a queue pair that begins while its host's link is slow sends at all of the rate once the
// link is not.
func TestSlowStart(t *testing.T) {
	us := units.Microsecond
	well, _ := one(t, Repair{})
	if end, _ := one(t, Repair{}, Fault{To: 500 * us, Slow: 0.5}); end < well+245*us || end > well+255*us {
		t.Errorf("ends at %v with a link at half of its rate for 500 us, at %v without", end, well)
	}
}
