package datasheet

import "testing"

// TestFind: names as drivers, clouds and people write them, and what must not be taken
// for another GPU.
func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "NVIDIA H100 PCIe": "H100 PCIe", "NVIDIA H100 NVL": "H100 NVL",
		"h100": "H100", "NVIDIA H200": "H200", "NVIDIA H20": "H20",
		"NVIDIA A100-SXM4-80GB": "A100", "NVIDIA A100-SXM4-40GB": "A100 40GB",
		"NVIDIA A100 80GB PCIe": "A100 80GB PCIe", "NVIDIA A100-PCIE-40GB": "A100 PCIe", "a100": "A100",
		"Tesla V100-SXM2-32GB": "V100", "NVIDIA GB200": "GB200", "NVIDIA B200": "B200",
		"NVIDIA GH200 480GB": "GH200", "NVIDIA L4": "L4", "NVIDIA L40S": "L40S",
		"NVIDIA GeForce RTX 4090": "RTX 4090", "A10G": "A10G", "": "", "MI300X": "MI300X",
		"AMD Instinct MI300X OAM":     "MI300X",
		"AMD Instinct MI250X / MI250": "MI250X", "MI308X": "", "h1000": "",
		"NVIDIA A10": "",
	} {
		if g, ok := Find(name); g.Name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", name, g.Name, want)
		}
	}
	for _, name := range Names() {
		if g, ok := Find(name); !ok || g.Name != name || g.Matrix < g.Single || g.Single <= 0 ||
			g.Memory <= 0 || g.Capacity < 20 || g.CapacityBytes() < 20<<30 || g.Link <= 0 ||
			g.Link > FastestLink() {
			t.Errorf("%s: %+v, %v", name, g, ok)
		}
	}
}
