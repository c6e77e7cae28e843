package parity

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/study/decision"
)

// BenchmarkInspect is a whole decision document from a topology file, by
// number of nodes.
func BenchmarkInspect(b *testing.B) {
	for _, name := range []string{"dgx-h100", "dgx-b200"} {
		for _, nodes := range []int{1, 64, 2048} {
			b.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(b *testing.B) {
				path := filepath.Join(golden.Root(b, "testdata", "topos"), name+".xml")
				b.ReportAllocs()
				for b.Loop() {
					c, given, err := Build(path, nodes, false, nil)
					if err != nil {
						b.Fatal(err)
					}
					doc, err := decision.New(c, given)
					if err != nil {
						b.Fatal(err)
					}
					text, err := doc.Encode()
					if err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(len(text)))
				}
			})
		}
	}
}
