package decide

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func commOf(t *testing.T, machine string, nodes int) *comm.Comm {
	t.Helper()
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", machine+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, machine+".xml")
	if err != nil {
		t.Fatal(err)
	}
	p := topo.DefaultParams()
	cl, err := fabric.NewUniform(spec, nodes, p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := comm.New(cl, comm.Params{Rules: rules.Default(), Access: p.Access,
		Multicast: comm.MulticastOff})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDrawings(t *testing.T) {
	c := commOf(t, "hgx-a100-4", 2)
	golden.Text(t, "testdata/hgx-a100-4.n2.dot", dot(c.Layout, c.Cluster))
	golden.Text(t, "testdata/hgx-a100-4.n2.txt", ringsText(c.Layout, c.Cluster))
}

// TestEveryRankIsOnce follows each ring and tree of the document.
func TestEveryRankIsOnce(t *testing.T) {
	for _, m := range []string{"dgx-h100", "h200x4-4", "dgx-1v", "gb200-nvl72-2tray"} {
		c := commOf(t, m, 3)
		d := documentOf(c.Layout, c.Cluster)
		if len(d.Channels) != c.NChannels || len(d.Nodes) != 3 {
			t.Errorf("%s: %d channels and %d nodes, want %d and 3", m, len(d.Channels), len(d.Nodes),
				c.NChannels)
		}
		for _, ch := range d.Channels {
			seen := map[int]bool{}
			for i, s := range ch.Steps {
				seen[s.From] = true
				if s.To != ch.Steps[(i+1)%len(ch.Steps)].From {
					t.Fatalf("%s channel %d: the ring breaks after rank %d", m, ch.Channel, s.From)
				}
				if (s.Transport == "NET") != (s.Out != "" && s.In != "") {
					t.Errorf("%s channel %d: %+v", m, ch.Channel, s)
				}
			}
			if len(seen) != c.NRanks || len(ch.Edges) != c.NRanks-1 {
				t.Errorf("%s channel %d: %d ranks in the ring and %d edges in the tree of %d", m, ch.Channel,
					len(seen), len(ch.Edges), c.NRanks)
			}
		}
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
		if dot := dot(c.Layout, c.Cluster); strings.Count(dot, "subgraph") != 3 {
			t.Errorf("%s: an odd drawing", m)
		}
	}
}
