package machine

import "strings"

// cpuKind is a CPU as NCCL reads it from CPUID; arm64 ones report no vendor.
type cpuKind struct {
	arch, vendor  string
	family, model int
}

// cpuKinds are CPUs by name. Families of AMD are as NCCL computes them (base
// family plus the extended one shifted by 4: xml.cc, ncclTopoGetXmlFromCpu).
var cpuKinds = map[string]cpuKind{
	"broadwell":       {"x86_64", "GenuineIntel", 6, 79},
	"skylake":         {"x86_64", "GenuineIntel", 6, 85},
	"cascade-lake":    {"x86_64", "GenuineIntel", 6, 85},
	"ice-lake":        {"x86_64", "GenuineIntel", 6, 106},
	"sapphire-rapids": {"x86_64", "GenuineIntel", 6, 143},
	"emerald-rapids":  {"x86_64", "GenuineIntel", 6, 207},
	"granite-rapids":  {"x86_64", "GenuineIntel", 6, 173},
	"rome":            {"x86_64", "AuthenticAMD", 143, 49},
	"milan":           {"x86_64", "AuthenticAMD", 175, 1},
	"genoa":           {"x86_64", "AuthenticAMD", 175, 17},
	"grace":           {arch: "arm64"},
	"arm":             {arch: "arm64"},
}

// pciID is the class, ids and link of a PCI function.
type pciID struct {
	class, vendor, device, subVendor, subDevice string
	gen                                         string // "5x16"
}

// gpuKind is a GPU: its PCI function, compute capability, NVLinks, and the link
// to its CPU (bw in MB/s a link, as NVML gives it).
type gpuKind struct {
	pci          pciID
	sm, links    int
	rare         bool // is not what a topology without its PCI device is taken for
	c2cBW, c2cNo int
}

func nvidia(device, sub, gen string) pciID {
	return pciID{"0x030200", "0x10de", device, "0x10de", sub, gen}
}

