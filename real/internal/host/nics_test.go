package host

import (
	"reflect"
	"testing"

	"github.com/simccl/simccl/real/internal/transport"
)

// named is a net that only has names; fusing is one that can fuse them.
type named struct {
	transport.Net
	names []string
}

func (n *named) Devices() (out []transport.Properties, err error) {
	for _, s := range n.names {
		out = append(out, transport.Properties{Name: s})
	}
	return out, nil
}

type fusing struct {
	named
	made [][]int
}

func (f *fusing) Fuse(devs ...int) (int, error) {
	f.made = append(f.made, devs)
	return len(f.names) + len(f.made) - 1, nil
}

func one(names ...string) (out []NIC) {
	for _, n := range names {
		out = append(out, NIC{[]string{n}})
	}
	return out
}

// TestNICsOfThePlanBecomeDevices: by name on the machine of the topology, in
// turn on another.
func TestNICsOfThePlanBecomeDevices(t *testing.T) {
	here := []string{"mlx5_0", "mlx5_1", "mlx5_2"}
	pairs := []NIC{{[]string{"mlx5_2", "mlx5_0"}}, {[]string{"mlx5_1"}}, {[]string{"mlx5_2", "mlx5_0"}}}
	for _, c := range []struct {
		name string
		net  transport.Net
		nics []NIC
		want []int
		ours bool
	}{
		{"by name", &named{names: here}, one("mlx5_2", "mlx5_0"), []int{2, 0}, true},
		{"of another machine", &named{names: here}, one("rxe0", "mlx5_0", "rxe2", "rxe3"), []int{0, 1, 2, 0},
			false},
		{"fused, once each", &fusing{named: named{names: here}}, pairs, []int{3, 1, 3}, true},
		{"fused where the net cannot", &named{names: here}, pairs, []int{0, 1, 2}, false},
		{"no NIC", &named{names: here}, nil, []int{}, true},
	} {
		got, ours, err := Assign(c.net, c.nics)
		if err != nil || ours != c.ours || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: devices %v (by name: %t), want %v: %v", c.name, got, ours, c.want, err)
		}
	}
	f := &fusing{named: named{names: here}}
	if _, _, err := Assign(f, pairs); err != nil || !reflect.DeepEqual(f.made, [][]int{{2, 0}}) {
		t.Errorf("fuses %v, want 2 and 0 once: %v", f.made, err)
	}
}
