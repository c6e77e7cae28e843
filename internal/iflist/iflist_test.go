package iflist

import (
	"strings"
	"testing"
)

// TestListed reads lists as NCCL does (misc/utils.cc:136-192).
func TestListed(t *testing.T) {
	for _, c := range []struct {
		list, name string
		port       int
		want       bool
	}{
		{"", "mlx5_0", 1, true}, {"mlx5", "mlx5_0", 1, true}, {"=mlx5", "mlx5_0", 1, false},
		{"=mlx5_0", "mlx5_0", 1, true},
		{"mlx5_1", "mlx5_10", 1, true}, {"=mlx5_1", "mlx5_10", 1, false}, {"^mlx5_1", "mlx5_10", 1, false},
		{"^=mlx5_1", "mlx5_10", 1, true},
		{"mlx5_0:2", "mlx5_0", 1, false}, {"mlx5_0:1", "mlx5_0", 1, true}, {"mlx5_0:1x,a", "mlx5_0", 1, true},
		{"^mlx5_0:2", "mlx5_0", 1, true},
		{"a,,mlx5_0", "mlx5_0", 1, true}, {",", "mlx5_0", 1, true}, {"^", "mlx5_0", 1, false},
		{":1", "mlx5_0", 1, true},
		{"eth0:1", "eth0", -1, true}, {"^docker,lo", "lo", -1, false}, {"^docker,lo", "long", -1, false},
		{"^=docker,lo", "long", -1, true},
		{strings.Repeat("x,", 31) + "mlx5", "mlx5_0", 1, true}, {strings.Repeat("x,", 32) + "mlx5", "mlx5_0",
			1, false},
		{strings.Repeat("x,", 15) + "eth", "eth0", -1, true}, {strings.Repeat("x,", 16) + "eth", "eth0", -1,
			false},
		{"mlx5_0:01", "mlx5_0", 1, true}, {"^mlx5_0:2,mlx5_1", "mlx5_1", 1, false},
	} {
		if got := Listed(c.list, c.name, c.port); got != c.want {
			t.Errorf("list %q, %s port %d: %v, want %v", c.list, c.name, c.port, got, c.want)
		}
	}
}
