package fabric

import (
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestNumbersThatAreNone: every number of a fabric file is read, and what is none is refused at its line.
func TestNumbersThatAreNone(t *testing.T) {
	golden.Damage(t, golden.Input{Name: "net.json", Instead: `"4x2"`, Free: golden.Quoted, Text: `{"name": "x",
"packets": {"mtu": 4096, "hop_us": 0.3, "ack_every": 4,
  "buffer_kb": 64000, "alpha": 0.125, "reserve_kb": 4,
  "resume_kb": 3, "headroom_delays": 3, "watchdog_us": 200,
  "window_kb": 64, "message_mps": 100, "cut_through": 64,
  "dcqcn": {"rpg_time_reset": 300, "rpg_ai_rate": 5, "dce_tcp_g": 1019},
  "ecn": [{"gbit": 400, "kmin_kb": 100, "kmax_kb": 400, "pmax": 0.2}]},
"nets": [{"net": 0, "rail": 0, "plane": 0}, {"net": 1, "rail": 1, "plane": 1}],
"switches": [{"name": "s"}, {"name": "t"}],
"cables": [
  {"a": "node0/0", "b": "s", "gbit": 400, "latency_us": 0.5},
  {"a": "node1/0", "b": "s", "gbit": 400},
  {"a": "s", "b": "t", "gbit": 200.5, "latency_us": 2, "count": 2}]}
`, Read: func(text string) error {
		_, err := ParseNetwork([]byte(text), "net.json")
		return err
	}})
}
