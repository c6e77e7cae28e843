// Package datasheet contains NVIDIA's and AMD's figures of their GPUs: the rate of matrix products, the
// bandwidth and size of device memory. They are peaks, not what kernels reach.
//
// What it must not know: machines, jobs.
//
// Source: NVIDIA's data sheets (V100, T4, A100, A10, A30, A40, A10G as of AWS g5, L4, L20, L40, L40S, H100,
// H200, H20, GH200, B200, GB200, B300, GB300, RTX A6000, RTX 6000 Ada) and the whitepapers of the RTX 3090,
// 4090 and 5090; rates of dense BF16 with FP32 accumulation, for V100 and T4 of FP16 and, as they have no
// TF32, of FP32. The bridges that join two A30, A40, A6000 or 3090 are not counted. For boards of several
// GPUs the figure is one GPU's share (HGX B200 and B300: 36 PFLOPS with sparsity on eight). Memory of GH200
// is that with HBM3, of the H100 of 96 GB HBM2e as torchtitan's benchmarks state it, of V100 the larger of
// its two sizes. AMD's data sheets (MI210, MI250, MI250X, MI300A, MI300X, MI325X, MI350X, MI355X): of MI250
// and MI250X the figure is one GCD's half. Matrix is compute units x operations a clock x the highest
// clock: 104 (MI210, a GCD of MI250) or 110 x 1,024 x 1.7 GHz, 228 and 304 x 2,048 x 2.1, 256 x 4,096 x 2.2
// (MI350X) or 2.4; memory as AMD announced it (1.6, 5.3, 6.0 and 8.0 TB/s). Compute units and sizes of
// memory are those of rocm.docs.amd.com/en/latest/reference/gpu-specs.html; a link of MI300X has 128 GB/s
// both ways (its platform's data sheet), of MI355X 76.8 one way (vllm-project/vllm pull 39080). Links of
// MI200 and MI300A were not checked again. Single is TF32 on MI300 and FP32 by matrix cores where there is
// no TF32; Link is half of the Infinity Fabric links' rate in both directions.
package datasheet

import (
	"slices"
	"strings"
)

// GPU is the peak rates and memory of one GPU model.
type GPU struct {
	Name   string
	Matrix float64 // TFLOP/s of dense matrix products in BF16
	Single float64 // TFLOP/s of dense matrix products of 32-bit numbers in TF32
	Memory float64 // GB/s of device memory, read and written
	Link   float64 // GB/s in one direction to other GPUs: NVLink, or PCIe where there is none
	// Capacity is the device memory in GB as data sheets count it: 2^30 bytes, of which the driver
	// shows some percent less (80 GB of an H100 are 81559 MiB in nvidia-smi).
	Capacity float64
}

// CapacityBytes returns the device memory in bytes.
func (g *GPU) CapacityBytes() int64 { return int64(g.Capacity) << 30 }

// Makers names the vendors of two GPUs' data sheets: "NVIDIA's", "AMD's" or both.
func Makers(a, b GPU) string {
	amd := func(g GPU) bool { return strings.HasPrefix(g.Name, "MI") }
	switch {
	case amd(a) && amd(b):
		return "AMD's"
	case amd(a) || amd(b):
		return "NVIDIA's and AMD's"
	}
	return "NVIDIA's"
}

