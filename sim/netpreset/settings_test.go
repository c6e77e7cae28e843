package netpreset

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// packetsAndErrors are members of packets, and the error about them; "": there is none.
var packetsAndErrors = []struct{ packets, want string }{
	{`{"xoff_kb": 100, "xon_kb": 100, "alpha": 0.25}`, ""},
	{`{"cc": "dcqcn:cx7", "dcqcn": {"rpg_time_reset": 20}}`, ""},
	{`{"cc": "swift", "dcqcn": {"rpg_time_reset": 20}}`,
		"net.json:2:37: settings of DCQCN beside cc swift"},
	{`{"xoff_kb": 10, "xon_kb": 20}`, "net.json:2:38: xon_kb 20 is above xoff_kb 10"},
	{`{"xon_kb": 20}`, "net.json:2:23: xon_kb 20 without xoff_kb"},
	{`{"alpha": 0.3}`,
		"net.json:2:22: alpha 0.3: switches shift by it; write a power of two, 0.25 or 0.5"},
	{`{"alpha": 8}`, ""},
	{`{"cnp": "frame", "dcqcn": {"min_time_between_cnps": 50}}`, ""},
	{`{"cnp": "ack", "cc": "swift"}`, "net.json:2:20: cnp ack: cc swift has no notifications"},
	{`{"cnp": "frame", "link": "infiniband"}`, "net.json:2:20: cnp frame: CNPs are frames of RoCE"},
	{`{"cut_through": 128, "preset": "infiniband-ndr"}`, ""},
	{`{"cut_through": 10}`, "net.json:2:28: cut_through 10: a switch knows where a frame goes once it " +
		"has its headers; write 64"},
	{`{"pause_quanta": 65535}`, ""},
	{`{"pause_quanta": 100}`, "net.json:2:29: pause_quanta 100: a pause ends before it can be repeated " +
		"behind a frame of 4198 bytes; write 150 or more"},
	{`{"pause_quanta": 65535, "preset": "ultra-ethernet"}`,
		"net.json:2:29: pause_quanta 65535: with repair trim nothing pauses"},
	{`{"pause_quanta": 65535, "preset": "infiniband-ndr"}`,
		"net.json:2:29: pause_quanta 65535: links of infiniband have credits"},
	{`{"credits_kb": 64}`, "net.json:2:27: credits_kb 64: links of ethernet have pauses"},
	{`{"credits_kb": 64, "link": "infiniband"}`, ""},
	{`{"credits_kb": 64, "preset": "infiniband-ndr"}`, ""},
	{`{"credits_kb": 16, "link": "infiniband", "mtu": 16384}`,
		"net.json:2:27: credits_kb 16: a frame of 16430 bytes must fit"},
	{`{"flowlet_us": 10}`, "net.json:2:27: flowlet_us 10: with balance queue-pair no silence"},
	{`{"flowlet_us": 10, "balance": "flowlet", "quantum_kb": 8}`, ""},
	{`{"quantum_kb": 10}`, "net.json:2:27: quantum_kb 10: with balance queue-pair no queue"},
	{`{"quantum_kb": 10, "preset": "spectrum-x"}`, ""},
	{`{"ack_every": 8, "repair": "sr"}`, "net.json:2:26: ack_every 8: with repair sr each frame"},
	{`{"ack_every": 8, "cc": "swift"}`,
		"net.json:2:26: ack_every 8: cc swift needs an acknowledgement of each frame"},
	{`{"ecn": [], "cc": "dctcp"}`, "net.json:2:20: dctcp acts on marks, and switches make none"},
	{`{"window_kb": 16, "cc": "nscc"}`, "net.json:2:26: window_kb 16: cc nscc has windows of its own"},
	{`{"window_kb": 12}`,
		"net.json:2:26: window_kb 12: is full before the 4 frames of 4096 bytes are sent"},
	{`{"window_kb": 0.001, "ack_every": 1}`, ""},
	{`{"window_kb": 12.289}`, ""},
	{`{"xoff_kb": 100, "link": "infiniband"}`,
		"net.json:2:24: xoff_kb 100: links of infiniband have credits"},
	{`{"alpha": 0.5, "repair": "trim"}`, "net.json:2:22: alpha 0.5: with repair trim nothing pauses"},
	{`{"watchdog_us": 5, "preset": "infiniband-ndr"}`,
		"net.json:2:28: watchdog_us 5: links of infiniband pause nothing"},
	{`{"watchdog_us": 5, "preset": "ultra-ethernet"}`, ""},
	{`{"cc": "dcqcn:cx7", "dcqcn": {"rpg_min_rate": 400001}}`,
		"net.json:2:58: rpg_min_rate 400001: is above the 400000 Mbit/s of a host's port"},
	{`{"cc": "dcqcn:cx7", "dcqcn": {"rpg_ai_rate": 1e6}}`, "net.json:2:57: rpg_ai_rate 1e+06: is above"},
	{`{"cc": "dcqcn:cx7", "dcqcn": {"rpg_hai_rate": 400000}}`, ""},
	{`{"trim_kb": 64}`, "net.json:2:24: trim_kb 64: with repair gbn switches cut no frames"},
	{`{"trim_kb": 64, "preset": "ultra-ethernet"}`, ""},
	{`{"trim_kb": 1, "repair": "trim"}`,
		"net.json:2:24: trim_kb 1: a frame of 4198 bytes must fit into a queue"},
}

