package topo_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/units"
)

// twoSockets: a GPU and a card of two ports on each; every attribute that a rank
// completes from its host is there.
const twoSockets = `<system version="1">
<cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:10:00.0" class="0x060400" link_speed="a" link_width="16">
<pci busid="0000:11:00.0" class="0x030200" link_speed="b" link_width="16"><gpu dev="0" sm="80" gdr="1"/></pci>
<pci busid="0000:12:00.0" class="0x020000" link_speed="c" link_width="16"><nic><net name="mlx5_0" dev="0" speed="100000" port="1" guid="0x1" gdr="1"/></nic></pci>
<pci busid="0000:12:00.1" class="0x020000" link_speed="c" link_width="16"><nic><net name="mlx5_1" dev="1" speed="100000" port="1" guid="0x2" gdr="1"/></nic></pci>
</pci></cpu>
<cpu numaid="1" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="0000:20:00.0" class="0x060400" link_speed="d" link_width="16">
<pci busid="0000:21:00.0" class="0x030200" link_speed="e" link_width="16"><gpu dev="1" sm="80" gdr="1"/></pci>
</pci></cpu>
</system>`

// TestRequiredAttributes: NCCL fails on what a file does not say and no rank completes
// from its host in its own tree: in the branches of nets, which all ranks have, unless
// all their GPUs are in them (graph/topo.cc:484, graph/xml.cc:573 of v2.28.9). Up to 2.21.5
// each rank completes the branches of all GPUs (graph/topo.cc:690 of v2.21.5).
func TestRequiredAttributes(t *testing.T) {
	const gpus = 2
	for _, c := range []struct {
		name, cut, with string
		gpus            int
		releases        []string // that refuse it; nil for all
		want            string   // place and attribute, "" where none refuses it
	}{
		{"all is there", "", "", gpus, nil, ""},
		{"width of a GPU", ` link_speed="e" link_width="16"`, "", gpus, nil, ""},
		{"a switch above one GPU alone", ` class="0x060400" link_speed="d" link_width="16"`, "", gpus, nil, ""},
		{"width of a NIC", ` link_speed="c" link_width="16"`, ` link_speed="c"`, gpus, nil,
			"t.xml:5:1: system/cpu[0]/pci[0]/pci[1]: has no link_width: "},
		{"speed of a NIC", ` link_speed="c" link_width="16"`, ` link_width=""`, gpus, nil,
			"t.xml:5:1: system/cpu[0]/pci[0]/pci[1]: has no link_speed: "},
		{"class of a NIC", ` class="0x020000"`, "", gpus, nil,
			"t.xml:5:1: system/cpu[0]/pci[0]/pci[1]: has no class: "},
		{"a switch above a NIC and one of two GPUs", ` link_speed="a"`, "", gpus, []string{"2.22.3", "2.28.9",
			"2.30.7"}, "t.xml:3:1: system/cpu[0]/pci[0]: has no link_speed: "},
		{"a switch above a NIC and the only GPU", ` link_speed="a"`, "", 1, nil, ""},
		{"a CPU above a NIC", ` arch="x86_64" vendor="GenuineIntel"`, "", gpus, []string{"2.22.3", "2.28.9",
			"2.30.7"}, "t.xml:2:1: system/cpu[0]: has no arch, vendor: "},
		{"the model of a CPU above a NIC", ` familyid="6" modelid="143"`, ` familyid="6"`, gpus,
			[]string{"2.22.3", "2.28.9", "2.30.7"}, "t.xml:2:1: system/cpu[0]: has no modelid: "},
		{"empty values are values", ` link_speed="c" link_width="16"`, ` link_speed="" link_width=""`, gpus, nil,
			""},
	} {
		for _, release := range []string{"2.21.5", "2.22.3", "2.28.9", "2.30.7"} {
			text := strings.Replace(twoSockets, c.cut, c.with, 1)
			spec, err := topoxml.Parse([]byte(text), "t.xml")
			if err != nil {
				t.Fatal(err)
			}
			r, err := rules.For(release)
			if err != nil {
				t.Fatal(err)
			}
			p := topo.ParamsOf(r)
			p.GPUs, p.NRanks = units.Some(c.gpus), 4
			want := c.want
			if c.releases != nil && !contains(c.releases, release) {
				want = ""
			}
			_, err = topo.Build(spec, p)
			var errs topo.Errors
			switch {
			case want == "" && err != nil, want != "" && !errors.As(err, &errs):
				t.Errorf("%s by %s: %v, want %q", c.name, release, err, want)
			case want != "" && (!strings.HasPrefix(err.Error(), want) || errs[0].Hint == ""):
				t.Errorf("%s by %s: %v, want %q", c.name, release, err, want)
			}
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// TestWidthsBelowVirtualNICs: to widen the links above a virtual NIC NCCL reads the width
// of every device below them, of other ranks' GPUs too (graph/topo.cc:1180 of v2.28.9).
func TestWidthsBelowVirtualNICs(t *testing.T) {
	const bad = `link_speed="b"`
	text := strings.NewReplacer(`0000:12:00.1`, `0000:13:00.0`, `link_speed="b" link_width="16"`, bad).Replace(
		twoSockets)
	spec, err := topoxml.Parse([]byte(text), "t.xml")
	if err != nil {
		t.Fatal(err)
	}
	for level, want := range map[topo.PathKind]string{topo.PathLOC: "",
		topo.PathPIX: "t.xml:4:1: system/cpu[0]/pci[0]/pci[0]: has no link_width: "} {
		p := topo.DefaultParams()
		p.NRanks, p.MergeLevel = 4, units.Some(level)
		_, err := topo.Build(spec, p)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("merged up to %v: %v, want %q", level, err, want)
		}
	}
}
