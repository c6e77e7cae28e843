package search_test

import (
	"testing"

	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/search"
)

// BenchmarkSearch measures all graphs of one host, system and paths given.
func BenchmarkSearch(b *testing.B) {
	refs := golden.All(b)
	for _, name := range []string{
		"modal-b200-vm+nvls.n2", "modal-b200-vm.n2", "oci-h100-bm.n2", "dgx-h100.n2", "dgx-h100+nvls.n1",
		"dgx-1v.n1", "azure-ndv4.n4", "l20x16-pcie.n2", "gb200-nvl72-2tray+nvls.n4", "pcie-l40s-8.n2",
	} {
		for i := range refs {
			if refs[i].Name != name {
				continue
			}
			refs[i].Load(b)
			sys, p := systemOf(b, &refs[i]), paramsOf(b, &refs[i])
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				var steps int64
				for b.Loop() {
					set, err := search.All(sys, p)
					if err != nil {
						b.Fatal(err)
					}
					steps = 0
					for _, g := range set {
						steps += g.Steps
					}
				}
				b.ReportMetric(float64(steps), "steps/op")
			})
		}
	}
}
