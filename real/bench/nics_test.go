package bench

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo"
)

// ports is a net that only has names.
type ports struct {
	transport.Net
	names []string
}

func (p ports) Devices() (out []transport.Properties, err error) {
	for _, n := range p.names {
		out = append(out, transport.Properties{Name: n})
	}
	return out, nil
}

// TestConnectionsUseThePlansNICs: on the topology's own machine every end of a
// ring between two nodes goes by the NIC that the graph has there, and all
// rails carry.
func TestConnectionsUseThePlansNICs(t *testing.T) {
	m, err := scenario.Load(&scenario.Spec{}, scenario.Options{}) // two DGX H100
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	s := m.Cluster.Host(0).Systems[0]
	for _, id := range s.Of(topo.NET) {
		names = append(names, s.Nodes[id].Net.Name)
	}
	slices.Reverse(names) // not in the topology's order
	device, err := assignNICs(m.Cluster, ports{names: names})
	if err != nil {
		t.Fatal(err)
	}
	p, err := build.Plan(m.Comm.Layout, plan.Request{Func: coll.AllReduce, Type: coll.Float32, Count: 1 << 20,
		Algo: coll.Ring, Proto: coll.Simple, Channels: m.Comm.NChannels, Warps: 16})
	if err != nil {
		t.Fatal(err)
	}
	used := map[int]bool{}
	for i := range int32(p.NumConns()) {
		r := p.Conn(i).Route
		if r.Transport != connect.NET {
			continue
		}
		for _, end := range [][2]int32{{p.Conn(i).Src, r.SrcNet}, {p.Conn(i).Dst, r.DstNet}} {
			want := s.Nodes[s.Of(topo.NET)[end[1]]].Net.Name
			d := device(end[0], end[1])
			if used[d] = true; names[d] != want {
				t.Errorf("channel %d of rank %d goes by %s, its graph has %s", p.Conn(i).Channel, end[0],
					names[d], want)
			}
		}
	}
	if len(used) != len(names) {
		t.Errorf("%d of %d NICs carry", len(used), len(names))
	}
	// On another machine, two nodes of one place do not share a port.
	if device, err = assignNICs(m.Cluster, ports{names: []string{"rxe0", "rxe1"}}); err != nil ||
		device(0, 0) == device(8, 0) {
		t.Errorf("both nodes have port %d: %v", device(0, 0), err)
	}
}
