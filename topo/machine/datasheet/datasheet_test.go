package datasheet

import (
	"strings"
	"testing"
)

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
		"NVIDIA A10": "A10", "Tesla T4": "T4", "NVIDIA L40": "L40", "NVIDIA RTX A6000": "RTX A6000",
		"NVIDIA RTX 6000 Ada Generation": "RTX 6000 Ada", "NVIDIA GeForce RTX 3090": "RTX 3090",
		"rtx4090": "RTX 4090", "rtxpro6000": "RTX PRO 6000", "NVIDIA GeForce RTX 5090": "RTX 5090",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "RTX PRO 6000", "Quadro RTX 6000": "",
		"NVIDIA GeForce RTX 3080": "", "A4000": "",
	} {
		if g, ok := Find(name); g.Name != want || ok != (want != "") {
			t.Errorf("%q is %q, want %q", name, g.Name, want)
		}
	}
	for _, name := range Names() {
		if g, ok := Find(name); !ok || g.Name != name || g.Matrix < g.Single || g.Single <= 0 ||
			g.Memory <= 0 || g.Capacity < 16 || g.CapacityBytes() < 16<<30 || g.Link <= 0 ||
			g.Link > FastestLink() {
			t.Errorf("%s: %+v, %v", name, g, ok)
		}
	}
}

// TestFiguresAgree: NVLinks have 25 GB/s in one direction, 50 from the B200 on; without any it is PCIe with
// 16 lanes. From the A100 on TF32 has half the rate of BF16.
func TestFiguresAgree(t *testing.T) {
	links := map[string]float64{"GB300": 18, "GB200": 18, "GH200": 18, "B300": 18, "B200": 18, "H200": 18,
		"H20": 18, "H100": 18, "H100 96GB": 18, "H800": 8, "H800 PCIe": 8, "H100 PCIe": 12, "H100 NVL": 12,
		"A100": 12, "A100 80GB PCIe": 12, "A100 PCIe": 12, "A100 40GB": 12, "A800": 8, "V100": 6}
	pcie := map[string]float64{"L40S": 32, "L4": 32, "RTX 4090": 32, "A10G": 32, "RTX PRO 6000": 64,
		"T4": 16, "A10": 32, "A30": 32, "A40": 32, "L40": 32, "L20": 32, "RTX A6000": 32,
		"RTX 6000 Ada": 32, "RTX 3090": 32, "RTX 5090": 64}
	halves := map[string]bool{"V100": true, "T4": true, "L40S": true, "RTX PRO 6000": true} // T4: no TF32
	for _, g := range gpus {
		if strings.HasPrefix(g.Name, "MI") {
			continue
		}
		want := 25 * links[g.Name]
		if strings.Contains(strings.Fields(g.Name)[0], "B") && links[g.Name] == 18 {
			want *= 2
		}
		if links[g.Name] == 0 {
			want = pcie[g.Name]
		}
		if g.Link != want || want == 0 {
			t.Errorf("%s: %v GB/s to other GPUs, want %v", g.Name, g.Link, want)
		}
		if off := g.Matrix - 2*g.Single; !halves[g.Name] && (off < -1 || off > 1) {
			t.Errorf("%s: %v TFLOP/s in TF32 of %v in BF16", g.Name, g.Single, g.Matrix)
		}
	}
}