// gpuKinds are GPUs by name: PCI ids of the PCI ID database and of dumps, NVLinks
// of the data sheets.
var gpuKinds = map[string]gpuKind{
	"p100-sxm2": {pci: nvidia("0x15f9", "0x116b", "3x16"), sm: 60, links: 4},
	"v100-sxm2": {pci: nvidia("0x1db5", "0x1249", "3x16"), sm: 70, links: 6},
	"v100-sxm3": {pci: nvidia("0x1db8", "0x131d", "3x16"), sm: 70, links: 6},
	"a100-sxm":  {pci: nvidia("0x20b0", "0x134f", "4x16"), sm: 80, links: 12},
	"a100-pcie": {pci: nvidia("0x20b5", "0x1533", "4x16"), sm: 80, links: 12},
	"a10g":      {pci: nvidia("0x2237", "0x152f", "4x16"), sm: 86},
	"a6000":     {pci: nvidia("0x2230", "0x1459", "4x16"), sm: 86, links: 4},
	"l40s":      {pci: nvidia("0x26b9", "0x1851", "4x16"), sm: 89},
	"rtx4090":   {pci: nvidia("0x2684", "0x16f3", "4x16"), sm: 89},
	"t4":        {pci: nvidia("0x1eb8", "0x12a2", "3x16"), sm: 75},
	"a10":       {pci: nvidia("0x2236", "0x1482", "4x16"), sm: 86, rare: true},
	"a30":       {pci: nvidia("0x20b7", "0x1532", "4x16"), sm: 80, links: 4, rare: true},
	"a40":       {pci: nvidia("0x2235", "0x145a", "4x16"), sm: 86, links: 4, rare: true},
	"l4":        {pci: nvidia("0x27b8", "0x16ca", "4x16"), sm: 89, rare: true},
	"l20":       {pci: nvidia("0x26ba", "0x0000", "4x16"), sm: 89, rare: true},
	"l40":       {pci: nvidia("0x26b5", "0x169d", "4x16"), sm: 89, rare: true},
	"rtx3090":   {pci: nvidia("0x2204", "0x0000", "4x16"), sm: 86, links: 4, rare: true},
	"rtx5090":   {pci: nvidia("0x2b85", "0x0000", "5x16"), sm: 120, rare: true},
	"v100-pcie": {pci: nvidia("0x1db4", "0x1214", "3x16"), sm: 70, rare: true},
	"a800-sxm":  {pci: nvidia("0x20f3", "0x0000", "4x16"), sm: 80, links: 8, rare: true},
	"h100-nvl":  {pci: nvidia("0x2321", "0x0000", "5x16"), sm: 90, links: 12, rare: true},
	"h100-sxm":  {pci: nvidia("0x2330", "0x16c1", "5x16"), sm: 90, links: 18},
	"h100-pcie": {pci: nvidia("0x2331", "0x1626", "5x16"), sm: 90, links: 12},
	"h200-sxm":  {pci: nvidia("0x2335", "0x18be", "5x16"), sm: 90, links: 18},
	"h800-sxm":  {pci: nvidia("0x2324", "0x17a6", "5x16"), sm: 90, links: 8},
	"h20-sxm":   {pci: nvidia("0x2329", "0x198b", "5x16"), sm: 90, links: 18},
	"b200-sxm":  {pci: nvidia("0x2901", "0x1999", "5x16"), sm: 100, links: 18},
	"b300-sxm":  {pci: nvidia("0x3182", "0x20e6", "6x16"), sm: 103, links: 18},
	"gh200":     {pci: nvidia("0x2342", "0x16eb", "5x16"), sm: 90, links: 18, c2cBW: 44712, c2cNo: 10},
	"gb200":     {pci: nvidia("0x2941", "0x2046", "5x16"), sm: 100, links: 18, c2cBW: 44712, c2cNo: 5},
	"gb300":     {pci: nvidia("0x31c2", "0x21f1", "6x16"), sm: 103, links: 18, c2cBW: 44712, c2cNo: 5},
	"gb10":      {pci: nvidia("0x2e12", "0x0000", "1x16"), sm: 121, c2cBW: 43125, c2cNo: 8},

	"rtx-6000-ada": {pci: nvidia("0x26b1", "0x16a1", "4x16"), sm: 89, rare: true},
	"rtx-pro-6000": {pci: nvidia("0x2bb5", "0x204e", "5x16"), sm: 120},
}

// nicKind is a catalogued NIC: its PCI function and the attributes that its net plugin reports.
type nicKind struct {
	pci     pciID
	speed   int // Mb/s a port
	name    string
	maxConn int
	noGDR   bool
	latency float64 // us
}

func connectX(class, device, sub, gen string, speed int) nicKind {
	return nicKind{pci: pciID{class, "0x15b3", device, "0x15b3", sub, gen}, speed: speed, name: "mlx5_%d",
		maxConn: 131072}
}

const (
	infiniband = "0x020700"
	ethernet   = "0x020000"
)

