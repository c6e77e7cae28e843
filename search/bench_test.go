package search_test

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/refsys"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// BenchmarkSearch measures all graphs of one host, system and paths given.
//
// NCCL 2.28.9's own search.cc (g++ -O2) took on the core of one EPYC on which
// this package took the time in brackets: modal-b200-vm n2 817 ms (22.5),
// oci-h100-bm n2 96 ms (8.3), azure-ndv4 n4 115 ms (9.6), gb200-nvl72-2tray n4
// 89 ms (11.8), l20x16-pcie n2 85 ms (12.9), pcie-l40s-8 n2 36 ms (7.4), dgx-1v
// n1 5.3 ms (1.5), the domain of 72 GPUs below 1062 ms (12).
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
			sys, p := refsys.System(b, &refs[i]), paramsOf(b, &refs[i])
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

// domain72 is a synthetic NVLink domain of 18 hosts with four GPUs, two CPUs and
// four nets each.
func domain72() *topo.System {
	m := &machine{}
	var gpus, cpus []topo.NodeID
	for g := range 72 {
		host := uint64(g / 4)
		gpus = append(gpus, m.add(topo.GPU, host<<56|uint64(0x1000*(g%4+1)),
			topo.Node{GPU: &topo.GPUInfo{Dev: g % 4, Rank: g, SM: 100, Host: int(host)}}))
	}
	nvs := m.add(topo.NVS, 0, topo.Node{})
	for c := range 36 {
		cpus = append(cpus, m.add(topo.CPU, uint64(c/2)<<56|uint64(c%2),
			topo.Node{CPU: &topo.CPUInfo{NUMA: c % 2, Arch: topo.ArchARM}}))
	}
	for g := range gpus {
		m.join(gpus[g], nvs, topo.LinkNVL, 721.8)
		m.join(gpus[g], cpus[g/2], topo.LinkC2C, 345)
	}
	for c := 0; c < len(cpus); c += 2 {
		m.join(cpus[c], cpus[c+1], topo.LinkSYS, 100)
	}
	for n := range 72 {
		host := uint64(n / 4)
		nic := m.add(topo.NIC, host<<56|uint64(0x7000*(n%4+1)), topo.Node{})
		m.join(nic, cpus[n/2], topo.LinkPCI, 48)
		net := m.add(topo.NET, host<<56|uint64(n%4), topo.Node{Net: &topo.NetInfo{
			Dev: n % 4, ASIC: uint64(100 + n), Port: 1, BW: 50, Host: int(host), PCIBusID: fmt.Sprint(n % 4),
		}})
		m.join(net, nic, topo.LinkNET, 50)
	}
	s := topo.Assemble(rules.Default(), m.nodes, m.links, m.paths())
	s.Inter, s.NHosts = true, 18
	for i, id := range s.Of(topo.NET) {
		s.Nodes[id].Net.LocalGPU = s.LocalGPU(i)
	}
	limits(s)
	return s
}

// BenchmarkSearchDomain measures a domain of 72 GPUs.
func BenchmarkSearchDomain(b *testing.B) {
	sys := domain72()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := search.All(sys, search.Params{Rules: rules.Default(), NVLS: true}); err != nil {
			b.Fatal(err)
		}
	}
}
