package netplugin

import (
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/rules"
)

// TestTuner: corners of the published regions, and sizes between them, have the choice
// that they have there; two nodes and other shapes are NCCL's own.
func TestTuner(t *testing.T) {
	for _, c := range []struct {
		class        string
		ranks, nodes int
		f            coll.Func
		bytes        uint64
		want         string
	}{
		{"efa-v2", 32, 4, coll.AllReduce, 1 << 20, "Tree/LL128"},
		{"efa-v2", 32, 4, coll.AllReduce, 37748736, "Tree/LL128"},
		{"efa-v2", 32, 4, coll.AllReduce, 37748737 + 1<<20, "Ring/LL128"},
		{"efa-v2", 32, 4, coll.AllReduce, 8 << 30, "Ring/Simple"},
		{"efa-v2", 128, 16, coll.AllReduce, 4 << 30, "NVLSTree/Simple"},
		{"efa-v3", 32, 4, coll.AllGather, 64 << 20, "Ring/LL128"},
		{"efa-v3", 4, 4, coll.AllGather, 1 << 20, "PAT/Simple"},
		{"efa-v2", 16, 2, coll.AllReduce, 1 << 20, ""},
		{"efa-v2", 12, 4, coll.AllReduce, 1 << 20, ""},
		{"efa-v1", 32, 4, coll.AllReduce, 1 << 20, ""},
	} {
		got := ""
		if p := Tuner(c.class, c.ranks, c.nodes, 90); p != nil {
			for _, r := range p.Rows {
				if r.Func == c.f && r.Min <= c.bytes && c.bytes <= r.Max {
					got = r.Algo.String() + "/" + r.Proto.String()
					break
				}
			}
		}
		if got != c.want {
			t.Errorf("%s, %d ranks on %d nodes, %v of %d bytes: %q, want %q", c.class, c.ranks, c.nodes, c.f,
				c.bytes, got, c.want)
		}
	}
	if Tuner("efa-v4", 32, 4, 100) == nil || Tuner("efa-v4", 32, 4, 103) != nil {
		t.Error("efa-v4 has regions for B200 alone")
	}
}

// TestPlugins: every plugin names variables and who publishes them.
func TestPlugins(t *testing.T) {
	for class, p := range plugins {
		if p.Name == "" || p.Source == "" || len(p.Settings(rules.Default().Release)) == 0 ||
			len(p.Settings(rules.Release{Major: 2, Minor: 21, Patch: 5})) == 0 {
			t.Errorf("%s: %+v", class, p)
		}
	}
	if Of("infiniband") != nil {
		t.Error("InfiniBand has a plugin")
	}
}