var nicKinds = map[string]nicKind{
	"connectx-4":      connectX(infiniband, "0x1013", "0x0003", "3x16", 100000),
	"connectx-6":      connectX(infiniband, "0x101b", "0x0007", "4x16", 200000),
	"connectx-6-roce": connectX(ethernet, "0x101d", "0x0016", "4x16", 100000),
	"connectx-7":      connectX(infiniband, "0x1021", "0x0023", "5x16", 400000),
	"connectx-7-roce": connectX(ethernet, "0x1021", "0x0038", "5x16", 400000),
	"connectx-7-vf":   connectX(infiniband, "0x101e", "0x0101", "5x16", 400000),
	"connectx-8":      connectX(infiniband, "0x1023", "0x0041", "6x16", 800000),
	"connectx-8-roce": connectX(ethernet, "0x1023", "0x0041", "6x16", 800000),
	"connectx-8-vf":   connectX(infiniband, "0x101e", "0x0101", "6x16", 800000),
	"efa": {pci: pciID{ethernet, "0x1d0f", "0xefa1", "0x1d0f", "0xefa1", "5x16"}, speed: 100000,
		name: "rdmap%ds0", maxConn: 262144, latency: 75},
	"gvnic": {pci: pciID{ethernet, "0x1ae0", "0x0042", "0x1ae0", "0x0000", "5x16"}, speed: 200000,
		name: "enp%ds0", maxConn: 131072},
	"slingshot": {pci: pciID{ethernet, "0x17db", "0x0501", "0x17db", "0x0000", "4x16"}, speed: 200000,
		name: "cxi%d", maxConn: 131072},
	"ethernet": {pci: pciID{ethernet, "0x8086", "0x1592", "0x8086", "0x0001", "4x16"}, speed: 100000,
		name: "eth%d", maxConn: 65536, noGDR: true},
}

func bridge(vendor, device, subVendor, subDevice, gen string) pciID {
	return pciID{"0x060400", vendor, device, subVendor, subDevice, gen}
}

// switchKinds catalogues PCIe switches and bridges. virtual and qemu are those that hypervisors show;
// root-gen6 is the narrow root port above a ConnectX-8's own switch.
var switchKinds = map[string]pciID{
	"plx-gen3":      bridge("0x10b5", "0x8796", "0x10b5", "0x8796", "3x16"),
	"broadcom-gen4": bridge("0x1000", "0xc010", "0x1000", "0xa096", "4x16"),
	"broadcom-gen5": bridge("0x1000", "0xc030", "0x1000", "0x100b", "5x16"),
	"virtual-gen4":  bridge("0x0000", "0x0000", "0x0000", "0x0000", "4x16"),
	"virtual-gen5":  bridge("0x0000", "0x0000", "0x0000", "0x0000", "5x16"),
	"virtual-gen6":  bridge("0xffff", "0xffff", "0xffff", "0xffff", "6x16"),
	"qemu-gen5":     bridge("0x104c", "0x8232", "0x0000", "0x0000", "5x16"),
	"connectx-gen5": bridge("0x15b3", "0x197b", "0x0000", "0x0000", "5x16"),
	"connectx-gen6": bridge("0x15b3", "0x197c", "0x0000", "0x0000", "6x16"),
	"root-x1":       bridge("0x15b3", "0x197c", "0x0000", "0x0000", "4x1"),
}

// networkKinds lists the valid values of Network.Kind.
var networkKinds = map[string]bool{"": true, "infiniband": true, "roce": true, "efa": true, "efa-v1": true,
	"efa-v2": true, "efa-v3": true, "efa-v4": true, "tcpx": true, "tcpxo": true, "slingshot": true,
	"socket": true}

// transfers are PCIe's rates by generation, as sysfs spells them.
var transfers = map[string]string{"1": "2.5", "2": "5.0", "3": "8.0", "4": "16.0", "5": "32.0", "6": "64.0"}

// unknownLink is a link whose speed sysfs does not say, as in some VMs.
const unknownLink = "unknown"

// link splits "5x16" into the PCIe speed and width of NCCL's attributes.
func link(text string) (speed, width string, ok bool) {
	gen, width, ok := strings.Cut(text, "x")
	rate := transfers[gen]
	switch width {
	case "1", "2", "4", "8", "16":
	default:
		ok = false
	}
	return rate + " GT/s PCIe", width, ok && rate != ""
}

// GPULinks returns the NVLinks of a kind of GPU, and whether it has a coherent link to its CPU.
func GPULinks(kind string) (links int, coherent, known bool) {
	k, ok := gpuKinds[kind]
	return k.links, k.c2cNo > 0, ok
}

// NICSpeed returns the speed of a port of a kind of NIC in Mb/s, 0 of an unknown one.
func NICSpeed(kind string) int { return nicKinds[kind].speed }
