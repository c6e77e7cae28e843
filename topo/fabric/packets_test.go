package fabric

import (
	"strings"
	"testing"
)

// TestPacketsMember: the member packets is read and written again, and every value
// that cannot be is an error at its place.
func TestPacketsMember(t *testing.T) {
	file := func(packets string) string {
		return "{\n\"packets\": " + packets + ", \"switches\": [{\"name\": \"s\"}], \"cables\": []}"
	}
	good := file(`{"preset": "dcqcn", "cc": "none", "link": "ethernet", "repair": "sr", "balance": "queue-pair", "hop_us": 0.5, "mtu": 1024, "ack_every": 1, "buffer_kb": 9000,
	"reserve_kb": 4, "resume_kb": 3, "alpha": 0.125, "headroom_delays": 3, "xoff_kb": 100, "xon_kb": 90, "credits_kb": 64, "window_kb": 0, "ecn": [{"gbit": 400, "kmin_kb": 800, "kmax_kb": 3200, "pmax": 0.2}]}`)
	n, err := ParseNetwork([]byte(good), "net.json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseNetwork(n.Format(), "again.json")
	if err != nil || string(again.Format()) != string(n.Format()) {
		t.Errorf("written again: %v\n%s\n%s", err, n.Format(), again.Format())
	}
	if p := n.Packets; *p.MTU != 1024 || *p.Alpha != 0.125 || len(p.Marks) != 1 || p.Marks[0].KMax != 3200 || p.CC != "none" || *p.Window != 0 {
		t.Errorf("read as %+v", p)
	}
	for _, x := range []struct{ packets, want string }{
		{`{"mtu": 10}`, "net.json:2:20: mtu 10: write a number from 64"},
		{`{"mtu": 1000.5}`, "net.json:2:20: mtu"},
		{`{"alpha": 2}`, "net.json:2:22: alpha 2"},
		{`{"link": "token-ring"}`, "net.json:2:21: link"},
		{`{"repair": "maybe"}`, "net.json:2:23: repair"},
		{`{"speed": 1}`, "net.json:2:13: unknown member \"speed\" of packets"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 9, "kmax_kb": 8}]}`, "net.json:2:21: marks of ports"},
		{`{"dcqcn": {"rpg_time_reset": 0}}`, "net.json:2:41: rpg_time_reset 0: write a number from 1 to"},
		{`{"dcqcn": {"dce_tcp_g": 1.5}}`, "net.json:2:36: dce_tcp_g 1.5: write a whole number from 0 to 1023"},
		{`{"dcqcn": {"rpg_speed": 1}}`, "net.json:2:23: unknown member \"rpg_speed\" of dcqcn"},
		{`{"ecn": 3}`, "net.json:2:20: a list"},
		{`7`, "net.json:2:12: an object"},
	} {
		if _, err := ParseNetwork([]byte(file(x.packets)), "net.json"); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.packets, err, x.want)
		}
	}
	for _, key := range []string{"cc", "nothing"} {
		err := n.Placed([]byte(good), "net.json", &PacketsError{Key: key, Problem: "is odd"})
		if placed := strings.HasPrefix(err.Error(), "net.json:2:"); placed != (key == "cc") {
			t.Errorf("%s: %v", key, err)
		}
	}
}
