package show_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/show"
	topoxml "github.com/simccl/simccl/topo/xml"
)

func hostOf(t *testing.T, machine string, nRanks int) *topo.Host {
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
	p.NRanks = nRanks
	h, err := topo.Build(spec, p)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestPages keeps the pages that people read; look at the files.
func TestPages(t *testing.T) {
	for _, m := range []string{"dgx-h100", "hgx-a100-4", "gh200", "h200x4-4", "pcie-l40s-8",
		"gb200-nvl72-2tray"} {
		h := hostOf(t, m, 64)
		golden.Text(t, "testdata/"+m+".txt", show.Text(h, true))
		if m == "gh200" {
			golden.Text(t, "testdata/"+m+".dot", show.Dot(h.Systems[0]))
		}
	}
}

// TestEveryMachineHasAPage draws all that there is.
func TestEveryMachineHasAPage(t *testing.T) {
	for _, r := range golden.Own(t) {
		if r.Nodes != 2 {
			continue
		}
		h := hostOf(t, r.Machine, 1<<10)
		text := show.Text(h, true)
		for _, g := range h.GPUs {
			if !strings.Contains(text, g.BusID) {
				t.Errorf("%s: the page lacks GPU %s", r.Machine, g.BusID)
			}
		}
		for _, n := range h.Systems[0].Of(topo.NET) {
			if name := h.Systems[0].Nodes[n].Net.Name; !strings.Contains(text, name) {
				t.Errorf("%s: the page lacks net %s", r.Machine, name)
			}
		}
		dot := show.Dot(h.Systems[0])
		if strings.Count(dot, "{") != 1 || strings.Count(dot, " -- ") < len(h.GPUs) {
			t.Errorf("%s: an odd drawing:\n%s", r.Machine, dot)
		}
		if _, err := json.Marshal(show.JSON(h)); err != nil {
			t.Errorf("%s: %v", r.Machine, err)
		}
	}
}

// TestNarrow: paths and NICs of every built-in machine fit 80 columns, and say as much as
// the matrix of what leads where.
func TestNarrow(t *testing.T) {
	for _, m := range builtin.NVIDIA() {
		spec, err := topoxml.Parse(m.XML(), m.Name)
		if err != nil {
			t.Fatal(err)
		}
		p := topo.DefaultParams()
		p.NRanks = 64
		h, err := topo.Build(spec, p)
		if err != nil {
			t.Fatal(err)
		}
		text := show.Text(h, false)
		paths, _, _ := strings.Cut(text, "\nCPU NUMA")
		if len(spec.Root.All("gpu")) > 1 && !strings.Contains(paths, "NVL") {
			t.Errorf("%s: no legend", m.Name)
		}
		for line := range strings.Lines(paths) {
			if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 && !strings.HasPrefix(line, "  ") &&
				!strings.HasPrefix(line, "GPUs ") {
				t.Errorf("%s: %d columns: %s", m.Name, n, line)
			}
		}
	}
}

// TestPageIsNarrow: without --wide no line has more than 80 columns, whatever the machine.
func TestPageIsNarrow(t *testing.T) {
	for _, r := range golden.Own(t) {
		if r.Nodes != 1 {
			continue
		}
		for line := range strings.Lines(show.Text(hostOf(t, r.Machine, 1<<10), false)) {
			if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
				t.Errorf("%s: %d columns: %s", r.Machine, n, line)
			}
		}
	}
}
