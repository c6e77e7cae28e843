package packet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// permuted is a permutation between the leaves of a leaf-spine network.
func permuted(hosts, step int, bytes int64) (flows []Flow) {
	for i := range hosts {
		flows = append(flows, Flow{Src: int32(i), Dst: int32((i + step) % hosts), Bytes: bytes, Priority: 3,
			DstPort: 100})
	}
	return flows
}

func last(t *testing.T, n *Network, flows []Flow, c *Config) (float64, *Result) {
	t.Helper()
	r, err := Run(n, flows, c)
	if err != nil || r.Stall != nil {
		t.Fatalf("%v, %v", err, r.Stall)
	}
	end := 0.0
	for _, f := range r.Flows {
		end = max(end, f.End.Micros())
	}
	return end, r
}

// TestAdaptiveRouting: over eight equal spines a permutation that collides by
// hash is near the ideal (335 us of payload and headers) where each frame takes the
// shortest queue, and between the two where flows choose as a whole; with
// InfiniBand's credits the same, and nothing is sent again.
func TestAdaptiveRouting(t *testing.T) {
	n, flows := leafSpine(4, 8, 8, 100e9, 0), permuted(32, 11, 4_000_000)
	ends := map[string]float64{}
	for _, v := range []struct {
		name    string
		routing Routing
		credits int64
	}{
		{"ecmp", Routing{}, 0},
		{"frames", Routing{Balance: PerPacket}, 0},
		{"levels", Routing{Balance: PerPacket, Quantum: 8192}, 0},
		{"flowlets", Routing{Balance: PerFlow, Gap: 16 * units.Microsecond}, 0},
		{"credits", Routing{Balance: PerPacket}, 128 << 10},
	} {
		c := settings(NoCC)
		c.Buffer.Bytes, c.Buffer.Credits, c.Marking, c.Routing = 32<<20, v.credits, nil, v.routing
		c.Repair = Repair{Selective: true, Timeout: units.Millisecond, Reorder: 1 << 20}
		end, r := last(t, n, flows, c)
		if ends[v.name] = end; r.Retransmitted > 0 {
			t.Errorf("%s: %s", v.name, brief(r))
		}
	}
	ideal := 4e6 * 1.048 * 8 / 1e5
	// Spines have one way down, and acknowledgements share it: not the ideal.
	if ends["frames"] > 1.3*ideal || ends["levels"] > 1.3*ideal || ends["credits"] > 1.3*ideal ||
		ends["flowlets"] > 0.8*ends["ecmp"] || ends["ecmp"] < 2*ideal {
		t.Errorf("ends %v, ideal %.0f us", ends, ideal)
	}
}

// TestAdaptiveAroundDeadCable: a cable between switches dies; hashed flows over it
// lose frames, adaptive ones avoid it.
func TestAdaptiveAroundDeadCable(t *testing.T) {
	n := leafSpine(2, 4, 4, 100e9, 0)
	// one way: the far leaf does not know of the cable, and acknowledgements are lost on it
	flows := slices.Repeat(permuted(8, 4, 250_000)[:4], 4)
	again := map[Balance]int64{}
	for _, b := range []Balance{Hashed, PerPacket, PerFlow} {
		c := settings(NoCC)
		c.Routing = Routing{Balance: b, Gap: 16 * units.Microsecond}
		c.Repair = Repair{Selective: true, Timeout: 200 * units.Microsecond, Reorder: 1 << 20}
		c.Faults = []Fault{{Cable: 8, From: 20 * units.Microsecond, To: 2 * units.Millisecond, Down: true}}
		_, r := last(t, n, flows, c)
		again[b] = r.Retransmitted
	}
	if 3*again[PerPacket] > again[Hashed] || 3*again[PerFlow] > again[Hashed] {
		t.Errorf("sent again %v", again)
	}
}

// TestReroute: the routes of the HPCC simulator avoid a cable that went down.
func TestReroute(t *testing.T) {
	n, flows := leafSpine(2, 4, 2, 100e9, 0), permuted(8, 4, 2_000_000)
	c := settings(NoCC)
	c.Buffer.Bytes, c.Repair.Timeout = 32<<20, units.Millisecond
	c.Faults = []Fault{{Cable: 8, From: 50 * units.Microsecond, Down: true, Reroute: true}}
	end, _ := last(t, n, flows, c)
	if one := 4 * 2e6 * 1.048 * 8 / 1e5; end < 0.9*one || end > 3*one { // four flows share what is left
		t.Errorf("ends at %.0f us, one cable needs %.0f", end, one)
	}
	c.Faults[0].Cable = 0 // of a host
	if _, err := Run(n, flows, c); err == nil || !strings.Contains(err.Error(), "no path") {
		t.Errorf("a host without its cable: %v", err)
	}
}

// TestWorkersAgreeOnChoices: the same bits for any number of workers where
// switches choose paths, with a watchdog, a storm and Swift.
func TestWorkersAgreeOnChoices(t *testing.T) {
	for _, b := range []Balance{PerPacket, PerFlow} {
		n, flows := leafSpine(4, 4, 3, 100e9, 1e-4), mesh(16, 200_000)
		c := settings(NoCC)
		cc, err := Preset("swift", 100e9)
		if err != nil {
			t.Fatal(err)
		}
		c.CC, c.Routing = cc, Routing{Balance: b, Gap: 16 * units.Microsecond, Quantum: 2048}
		c.Watchdog = Watchdog{After: 300 * units.Microsecond, Restore: 300 * units.Microsecond}
		c.Repair = Repair{Selective: true, Timeout: units.Millisecond, Reorder: 64}
		c.Faults = []Fault{{Cable: 17, From: 40 * units.Microsecond, To: 800 * units.Microsecond,
			Storm: true}}
		c.Stop = 20 * units.Millisecond
		want, err := Run(n, flows, c)
		if err != nil {
			t.Fatal(err)
		}
		if want.Watchdogs == 0 || want.Retransmitted == 0 {
			t.Errorf("%v: %d watchdogs; %s", b, want.Watchdogs, brief(want))
		}
		for _, workers := range []int{2, 5} {
			c.Workers = workers
			if got := crowded(t, n, flows, c, false); !reflect.DeepEqual(got, want) {
				t.Errorf("%v: %d workers: %s\none: %s", b, workers, brief(got), brief(want))
			}
		}
		c.Workers = 1
	}
}

func TestRoutingIsChecked(t *testing.T) {
	for _, r := range []Routing{{Balance: 9}, {Gap: -1}, {Quantum: -1}, {Balance: PerPacket}} {
		c := settings(NoCC)
		c.Routing = r
		if _, err := Run(star(2, 100e9, 0), nil, c); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}
