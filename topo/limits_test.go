package topo_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
	topoxml "github.com/simccl/simccl/topo/xml"
)

// build reads a topology and builds it for many ranks.
func build(t *testing.T, text string, p topo.Params) (*topo.Host, error) {
	t.Helper()
	spec, err := topoxml.Parse([]byte(text), "f.xml")
	if err != nil {
		t.Fatal(err)
	}
	p.NRanks = 64
	return topo.Build(spec, p)
}

// TestGPUsWhereNCCLDoesNotLook: a <gpu> in a place that NCCL skips was counted as a
// rank, and a topology with no other made Build panic.
func TestGPUsWhereNCCLDoesNotLook(t *testing.T) {
	gpu := `<pci busid="0000:01:00.0" class="0x030200"><gpu dev="0" sm="90"/></pci>`
	good := `<cpu numaid="0"><pci busid="0000:02:00.0" class="0x030200"><gpu dev="1" sm="90" gdr="1"/></pci></cpu>`
	for _, c := range []struct {
		name, in, place string
		none            bool // no GPU is left
	}{
		{"outside any cpu", gpu, "f.xml:1:64: system/pci[0]/gpu[0]", true},
		{"beside an empty cpu", `<cpu numaid="0"/>` + gpu, "f.xml:1:81: system/pci[0]/gpu[0]", true},
		{"beside a good one", good + gpu, "system/pci[0]/gpu[0]", false},
		{"in an unknown element", `<cpu numaid="0"><rack>` + gpu + `</rack></cpu>`,
			"system/cpu[0]/rack[0]/pci[0]/gpu[0]", true},
		{"in a nic", `<cpu numaid="0"><nic><gpu dev="0" sm="90"/></nic></cpu>`, "system/cpu[0]/nic[0]/gpu[0]",
			true},
		{"in nested nics", `<cpu numaid="0"><nic><nic><gpu dev="0" sm="90"/></nic></nic></cpu>`,
			"system/cpu[0]/nic[0]/nic[0]/gpu[0]", true},
		{"in a gpu",
			`<cpu numaid="0"><pci busid="0000:02:00.0"><gpu dev="1" sm="90"><gpu dev="0" sm="90"/></gpu></pci></cpu>`, "gpu[0]/gpu[0]", false},
		{"in a cpu itself", `<cpu numaid="0"><gpu dev="0" sm="90"/></cpu>`, "system/cpu[0]/gpu[0]", true},
		{"in a system in the system", `<system>` + good + `</system>`,
			"system/system[0]/cpu[0]/pci[0]/gpu[0]", true},
	} {
		for _, k := range []int{0, 1} {
			p := topo.DefaultParams()
			if p.GPUs.Set = k > 0; k > 0 {
				p.GPUs.Value = k
			}
			_, err := build(t, `<system version="1">`+c.in+`</system>`, p)
			var e *topo.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.place) ||
				!strings.Contains(err.Error(), "NCCL does not look for GPUs here") {
				t.Errorf("%s: %v, want it at %s", c.name, err, c.place)
			}
			if errors.Is(err, decl.ErrNoGPU) != c.none {
				t.Errorf("%s: no GPU: %v", c.name, !c.none)
			}
		}
	}
}

// many writes n hosts of one GPU each, or n GPUs of one host, or n CPUs.
func many(n int, each string) string {
	var b strings.Builder
	b.WriteString(`<system version="1">`)
	if each == "gpu" {
		b.WriteString(`<cpu numaid="0">`)
	}
	for i := range n {
		pci := fmt.Sprintf(
			`<pci busid="%04x:%02x:%02x.0" class="0x030200"><gpu dev="%d" sm="90" gdr="1"/></pci>`, i>>13,
			i>>5&255, i&31, i)
		switch each {
		case "gpu":
			b.WriteString(pci)
		case "cpu":
			fmt.Fprintf(&b, `<cpu numaid="%d">%s</cpu>`, i, pci)
		case "net":
			if i == 0 {
				b.WriteString(`<cpu numaid="0"><nic>`)
			}
			fmt.Fprintf(&b, `<net name="n%d" dev="%d" speed="1000"/>`, i, i)
		}
	}
	switch each {
	case "gpu":
		b.WriteString("</cpu>")
	case "net":
		b.WriteString(
			`</nic></cpu><cpu numaid="3"><pci busid="0000:02:00.0" class="0x030200"><gpu dev="1" sm="90" gdr="1"/></pci></cpu>`)
	}
	return b.String() + "</system>"
}

// TestNCCLsOwnLimits: NCCL holds 576 nodes of a kind.
func TestNCCLsOwnLimits(t *testing.T) {
	for _, c := range []struct {
		each string
		n    int
		want string
	}{
		{"gpu", 577, "577 GPUs in one NVLink domain"}, {"cpu", 577, "577 <cpu> elements"},
		{"net", 577, "577 nets in one NVLink domain"}, {"gpu", 200, ""}, {"cpu", 100, ""},
	} {
		_, err := build(t, many(c.n, c.each), topo.DefaultParams())
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%d of %s: %v, want %q", c.n, c.each, err, c.want)
		}
		var e *topo.Error
		if err != nil && (!errors.As(err, &e) || e.Pos.Line == 0) {
			t.Errorf("%d of %s: no place: %v", c.n, c.each, err)
		}
	}
	p := topo.DefaultParams()
	p.GPUs.Value, p.GPUs.Set = 8, true
	if h, err := build(t, many(20_000, "gpu"), p); err != nil || h.NRanks() != 8 {
		t.Errorf("8 of 20,000 GPUs: %v", err)
	}
}
