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
	good := file(
		`{"preset": "dcqcn", "cc": "none", "link": "ethernet", "repair": "sr", "balance": "queue-pair", "hop_us": 0.5, "mtu": 1024, "ack_every": 1, "buffer_kb": 9000,
	"reserve_kb": 4, "resume_kb": 3, "alpha": 0.125, "headroom_delays": 3, "xoff_kb": 100, "xon_kb": 90, "pause_quanta": 65535, "cut_through": 128, "cnp": "frame", "credits_kb": 64, "window_kb": 0, "ecn": [{"gbit": 400, "kmin_kb": 800, "kmax_kb": 3200, "pmax": 0.2}]}`)
	n, err := ParseNetwork([]byte(good), "net.json")
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseNetwork(n.Format(), "again.json")
	if err != nil || string(again.Format()) != string(n.Format()) {
		t.Errorf("written again: %v\n%s\n%s", err, n.Format(), again.Format())
	}
	if p := n.Packets; *p.MTU != 1024 || *p.Alpha != 0.125 || len(p.Marks) != 1 || p.Marks[0].KMax != 3200 ||
		p.CC != "none" || *p.Window != 0 {
		t.Errorf("read as %+v", p)
	}
	for _, x := range []struct{ packets, want string }{
		{`{"mtu": 10}`, "net.json:2:20: mtu 10: write a whole number from 64"},
		{`{"mtu": 1000.5}`, "net.json:2:20: mtu"},
		{`{"alpha": 16}`, "net.json:2:22: alpha 16: write a number from 0.0009765625 to 8"},
		{`{"pause_quanta": 65536}`,
			"net.json:2:29: pause_quanta 65536: write a whole number from 0 to 65535"},
		{`{"link": "token-ring"}`, "net.json:2:21: link"},
		{`{"cnp": "mail"}`, "net.json:2:20: cnp"},
		{`{"repair": "maybe"}`, "net.json:2:23: repair"},
		{`{"speed": 1}`, "net.json:2:13: unknown member \"speed\" of packets"},
		{`{"mtu": null}`, "net.json:2:20: mtu null: write a number"},
		{`{"mtu": 1000, "mtu": 1024}`, "net.json:2:26: there are two \"mtu\" here"},
		{`{"cc": ""}`, "net.json:2:19: cc is empty"},
		{`{"preset": null}`, "net.json:2:23: preset is empty"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 9, "kmax_kb": 8, "pmax": 1}]}`,
			"net.json:2:21: marks of ports of 400 Gbit/s from 9 to 8 kB"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 9, "kmax_kb": 10, "pmax": 20}]}`,
			"net.json:2:21: marks of ports"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 9, "kmax_kb": 18}]}`,
			"net.json:2:21: marks of ports without pmax"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 9, "kmin_kb": 1, "kmax_kb": 18, "pmax": 1}]}`,
			"net.json:2:49: there are two \"kmin_kb\" here"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": null, "kmax_kb": 18, "pmax": 1}]}`,
			"net.json:2:46: kmin_kb null: write a number"},
		{`{"ecn": [{"gbit": 1e-10, "kmin_kb": 1, "kmax_kb": 18, "pmax": 1}]}`,
			"net.json:2:21: marks of ports of 1e-10 Gbit/s"},
		{`{"ecn": [{"gbit": 400, "kmin_kb": 1, "kmax_kb": 2, "pmax": 1}, {"gbit": 400, "kmin_kb": 3, "kmax_kb": 4, "pmax": 1}]}`, "net.json:2:75: two marks of ports of 400 Gbit/s"},
		{`{"dcqcn": {"rpg_ai_rate": null}}`, "net.json:2:38: rpg_ai_rate null: write a number"},
		{`{"dcqcn": {"rpg_ai_rate": 1, "rpg_ai_rate": 2}}`,
			"net.json:2:41: there are two \"rpg_ai_rate\" here"},
		{`{}, "packets": {}`, "net.json:2:16: there are two \"packets\" here"},
		{`{"dcqcn": {"rpg_time_reset": 0}}`, "net.json:2:41: rpg_time_reset 0: write a number from 1 to"},
		{`{"dcqcn": {"dce_tcp_g": 1.5}}`,
			"net.json:2:36: dce_tcp_g 1.5: write a whole number from 0 to 1023"},
		{`{"dcqcn": {"rpg_speed": 1}}`, "net.json:2:23: unknown member \"rpg_speed\" of dcqcn"},
		{`{"ecn": 3}`, "net.json:2:20: a list"},
		{`7`, "net.json:2:12: an object"},
	} {
		if _, err := ParseNetwork([]byte(file(x.packets)), "net.json"); err == nil ||
			!strings.Contains(err.Error(), x.want) {
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
