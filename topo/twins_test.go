package topo_test

import (
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestCPUsOfOneNumber holds the rule of paths.cc:23: two <cpu> of one numaid on
// a host, distinguished by another attribute,
// share the first one's table of paths. The second walk improves a path
// only where it brings more bandwidth at fewer hops, so the 3 GB/s link of GPU 1
// keeps its path through the socket link whole, and the table of the second CPU
// stays empty.
func TestCPUsOfOneNumber(t *testing.T) {
	build := func(speed string) *topo.System {
		t.Helper()
		in := `<system version="1">
  <cpu numaid="0" affinity="0f" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:10:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:11:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="80" gdr="1"/></pci>
    </pci>
  </cpu>
  <cpu numaid="0" affinity="f0" arch="x86_64" vendor="AuthenticAMD">
    <pci busid="0000:20:00.0" class="0x060400" link_speed="` + speed + `" link_width="16">
      <pci busid="0000:21:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="80" gdr="1"/></pci>
    </pci>
  </cpu>
</system>`
		spec, err := topoxml.Parse([]byte(in), "t.xml")
		if err != nil {
			t.Fatal(err)
		}
		p := topo.DefaultParams()
		p.P2PLevel.Set, p.P2PLevel.Value = true, topo.PathSYS
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		return h.Systems[0]
	}
	for _, c := range []struct {
		name, speed string
		kind        topo.PathKind
		bw          float32
		hops        int
	}{
		{"as fast as the socket link: the first walk's path stays", "2.5 GT/s PCIe", topo.PathSYS, 3, 3},
		{"faster than the socket link: the second walk's path", "16.0 GT/s PCIe", topo.PathPHB, 24, 2},
	} {
		s := build(c.speed)
		cpu, gpu := s.Of(topo.CPU), s.Of(topo.GPU)
		p := s.Path(gpu[1], cpu[0])
		if p.Kind != c.kind || float32(p.BW) != c.bw || len(p.Links) != c.hops {
			t.Errorf("%s: GPU 1 to the CPU is %v, %g GB/s, %d hops; want %v, %g, %d", c.name, p.Kind, p.BW,
				len(p.Links), c.kind, c.bw, c.hops)
		}
		if end := s.Links[p.Links[len(p.Links)-1]].To; c.hops == 3 && end != cpu[0] {
			t.Errorf("%s: the path ends at %s", c.name, s.Name(end))
		}
		if own := s.Path(cpu[1], cpu[0]); own.Kind != topo.PathLOC || len(own.Links) != 0 {
			t.Errorf("%s: the second CPU to the shared table is %v with %d hops, want LOC with none", c.name,
				own.Kind, len(own.Links))
		}
		for _, g := range gpu {
			if p := s.Path(g, cpu[1]); p.Kind != topo.PathDIS || len(p.Links) != 0 {
				t.Errorf("%s: %s to the second CPU's own table is %v, want DIS", c.name, s.Name(g), p.Kind)
			}
		}
	}
}
