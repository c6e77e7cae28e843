package packetnet

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
)

// TestConsistent: members of packets that contradict each other, or that have no effect
// beside the others, are errors at their place in the file.
func TestConsistent(t *testing.T) {
	for _, x := range []struct{ packets, want string }{
		{`{"xoff_kb": 100, "xon_kb": 100, "alpha": 0.25}`, ""},
		{`{"xoff_kb": 10, "xon_kb": 20}`, "net.json:2:38: xon_kb 20 is above xoff_kb 10"},
		{`{"xon_kb": 20}`, "net.json:2:23: xon_kb 20 without xoff_kb"},
		{`{"alpha": 0.3}`, "net.json:2:22: alpha 0.3: switches shift by it; write a power of two, 0.25 or 0.5"},
		{`{"credits_kb": 64}`, "net.json:2:27: credits_kb 64: links of ethernet have pauses"},
		{`{"credits_kb": 64, "link": "infiniband"}`, ""},
		{`{"credits_kb": 64, "preset": "infiniband-ndr"}`, ""},
		{`{"credits_kb": 16, "link": "infiniband", "mtu": 16384}`, "net.json:2:27: credits_kb 16: a frame of 16430 bytes must fit"},
		{`{"trim_kb": 64}`, "net.json:2:24: trim_kb 64: with repair gbn switches cut no frames"},
		{`{"trim_kb": 64, "preset": "ultra-ethernet"}`, ""},
		{`{"trim_kb": 1, "repair": "trim"}`, "net.json:2:24: trim_kb 1: a frame of 4198 bytes must fit into a queue"},
	} {
		data := []byte("{\n\"packets\": " + x.packets + ", \"switches\": [{\"name\": \"s\"}], \"cables\": [{\"a\": \"node0/0\", \"b\": \"s\", \"gbit\": 400}]}")
		n, err := fabric.ParseNetwork(data, "net.json")
		if err != nil {
			t.Fatalf("%s: %v", x.packets, err)
		}
		_, err = Of(n, Choice{Model: "packet"}, 1, sim.Reliability{})
		if x.want == "" {
			if err != nil {
				t.Errorf("%s: %v", x.packets, err)
			}
			continue
		}
		var p *fabric.PacketsError
		if !errors.As(err, &p) {
			t.Errorf("%s: %v (%T), want %s", x.packets, err, err, x.want)
		} else if got := n.Placed(data, "net.json", p).Error(); !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %s, want %s", x.packets, got, x.want)
		}
	}
}
