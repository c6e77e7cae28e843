package packet

import (
	"testing"

	"github.com/simccl/simccl/units"
)

// clos is leaves of some hosts each, and as many spines as a leaf has hosts, at 100 Gb/s.
func clos(leaves, hosts int) *Network {
	n := leaves * hosts
	w := &Network{Nodes: n + leaves + hosts, Switch: make([]bool, n+leaves+hosts)}
	join := func(a, b int) {
		w.Cables = append(w.Cables, Cable{A: int32(a), B: int32(b), Rate: 100e9, Delay: units.Microsecond})
	}
	for i := range n {
		join(i, n+i/hosts)
	}
	for l := range leaves {
		for s := range hosts {
			join(n+l, n+leaves+s)
		}
	}
	for v := n; v < w.Nodes; v++ {
		w.Switch[v] = true
	}
	return w
}

// trimmed is how Ultra Ethernet's hosts and switches behave in htsim: NSCC, queues of a bandwidth-delay
// product, frames that are cut.
func trimmed(t *testing.T, balance Balance) *Config {
	t.Helper()
	nscc, err := Preset("nscc", 100e9)
	if err != nil {
		t.Fatal(err)
	}
	c := &Config{Seed: 1, Frames: Frames{Payload: 4086, Header: 64, Ack: 64, Pause: 64}, AckFrom: 1,
		Buffer: Buffer{Bytes: 1 << 30}, Repair: Repair{Timeout: 2 * units.Millisecond},
		Routing: Routing{Balance: balance}}
	if c.Cut(0, 100e9, units.Microsecond); c.Buffer.Trim != 29*4150 { // as htsim prints it
		t.Fatalf("queues of %d bytes", c.Buffer.Trim)
	}
	c.Control(nscc, []int64{100e9}, units.Microsecond, false)
	return c
}

// TestTrimming: incasts of Ultra Ethernet end as in htsim, which has 5 % of room in its
// own seeds (shared reference runs, ii_incast_nscc), though frames take other paths; nothing is dropped
// and what was cut is sent again, no frame twice.
func TestTrimming(t *testing.T) {
	for _, c := range []struct {
		senders int
		bytes   int64
		theirs  float64 // us
	}{{2, 1e6, 171.674}, {4, 1e6, 343.830}, {16, 1e6, 1330.580}, {32, 1e6, 2642.501}, {2, 10e6, 1639.038}} {
		var flows []Flow
		for k := range c.senders {
			flows = append(flows, Flow{Src: int32(8*(1+k%15) + k/15), Dst: 0, Bytes: c.bytes, Priority: 3,
				DstPort: 100})
		}
		r, err := Run(clos(16, 8), flows, trimmed(t, PerPacket))
		if err != nil {
			t.Fatal(err)
		}
		last := units.Time(0)
		for i := range r.Flows {
			if last = max(last, r.Flows[i].End); !r.Flows[i].Done {
				t.Fatalf("%d to 1: %v", c.senders, r.Stall)
			}
		}
		if d := last.Micros()/c.theirs - 1; d > 0.05 || d < -0.05 {
			t.Errorf("%d to 1: %.3f us, theirs %.3f", c.senders, last.Micros(), c.theirs)
		}
		if r.Drops != 0 || r.Pauses != 0 || r.Timeouts != 0 || r.Trims != r.Retransmitted || c.senders > 4 &&
			r.Trims == 0 {
			t.Errorf("%d to 1: %d cut, %d sent again, %d dropped, %d pauses, %d timeouts: the first two "+
				"are equal, the others 0", c.senders, r.Trims, r.Retransmitted, r.Drops, r.Pauses, r.Timeouts)
		}
	}
}

// TestTrimmingWithLosses: frames that a timeout takes for lost leave room in the window, so that they are
// sent again even where all of a window is lost.
func TestTrimmingWithLosses(t *testing.T) {
	for _, kind := range []CCKind{NSCC, DCTCP} {
		n, c := star(2, 100e9, 0.4), trimmed(t, Hashed)
		c.Repair.Timeout, c.Stop = 20*units.Microsecond, units.Second
		if kind == DCTCP {
			c.Control(CC{Kind: DCTCP, Window: 8172, RateAI: 615e6, MinRate: 100e6}, []int64{100e9},
				units.Microsecond, true)
		}
		r, err := Run(n, []Flow{{Src: 0, Dst: 1, Bytes: 1_000_000, Priority: 3, DstPort: 100}}, c)
		if err != nil || r.Stall != nil || r.Timeouts == 0 {
			t.Errorf("%v: %v, %v, %d timeouts", kind, err, r.Stall, r.Timeouts)
		}
	}
}
