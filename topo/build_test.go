package topo_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestLostGPUs: a GPU where NCCL does not look is an error with its place, not
// a machine with a rank too few.
func TestLostGPUs(t *testing.T) {
	const pci = `<pci busid="0000:%%:00.0" class="0x0302" link_speed="" link_width="16">`
	at := func(bus string) string { return strings.Replace(pci, "%%", bus, 1) }
	for _, c := range []struct{ name, in, want string }{
		{"two in one place", at("01") + `<gpu dev="0" sm="90"/><gpu dev="1" sm="90"/></pci>`,
			"t.xml:1:130: system/cpu[0]/pci[0]/gpu[1]: a second GPU in one <pci>"},
		{"under a NIC", at("01") + `<nic><net name="mlx5_0" dev="0"/></nic>` + at("02") +
			`<gpu dev="0" sm="90"/></pci></pci>` + at("03") + `<gpu dev="1" sm="90"/></pci>`,
			"also holds a <nic>"},
		{"under a GPU", at("01") + `<gpu dev="0" sm="90"/>` + at("02") + `<gpu dev="1" sm="90"/></pci></pci>`,
			"below another GPU's <pci>"},
		{"no sm", at("01") + `<gpu dev="0"/></pci>`, `gpu[0]: sm: is missing; write sm="N"`},
	} {
		spec, err := topoxml.Parse([]byte(`<system version="1"><cpu numaid="0">`+c.in+`</cpu></system>`),
			"t.xml")
		if err != nil {
			t.Fatal(err)
		}
		_, err = topo.Build(spec, topo.DefaultParams())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want %q, got %v", c.name, c.want, err)
		}
	}
}