// TestConsistent: members of packets that contradict each other, or that have no effect
// beside the others, are errors at their place in the file.
func TestConsistent(t *testing.T) {
	for _, x := range packetsAndErrors {
		data := []byte("{\n\"packets\": " + x.packets + ", \"switches\": [{\"name\": \"s\"}], \"cables\": " +
			"[{\"a\": \"node0/0\", \"b\": \"s\", \"gbit\": 400}]}")
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

// TestChosenInPlaceOfAFiles: what is chosen may leave members of a file without effect, and may
// give them one.
func TestChosenInPlaceOfAFiles(t *testing.T) {
	for _, x := range []struct {
		packets string
		as      Choice
	}{
		{`{"cc": "swift", "window_kb": 64}`, Choice{CC: "none"}},
		{`{"cc": "none", "window_kb": 64}`, Choice{CC: "swift"}},
		{`{"flowlet_us": 20}`, Choice{Balance: "flowlet"}},
		{`{"balance": "flowlet", "flowlet_us": 20, "quantum_kb": 8}`, Choice{Balance: "queue-pair"}},
		{`{"cc": "dcqcn:cx7", "ack_every": 8, "dcqcn": {"rpg_time_reset": 20}}`,
			Choice{CC: "nscc", Balance: "packet"}},
	} {
		n, err := fabric.ParseNetwork([]byte(`{"packets": `+x.packets+
			`, "switches": [{"name": "s"}], "cables": [{"a": "node0/0", "b": "s", "gbit": 400}]}`),
			"net.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = Of(n, x.as, 1, sim.Reliability{}); err != nil {
			t.Errorf("%s, %+v: %v", x.packets, x.as, err)
		}
	}
}

// TestKnobs: each setting of DCQCN takes the place of the name's; --cc replaces them all.
func TestKnobs(t *testing.T) {
	const us = units.Microsecond
	n, err := fabric.ParseNetwork(
		[]byte(`{"packets": {"cc": "dcqcn:cx7", "dcqcn": {"rpg_time_reset": 60, "rpg_byte_reset": 100, "rpg_threshold": 3, "rpg_ai_rate": 20, "rpg_hai_rate": 200, "rpg_min_rate": 7,
		"rpg_min_dec_fac": 90, "rate_reduce_monitor_period": 2, "dce_tcp_g": 1000, "dce_tcp_rtt": 5, "initial_alpha_value": 512, "clamp_tgt_rate": 1, "min_time_between_cnps": 0}},
		"switches": [{"name": "s"}], "cables": [{"a": "node0/0", "b": "s", "gbit": 400}]}`), "net.json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := fabric.ParseNetwork(n.Format(), "again.json")
	if err != nil || again.Packets.DCQCN == nil || *again.Packets.DCQCN.MinDecFac != 90 {
		t.Fatalf("written again: %v, %s", err, n.Format())
	}
	plain, err := packet.Preset("dcqcn:cx7", 400e9)
	if err != nil {
		t.Fatal(err)
	}
	want := plain
	want.IncreasePeriod, want.ByteReset, want.FastRecovery, want.AI, want.HAI, want.MinRate = 60*us, 6400, 3,
		20e6, 200e6, 7e6
	want.DecreasePeriod, want.Gain, want.AlphaPeriod, want.Alpha, want.ClampTarget, want.CNPGap = 2*us,
		24.0/1024, 5*us, 0.5, true, 0
	want.MostCut = 0.1
	for cc, want := range map[string]packet.CC{"": want, "dcqcn:cx7": plain} {
		set, err := Of(again, Choice{Model: "packet", CC: cc}, 1, sim.Reliability{})
		if err != nil {
			t.Fatal(err)
		}
		if set.Config.CC != want {
			t.Errorf("--cc %q: %+v, want %+v", cc, set.Config.CC, want)
		}
	}
}
