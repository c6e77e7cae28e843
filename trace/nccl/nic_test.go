package nccl

import (
	"testing"

	"github.com/simccl/simccl/trace"
)

// TestPortsHaveProcessesOfTheirOwn: by node and number, so that every run has the same; those beyond the 128
// of a node, or of nodes whose processes would be those of links, come in order behind all others.
func TestPortsHaveProcessesOfTheirOwn(t *testing.T) {
	r := New(&trace.Memory{}, Options{})
	const last = (3000000 - 2000000) / 128 // the node whose first 64 ports are below the links
	seen := map[int64]Port{}
	for i, c := range []struct {
		node, net int
		want      int64
	}{{0, 0, 2000000}, {0, 1, 2000001}, {1, 0, 2000128}, {0, 127, 2000127}, {0, 128, 5000004},
		{0, -1, 5000005}, {last, 63, 2999999}, {last, 64, 5000007}, {last + 1, 0, 5000008}} {
		p := Port{Node: c.node, Net: c.net, Name: "mlx5_0"}
		if got := r.NIC(p); got != i || r.NIC(p) != i {
			t.Errorf("%+v: handle %d, want %d", p, got, i)
		}
		pid := r.nics[i].base.Process
		if was, there := seen[pid]; pid != c.want || there {
			t.Errorf("%+v: process %d, want %d; it is %+v's", p, pid, c.want, was)
		}
		seen[pid] = p
	}
	if name := r.nics[2].base.ProcessName; name != "NIC mlx5_0 · node 1" {
		t.Error(name)
	}
}
