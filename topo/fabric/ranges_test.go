package fabric

import (
	"fmt"
	"strings"
	"testing"
)

// TestRangesOfPackets: each number is taken from its least to its most and refused beyond; whole numbers are.
func TestRangesOfPackets(t *testing.T) {
	read := func(key string, v float64) error {
		_, err := ParseNetwork(fmt.Appendf(nil, `{"packets": {"%s": %.12g}, "switches": [{"name": "s"}],
			"cables": []}`, key, v), "n.json")
		return err
	}
	for _, x := range []struct {
		key         string
		least, most float64
		whole       bool
	}{
		{"hop_us", 0.001, 1e6, false}, {"flowlet_us", 0, 1e6, false}, {"quantum_kb", 0, 1e5, false},
		{"mtu", 64, 16384, true}, {"ack_every", 1, 1024, true}, {"buffer_kb", 64, 1e8, false},
		{"reserve_kb", 0, 1e5, false}, {"resume_kb", 0, 1e6, false}, {"alpha", 1.0 / 1024, 8, false},
		{"headroom_delays", 0, 1000, true}, {"xoff_kb", 1, 1e7, false}, {"xon_kb", 0, 1e7, false},
		{"pause_quanta", 0, 65535, true}, {"cut_through", 0, 16384, true}, {"message_mps", 0, 1e6, false},
		{"trim_kb", 0, 1e6, false}, {"credits_kb", 16, 1e6, false}, {"window_kb", 0, 1e7, false},
		{"watchdog_us", 0, 1e9, false},
	} {
		below, above := x.least-1e-4, x.most+0.5
		if x.whole {
			below, above = x.least-1, x.most+1
		}
		for v, ok := range map[float64]bool{x.least: true, x.most: true, below: false, above: false,
			x.most - 0.5: !x.whole} {
			err := read(x.key, v)
			if refused := err != nil && strings.Contains(err.Error(), x.key+" "); ok == refused {
				t.Errorf("%s %g: %v", x.key, v, err)
			}
		}
	}
}
