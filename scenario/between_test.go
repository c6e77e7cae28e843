package scenario

import (
	"testing"

	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/sim/gpu"
)

// TestBetweenNodes: one node has no network; two have RDMA, or sockets where a NET is one of NCCL's socket
// plugin.
func TestBetweenNodes(t *testing.T) {
	const host = "cpu 0\n  switch 10\n    gpu 11\n    gpu 12\n"
	const nic = "    card 13\n      net mlx5_0\n"
	for _, c := range []struct {
		host string
		n    int
		want gpu.Network
	}{{host + nic, 1, gpu.NoNetwork}, {host, 1, gpu.NoNetwork}, {host + nic, 2, gpu.RDMA},
		{host, 2, gpu.Sockets}, {host, 3, gpu.Sockets}} {
		x := ruletest.Comm(t, c.host, c.n)
		if got := (&Site{Comm: x, Cluster: x.Cluster}).Between(); got != c.want {
			t.Errorf("%d nodes of\n%s%v, want %v", c.n, c.host, got, c.want)
		}
	}
}
