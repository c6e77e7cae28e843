package fabric_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
)

// TestSubset: a part of a cluster has the GPUs that were asked for, numbered from 0
// on each host, with their own bus ids; a part that is all is the same as the whole.
func TestSubset(t *testing.T) {
	spec := specOf(t, "dgx-h100")
	p := topo.DefaultParams()
	whole, err := fabric.NewUniform(spec, 3, p)
	if err != nil {
		t.Fatal(err)
	}
	s, err := whole.Subset([]int32{1, 5, 17, 21}, p)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Hosts, []int{0, 2}) || s.Cluster.NRanks() != 4 || s.Cluster.NHosts() != 2 ||
		len(s.Cluster.Classes) != 1 {
		t.Fatalf("%+v", s)
	}
	for i, rank := range []int{1, 5, 17, 21} {
		a, b := s.Cluster.Locate(i), whole.Locate(rank)
		x, y := a.System.Nodes[a.GPU].GPU, b.System.Nodes[b.GPU].GPU
		if x.BusID != y.BusID || x.Dev != y.Dev || x.Rank != i%2 {
			t.Errorf("rank %d is %+v, want %+v", i, x, y)
		}
	}
	all, err := whole.Subset([]int32{0, 1, 2, 3, 4, 5, 6, 7}, p)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := fabric.NewUniform(spec, 1, p)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := all.Cluster.Host(0).Systems[0], alone.Host(0).Systems[0]; len(a.Nodes) != len(b.Nodes) ||
		len(a.Links) != len(b.Links) {
		t.Errorf("all GPUs of a host: %d nodes and %d links, the host alone has %d and %d", len(a.Nodes),
			len(a.Links), len(b.Nodes), len(b.Links))
	}
	for _, bad := range [][]int32{nil, {-1}, {24}, {3, 3}, {5, 1}} {
		var e *fabric.SubsetError
		if _, err := whole.Subset(bad, p); !errors.As(err, &e) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
