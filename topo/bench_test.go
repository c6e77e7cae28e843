package topo_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func ownSpec(t testing.TB, machine string) *topo.Spec {
	t.Helper()
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", machine+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, machine+".xml")
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// BenchmarkPaths builds one NVLink domain of ever more DGX H100: fusion, nodes,
// links, all paths and their corrections; the last is the largest that NCCL holds.
func BenchmarkPaths(b *testing.B) {
	for _, hosts := range []int{1, 8, 32, 72} {
		b.Run(fmt.Sprintf("gpus=%d", 8*hosts), func(b *testing.B) {
			spec, err := decl.Join(decl.Group{Spec: ownSpec(b, "dgx-h100"), Count: hosts})
			if err != nil {
				b.Fatal(err)
			}
			p := topo.DefaultParams()
			p.NRanks = 16 * hosts
			b.ReportAllocs()
			for b.Loop() {
				if _, err := topo.Build(spec, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
