package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// Kinds names the kinds of a machine's GPUs, NICs and CPUs as in a Spec; empty ones are detected.
type Kinds struct{ GPU, NIC, CPU string }

// Device is a PCI function that is a GPU or a NIC, with what the source reports about it.
type Device struct {
	PCI     *decl.Element
	Model   string // of a GPU, "NVIDIA A100-SXM4-80GB"
	Name    string // of a NIC, "mlx5_0"
	GUID    string // of a NIC, "0x…"
	Sockets bool   // a NIC without RDMA
}

// words are GPUs' kinds by a word of their name, before a blank, the longer ones first.
var words = [][2]string{{"A100-SXM", "a100-sxm"}, {"A100-PCI", "a100-pcie"}, {"A100 80GB PCIe", "a100-pcie"},
	{"P100-SXM2", "p100-sxm2"}, {"A800-SXM", "a800-sxm"}, {"T4 ", "t4"}, {"A10 ", "a10"}, {"A30 ", "a30"},
	{"A40 ", "a40"}, {"A10G", "a10g"}, {"RTX A6000", "a6000"}, {"V100-SXM3", "v100-sxm3"},
	{"V100-SXM2", "v100-sxm2"}, {"V100-PCIE", "v100-pcie"}, {"L4 ", "l4"}, {"L20 ", "l20"}, {"L40 ", "l40"},
	{"L40S", "l40s"}, {"RTX 3090 ", "rtx3090"}, {"RTX 4090 ", "rtx4090"}, {"RTX 5090 ", "rtx5090"},
	{"RTX 6000 Ada", "rtx-6000-ada"}, {"RTX PRO 6000 Blackwell", "rtx-pro-6000"},
	{"GH200", "gh200"}, {"H100 PCIe", "h100-pcie"}, {"H100 NVL", "h100-nvl"}, {"H100", "h100-sxm"},
	{"H200", "h200-sxm"}, {"H800", "h800-sxm"}, {"H20", "h20-sxm"},
	{"GB200", "gb200"}, {"GB300", "gb300"}, {"B200", "b200-sxm"}, {"B300", "b300-sxm"}, {"GB10", "gb10"}}