// gpus are looked through in order: the first whose words all occur in a name.
var gpus = []struct {
	words string
	GPU
}{
	{"gb300", GPU{"GB300", 2500, 1250, 8000, 900, 279}}, {"gb200", GPU{"GB200", 2500, 1250, 8000, 900, 186}},
	{"gh200", GPU{"GH200", 989.4, 494.7, 4000, 450, 96}},
	{"b300", GPU{"B300", 2250, 1125, 8000, 900, 270}}, {"b200", GPU{"B200", 2250, 1125, 8000, 900, 180}},
	{"h200", GPU{"H200", 989.4, 494.7, 4800, 450, 141}}, {"h20", GPU{"H20", 148, 74, 4000, 450, 96}},
	{"h800 pcie", GPU{"H800 PCIe", 756, 378, 2000, 200, 80}},
	{"h800", GPU{"H800", 989.4, 494.7, 3350, 200, 80}},
	{"h100 pcie", GPU{"H100 PCIe", 756, 378, 2000, 300, 80}},
	{"h100 nvl", GPU{"H100 NVL", 835.5, 417.5, 3900, 300, 94}},
	{"h100 96gb", GPU{"H100 96GB", 989.4, 494.7, 2400, 450, 96}},
	{"h100", GPU{"H100", 989.4, 494.7, 3350, 450, 80}},
	{"a800", GPU{"A800", 312, 156, 2039, 200, 80}},
	{"a100 80gb pcie", GPU{"A100 80GB PCIe", 312, 156, 1935, 300, 80}},
	{"a100 pcie", GPU{"A100 PCIe", 312, 156, 1555, 300, 40}},
	{"a100 40gb", GPU{"A100 40GB", 312, 156, 1555, 300, 40}}, {"a100", GPU{"A100", 312, 156, 2039, 300, 80}},
	{"v100", GPU{"V100", 125, 15.7, 900, 150, 32}}, {"l40s", GPU{"L40S", 362, 183, 864, 32, 48}},
	{"l40", GPU{"L40", 181, 90.5, 864, 32, 48}}, {"l20", GPU{"L20", 119.5, 59.8, 864, 32, 48}},
	{"l4", GPU{"L4", 121, 60, 300, 32, 24}}, {"t4", GPU{"T4", 65, 8.1, 320, 16, 16}},
	{"a10", GPU{"A10", 125, 62.5, 600, 32, 24}}, {"a30", GPU{"A30", 165, 82, 933, 32, 24}},
	{"a40", GPU{"A40", 149.7, 74.8, 696, 32, 48}}, {"a6000", GPU{"RTX A6000", 154.8, 77.4, 768, 32, 48}},
	{"6000 ada", GPU{"RTX 6000 Ada", 364.2, 182.1, 960, 32, 48}},
	{"3090", GPU{"RTX 3090", 71, 35.6, 936, 32, 24}}, {"4090", GPU{"RTX 4090", 165.2, 82.6, 1008, 32, 24}},
	{"5090", GPU{"RTX 5090", 209.5, 104.8, 1792, 64, 32}},
	{"rtx pro 6000", GPU{"RTX PRO 6000", 503.8, 125, 1597, 64, 96}},
	{"a10g", GPU{"A10G", 70, 35, 600, 32, 24}},
	{"mi355x", GPU{"MI355X", 2516.6, 157.3, 8000, 537.6, 288}},
	{"mi350x", GPU{"MI350X", 2306.9, 144.2, 8000, 537.6, 288}},
	{"mi325x", GPU{"MI325X", 1307.4, 653.7, 6000, 448, 256}},
	{"mi300x", GPU{"MI300X", 1307.4, 653.7, 5300, 448, 192}},
	{"mi300a", GPU{"MI300A", 980.6, 490.3, 5300, 384, 128}},
	{"mi250x", GPU{"MI250X", 191.5, 47.9, 1638.4, 400, 64}},
	{"mi250", GPU{"MI250", 181, 45.3, 1638.4, 400, 64}}, {"mi210", GPU{"MI210", 181, 45.3, 1638.4, 150, 64}},
}

// together are words that people write without a blank: rtx4090, rtxpro6000.
var together = strings.NewReplacer("rtx", "rtx ", "pro6000", "pro 6000")

// Find returns the GPU of a name, as drivers and people write it: NVIDIA H100 80GB HBM3,
// a100-sxm.
func Find(name string) (GPU, bool) {
	name = together.Replace(strings.ToLower(name))
	words := strings.FieldsFunc(name, func(r rune) bool {
		return r == ' ' || r == '-' || r == '_'
	})
	for _, g := range gpus {
		absent := func(w string) bool { return !slices.Contains(words, w) }
		if !slices.ContainsFunc(strings.Fields(g.words), absent) {
			return g.GPU, true
		}
	}
	return GPU{}, false
}

// devices are GPUs by the device of their PCI function, as the PCI ID database has them: boards of the
// GPUs above.
var devices = map[uint16]string{
	0x1db1: "V100", 0x1db3: "V100", 0x1db4: "V100", 0x1db5: "V100", 0x1db6: "V100", 0x1db8: "V100",
	0x20b0: "A100 40GB", 0x20b2: "A100", 0x20b5: "A100 80GB PCIe", 0x20f1: "A100 PCIe", 0x20f3: "A800",
	0x20bd: "A800", 0x1eb8: "T4", 0x20b7: "A30", 0x2235: "A40", 0x2236: "A10", 0x2237: "A10G",
	0x2230: "RTX A6000", 0x26b1: "RTX 6000 Ada", 0x2204: "RTX 3090", 0x2b85: "RTX 5090", 0x26b5: "L40",
	0x26ba: "L20",
	0x26b9: "L40S", 0x27b8: "L4", 0x2684: "RTX 4090",
	0x2321: "H100 NVL", 0x2322: "H800 PCIe", 0x2324: "H800", 0x2329: "H20", 0x232c: "H20", 0x2330: "H100",
	0x2331: "H100 PCIe", 0x2335: "H200", 0x2342: "GH200",
	0x2901: "B200", 0x2941: "GB200", 0x3182: "B300", 0x31c2: "GB300",
}

// amdDevices are AMD's GPUs by the device of their PCI function.
var amdDevices = map[uint16]string{
	0x7408: "MI250X", 0x740f: "MI210", 0x74a0: "MI300A", 0x74a1: "MI300X", 0x74b5: "MI300X",
	0x74a5: "MI325X", 0x75a0: "MI350X", 0x75a3: "MI355X",
}

// Vendors of PCI functions.
const (
	nvidia = 0x10de
	amd    = 0x1002
)

// Device returns the GPU of a PCI function; false where it is not known.
func Device(vendor, device uint64) (GPU, bool) {
	of := map[uint64]map[uint16]string{nvidia: devices, amd: amdDevices}[vendor]
	if device > 0xffff {
		return GPU{}, false
	}
	return Find(of[uint16(device)])
}

// FastestLink returns the rate of the fastest links of all, in GB/s in one direction.
func FastestLink() (most float64) {
	for _, g := range gpus {
		most = max(most, g.Link)
	}
	return most
}

// Names lists the names of the GPU models.
func Names() (out []string) {
	for _, g := range gpus {
		out = append(out, g.Name)
	}
	return out
}
