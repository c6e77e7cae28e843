package web

import "testing"

// TestRoleKeepsTheNIC: equal links of all nodes have one role; a NIC that a fault slows is named.
func TestRoleKeepsTheNIC(t *testing.T) {
	for name, want := range map[string]string{"node3 GPU0→NVSwitch": "GPU→NVSwitch",
		"node0/mlx5_4 slow in": "node0/mlx5_4 slow in", "leaf0→spine1": "leaf0→spine1"} {
		if got := role(name); got != want {
			t.Errorf("%s has role %q, want %q", name, got, want)
		}
	}
}