// Equip adds to PCI functions what NCCL finds on the machine: of GPUs compute capability, NVLinks and C2C
// links, of NICs the ports. With links nil, NVLinks are assumed if the kind of GPU leaves no doubt. notes
// lists the assumptions; an error names the option to give.
func Equip(root *decl.Element, gpus, nics []Device, k Kinds, links *NVLink) (notes []string, err error) {
	root.SetParents()
	g := &generator{spec: &Spec{}}
	for i, d := range gpus {
		kind, err := gpuOf(&d, k.GPU)
		if err != nil {
			return nil, err
		}
		if i > 0 && kind != g.spec.GPU.Kind {
			return nil,
				fmt.Errorf("GPUs of two kinds, %s and %s: NCCL's own file has both (NCCL_TOPO_DUMP_FILE)",
					g.spec.GPU.Kind, kind)
		}
		g.spec.GPU.Kind = kind
		n := strconv.Itoa(i)
		e := element("gpu", "dev", n, "sm", strconv.Itoa(gpuKinds[kind].sm), "rank", n, "gdr", "1")
		d.PCI.Append(e)
		g.gpus, g.bus = append(g.gpus, e), append(g.bus, busOf(d.PCI))
	}
	notes = append(notes, fmt.Sprintf("GPUs are %s; their GPUDirect RDMA is taken to be on", g.spec.GPU.Kind))
	if links == nil {
		assumed, note, err := assume(g.spec.GPU.Kind, len(gpus))
		if err != nil {
			return nil, err
		}
		links = &assumed
		notes = append(notes, note)
	}
	for _, p := range links.Pairs {
		if n := max(p[0], p[1]); n >= len(gpus) {
			return nil,
				fmt.Errorf("the matrix has NVLinks of GPU%d, the host has %d GPUs; give both of one host", n,
					len(gpus))
		}
	}
	g.spec.NVLink = *links
	g.connect()
	for i := range nics {
		note, err := addPort(&nics[i], i, k.NIC)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes, nil
}

func busOf(e *decl.Element) string { v, _ := e.Get("busid"); return v }

// gpuOf returns the kind of a GPU: as given, by its PCI device, or by its name.
func gpuOf(d *Device, given string) (string, error) {
	if given != "" {
		if p := known("gpu.kind", given, gpuKinds); p != nil {
			return "", fmt.Errorf("--gpu-kind: %w", p)
		}
		return given, nil
	}
	device, _ := d.PCI.Get("device")
	for _, name := range slices.Sorted(maps.Keys(gpuKinds)) {
		if gpuKinds[name].pci.device == device {
			return name, nil
		}
	}
	for _, w := range words {
		if strings.Contains(d.Model+" ", w[0]) {
			return w[1], nil
		}
	}
	if device == "" {
		return "", fmt.Errorf("%s: the kind of GPU is not said; name it with --gpu-kind: %s", busOf(d.PCI),
			strings.Join(slices.Sorted(maps.Keys(gpuKinds)), ", "))
	}
	return "",
		fmt.Errorf("%s: the kind of GPU of device %s is not known; name the nearest with --gpu-kind: %s",
			busOf(d.PCI), device,
			strings.Join(slices.Sorted(maps.Keys(gpuKinds)), ", "))
}

// assume returns the NVLinks of n GPUs of a kind on the usual board of that size, and a note about it.
func assume(kind string, n int) (NVLink, string, error) {
	k := gpuKinds[kind]
	switch {
	case k.links == 0 || n == 1 && k.c2cNo == 0:
		return NVLink{}, "no NVLinks are assumed", nil
	case strings.HasSuffix(kind, "-pcie"):
		return NVLink{}, "no NVLink bridges are assumed: give the output of nvidia-smi topo -m with " +
			"--nvlink where there are some", nil
	case kind == "v100-sxm3" && n > 2 || k.links >= 8 && (n == 8 || n == 16) || k.c2cNo > 0 && k.links > 0 &&
		kind != "gh200":
		return NVLink{Switch: true}, fmt.Sprintf("%d NVLinks of each GPU are assumed to lead to NVSwitches",
			k.links), nil
	case n == 4 && k.links%3 == 0 && k.sm >= 80 && k.sm < 100:
		return NVLink{Mesh: k.links / 3}, fmt.Sprintf("%d NVLinks are assumed between each two GPUs",
			k.links/3), nil
	}
	return NVLink{}, "", fmt.Errorf("what the NVLinks of %d %s lead to is not in the file; give the output "+
		"of nvidia-smi topo -m of that host with --nvlink", n, kind)
}

// addPort adds the port of a NIC. note says which attributes were assumed.
func addPort(d *Device, dev int, given string) (note string, err error) {
	device, _ := d.PCI.Get("device")
	best := given
	if best == "" {
		best = nicByDevice(d.PCI)
	}
	k, ok := nicKinds[best]
	switch {
	case !ok && d.Sockets && given == "":
		// NCCL's own where the kernel names no speed (net_socket.cc)
		k = nicKind{speed: 10000, maxConn: 65536, noGDR: true}
		note = "NICs of unknown kind are taken for 10 Gb/s, as NCCL does without a speed"
	case !ok && device == "":
		return "", fmt.Errorf("%s: the kind of NIC is not said; name it with --nic-kind: %s", busOf(d.PCI),
			strings.Join(slices.Sorted(maps.Keys(nicKinds)), ", "))
	case !ok:
		return "",
			fmt.Errorf("%s: the kind of NIC of device %s is not known; name the nearest with --nic-kind: %s",
				busOf(d.PCI), device,
				strings.Join(slices.Sorted(maps.Keys(nicKinds)), ", "))
	default:
		note = fmt.Sprintf("ports of %s are taken for %d Mb/s", best, k.speed)
	}
	guid := d.GUID
	if guid == "" {
		guid = fmt.Sprintf("0x200c%011x", dev+1)
	}
	nic := d.PCI.Child("nic") // a card of two functions is one NIC of two ports
	if nic == nil {
		nic = child(d.PCI, element("nic"))
	}
	nic.Append(element("net", "name", d.Name, "dev", strconv.Itoa(dev), "latency",
		strconv.FormatFloat(k.latency, 'g', -1, 64), "speed", strconv.Itoa(k.speed),
		"port", strconv.Itoa(len(nic.Children)+1), "guid", guid, "maxconn", strconv.Itoa(k.maxConn), "gdr",
		flag(!k.noGDR && !d.Sockets)))
	return note, nil
}

// SetCPU sets the architecture, vendor and model of a kind of CPU on an element.
func SetCPU(e *decl.Element, kind string) error {
	if p := known("cpu", kind, cpuKinds); p != nil {
		return fmt.Errorf("--cpu-kind: %w", p)
	}
	k := cpuKinds[kind]
	for _, a := range []string{"arch", "vendor", "familyid", "modelid"} {
		e.Unset(a)
	}
	e.Set("arch", k.arch)
	if k.vendor != "" {
		e.Set("vendor", k.vendor)
		e.Set("familyid", strconv.Itoa(k.family))
		e.Set("modelid", strconv.Itoa(k.model))
	}
	return nil
}
