package packet

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// circle is five switches in a circle with a host each, whose flows go two
// switches on: each link waits for the next.
func circle(bytes int64) (*Network, []Flow) {
	n := &Network{Nodes: 10, Switch: []bool{false, false, false, false, false, true, true, true, true, true}}
	var flows []Flow
	for i := range 5 {
		n.Cables = append(n.Cables, Cable{A: int32(i), B: int32(5 + i), Rate: 100e9,
			Delay: units.Microsecond},
			Cable{A: int32(5 + i), B: int32(5 + (i+1)%5), Rate: 25e9, Delay: units.Microsecond})
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i + 2) % 5), Bytes: bytes, Priority: 3,
			DstPort: 100})
	}
	return n, flows
}

// TestDeadlockHappens: buffers fill in a circle until nothing moves; the report
// names the links, a watchdog dissolves it.
func TestDeadlockHappens(t *testing.T) {
	n, flows := circle(3_000_000)
	c := settings(NoCC)
	c.Marking, c.Buffer.Bytes = nil, 256<<10
	r, err := Run(n, flows, c)
	if err != nil || r.Stall == nil || len(r.Stall.Deadlock) != 5 || r.Drops > 0 {
		t.Fatalf("%v: %s, stall %v", err, brief(r), r.Stall)
	}
	if text := r.Stall.String(); !strings.Contains(text, "in a cycle") || !strings.Contains(text, "5 > 6") {
		t.Error(text)
	}
	n, flows = circle(500_000)
	c.Repair = Repair{Selective: true, Timeout: 2 * units.Millisecond, Reorder: 64}
	c.Watchdog = Watchdog{After: units.Millisecond, Restore: units.Millisecond}
	r, err = Run(n, flows, c)
	if err != nil || r.Stall != nil || r.Watchdogs == 0 || r.Drops == 0 || len(r.Deadlocks) == 0 {
		t.Errorf("%v: %d watchdogs, %d deadlocks, %s, stall %v", err, r.Watchdogs, len(r.Deadlocks), brief(r),
			r.Stall)
	}
}

// TestHeadOfLine: hosts 0 and 1 share a trunk; the incast to host 5 pauses it, and
// the flow from 1 to 6 waits behind a port that it does not use.
func TestHeadOfLine(t *testing.T) {
	n := &Network{Nodes: 9, Switch: []bool{false, false, false, false, false, false, false, true, true}}
	for i, at := range []int32{7, 7, 8, 8, 8, 8, 8} {
		n.Cables = append(n.Cables, Cable{A: int32(i), B: at, Rate: 100e9, Delay: units.Microsecond})
	}
	n.Cables = append(n.Cables, Cable{A: 7, B: 8, Rate: 100e9, Delay: units.Microsecond})
	var flows []Flow
	for _, p := range [][2]int32{{0, 5}, {2, 5}, {3, 5}, {4, 5}, {1, 6}} {
		flows = append(flows, Flow{Src: p[0], Dst: p[1], Bytes: 2_000_000, Priority: 3, DstPort: 100})
	}
	c := settings(NoCC)
	c.Marking = nil
	end, r := last(t, n, flows, c)
	if len(r.Blocked) == 0 {
		t.Fatalf("no flow is blocked; ends at %.0f us", end)
	}
	b := r.Blocked[0]
	if b.Flow != 4 || b.Link != [2]int32{7, 8} || b.Behind != [2]int32{8, 5} || b.Time.Micros() < 100 ||
		b.Time.Micros() > end {
		t.Errorf("%v; all %v", b, r.Blocked)
	}
	for _, b := range r.Blocked[1:] {
		if b.Flow != 4 {
			t.Errorf("%v: all others use the port", b)
		}
	}
	c.Routing = Routing{} // the same without the incast: no flow waits
	if _, r = last(t, n, flows[4:], c); len(r.Blocked) > 0 {
		t.Errorf("alone: %v", r.Blocked)
	}
}

// TestSwift: alone it fills the line; in an incast of 16 queues stay near its
// target, far below those of senders without control, and nothing pauses.
func TestSwift(t *testing.T) {
	cc, err := Preset("swift", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	c := settings(NoCC)
	c.WholeNanos, c.Marking, c.CC, c.Buffer.Bytes = false, nil, cc, 32<<20
	if share, _ := incast(t, 1, 10_000_000, 100e9, c); share < 0.95 {
		t.Errorf("alone: %.3f of the line", share)
	}
	share, r := incast(t, 16, 2_000_000, 100e9, c)
	if share < 0.9 || r.Pauses > 0 {
		t.Errorf("incast: %.3f of the line; %s", share, brief(r))
	}
}
