package build

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
)

// TestPortsNumberTheirEnds: at each port the ends are numbered from 1,
// each once and in the order of connections; ids that nothing uses have none.
func TestPortsNumberTheirEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := draw.Layout(t, draw.Shape{PerNode: rapid.IntRange(1, 6).Draw(t, "perNode"),
			Nodes: rapid.IntRange(1, 4).Draw(t, "nodes"), Channels: rapid.IntRange(1, 3).Draw(t, "channels")})
		p, err := Plan(c, draw.Request(t, c))
		if err != nil {
			t.Fatal(err)
		}
		ends := p.PortEnds()
		last := map[[2]int32]int32{}
		for id := range p.NumConns() {
			k := p.Conn(id)
			if k.Src == -1 || k.Dst == -1 {
				if ends.Src[id] != 0 || ends.Dst[id] != 0 {
					t.Fatalf("connection %d is nobody's and has numbers %d, %d", id, ends.Src[id],
						ends.Dst[id])
				}
				continue
			}
			for _, e := range []struct{ rank, net, number int32 }{{k.Src, k.Route.SrcNet, ends.Src[id]},
				{k.Dst, k.Route.DstNet, ends.Dst[id]}} {
				if e.rank == plan.Network {
					if e.number != 0 {
						t.Fatalf("connection %d has number %d in the network", id, e.number)
					}
					continue
				}
				at := [2]int32{c.NodeOf[e.rank], e.net}
				if last[at]++; e.number != last[at] {
					t.Fatalf("connection %d has number %d at port %v, want %d", id, e.number, at, last[at])
				}
			}
		}
	})
}
