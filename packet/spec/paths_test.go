package spec

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/units"
)

// TestPathsAreChecked: cables that do not lead from a flow's host to the other, and paths where frames
// choose theirs, are refused.
func TestPathsAreChecked(t *testing.T) {
	n := &Network{Nodes: 4, Switch: []bool{false, false, true, true}}
	for _, c := range [][2]int32{{0, 2}, {1, 3}, {2, 3}, {2, 3}} {
		n.Cables = append(n.Cables, Cable{A: c[0], B: c[1], Rate: 1e11, Delay: units.Microsecond})
	}
	f := Flow{Src: 0, Dst: 1, Path: []int32{0, 3, 1}, Back: []int32{1, 2, 0}}
	for _, c := range []Config{{}, {Paths: 1}} {
		if err := f.checkPaths(n, 0, &c); err != nil {
			t.Errorf("%d paths: %v", c.Paths, err)
		}
	}
	if k := Longest([]Flow{f}, 2); k != 3 {
		t.Errorf("%d links", k)
	}
	for _, c := range []struct {
		path, back []int32
		c          Config
		want       string
	}{
		{[]int32{0, 3}, f.Back, Config{}, "flow 0: its path ends at node 3"},
		{f.Path, nil, Config{}, "acknowledgements of flow 0: no path"},
		{[]int32{0, 9, 1}, f.Back, Config{}, "cable 9: there are cables 0 to 3"},
		{f.Path, f.Back, Config{Routing: Routing{Balance: PerPacket}},
			"a path of its own where frames choose theirs"},
		{f.Path, f.Back, Config{Faults: []Fault{{Reroute: true}}},
			"a path of its own where frames choose theirs"},
	} {
		f := Flow{Src: 0, Dst: 1, Path: c.path, Back: c.back}
		if err := f.checkPaths(n, 0, &c.c); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}
