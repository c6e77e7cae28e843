package smi

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/machine"
)

// end is a GPU or a port of a NIC in a host's tree.
type end struct {
	device Device
	dev    int
	e      *decl.Element   // <gpu> or <net>
	cpu    *decl.Element   // its NUMA node
	pci    []*decl.Element // PCI functions from the CPU down; the last is the device's own, or its <nic>
}

// Of returns the matrix that nvidia-smi topo -m would print for a host's tree of NCCL elements. The tree has
// no host bridges: functions of two PCI domains count as behind two bridges (NODE), those of one domain as
// behind one (PHB).
func Of(root *decl.Element) *Matrix {
	gpus, nets := ends(root)
	m := &Matrix{GPUs: len(gpus)}
	all := append(gpus, nets...)
	for i := range all {
		m.Devices = append(m.Devices, all[i].device)
		row := make([]string, len(all))
		for j := range all {
			switch n := nvlinks(gpus, &all[i], &all[j]); {
			case i == j:
				row[j] = "X"
			case n > 0:
				row[j] = fmt.Sprintf("NV%d", n)
			default:
				row[j] = words[pcie(&all[i], &all[j])]
			}
		}
		m.Cells = append(m.Cells, row)
	}
	return m
}

// ends lists the GPUs and the ports of a tree by number.
func ends(root *decl.Element) (gpus, nets []end) {
	var cpus []*decl.Element
	root.Walk(func(e *decl.Element, above []*decl.Element) {
		if e.Name == "cpu" {
			cpus = append(cpus, e)
		}
		if e.Name != "gpu" && e.Name != "net" {
			return
		}
		x := end{e: e, device: Device{Name: "GPU"}}
		for _, a := range above {
			switch a.Name {
			case "cpu":
				x.cpu = a
			case "pci":
				x.pci = append(x.pci, a)
			case "nic": // without a function of its own
				if n := len(x.pci); n == 0 || x.pci[n-1].Child("pci") != nil {
					x.pci = append(x.pci, a)
				}
			}
		}
		if e.Name == "net" {
			name, _ := e.Get("name")
			x.dev, x.device.Name = e.Int("dev", len(nets)), name
			nets = append(nets, x)
			return
		}
		x.dev = e.Int("dev", len(gpus))
		x.device.Name = fmt.Sprintf("GPU%d", x.dev)
		if mask, _ := attr(x.cpu, "affinity"); mask != "" {
			x.device.Cores = machine.Cores(mask)
		}
		if id, err := strconv.Atoi(first(attr(x.cpu, "numaid"))); err == nil && id >= 0 {
			x.device.NUMA = []int{id}
		}
		gpus = append(gpus, x)
	})
	for _, list := range [][]end{gpus, nets} {
		slices.SortStableFunc(list, func(a, b end) int { return cmp.Compare(a.dev, b.dev) })
	}
	for i := range gpus {
		// Grace's firmware keeps eight numbers for each GPU; GB10 has no memory of its own
		if g := gpus[i].e; g.Child("c2c") != nil && g.Int("sm", 0) < 110 {
			gpus[i].device.Memory = strconv.Itoa(len(cpus) + 8*i)
		}
	}
	return gpus, nets
}

func attr(e *decl.Element, name string) (string, bool) {
	if e == nil {
		return "", false
	}
	return e.Get(name)
}

func first(s string, _ bool) string { return s }

// pcie returns the distance of two devices on PCIe, as a level of nvidia-smi's legend.
func pcie(a, b *end) int {
	if a.cpu != b.cpu {
		return sys
	}
	same := 0
	for same < min(len(a.pci), len(b.pci)) && a.pci[same] == b.pci[same] {
		same++
	}
	switch {
	case same == 0 && domain(a) != domain(b):
		return node
	case same == 0:
		return phb
	case len(a.pci)-same <= 1 && len(b.pci)-same <= 1: // below one switch, or ports of one function
		return pix
	}
	return pxb
}

// domain returns the PCI domain of the function nearest to the CPU, 0000 where there is none.
func domain(x *end) string {
	if len(x.pci) == 0 {
		return "0000"
	}
	d, _, _ := strings.Cut(first(x.pci[0].Get("busid")), ":")
	return cmp.Or(d, "0000")
}

// nvlinks returns the number of NVLinks between two GPUs: their own, and those to NVSwitches.
func nvlinks(gpus []end, a, b *end) int {
	if a.e == b.e || a.e.Name != "gpu" || b.e.Name != "gpu" {
		return 0
	}
	bus := func(x *end) string { return first(x.pci[len(x.pci)-1].Get("busid")) }
	count := func(x *end, other string) (direct, switched int) {
		for _, l := range x.e.Children {
			class, _ := l.Get("tclass")
			target, _ := l.Get("target")
			switch {
			case l.Name != "nvlink":
			case target == other && other != "":
				direct += l.Int("count", 1)
			case strings.HasPrefix(class, "0x0680") && class != "0x068001": // a CPU's
				switched += l.Int("count", 1)
			}
		}
		return direct, switched
	}
	if len(a.pci) == 0 || len(b.pci) == 0 {
		return 0
	}
	direct, x := count(a, bus(b))
	_, y := count(b, bus(a))
	return direct + min(x, y)
}

// Text writes the matrix as nvidia-smi topo -m does, with its legends.
func (m *Matrix) Text() string {
	var b strings.Builder
	label := func(i int) string {
		if i < m.GPUs {
			return m.Devices[i].Name
		}
		return fmt.Sprintf("NIC%d", i-m.GPUs)
	}
	for i := range m.Devices {
		b.WriteString("\t" + label(i))
	}
	b.WriteString("\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n")
	for i := range m.Devices {
		b.WriteString(label(i))
		for _, c := range m.Cells[i] {
			if c == "X" {
				c = " X "
			}
			b.WriteString("\t" + c)
		}
		if d := &m.Devices[i]; i < m.GPUs {
			fmt.Fprintf(&b, "\t%s\t%s\t\t%s", cmp.Or(d.Cores, "N/A"), cmp.Or(ranges(d.NUMA), "N/A"),
				cmp.Or(d.Memory, "N/A"))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nLegend:\n\n  X    = Self\n  SYS  = between NUMA nodes\n" +
		"  NODE = between PCIe host bridges of a NUMA node\n  PHB  = through a PCIe host bridge\n" +
		"  PXB  = through several PCIe switches\n  PIX  = through at most one PCIe switch\n" +
		"  NV#  = through # NVLinks\n")
	if len(m.Devices) > m.GPUs {
		b.WriteString("\nNIC Legend:\n\n")
		for i := m.GPUs; i < len(m.Devices); i++ {
			fmt.Fprintf(&b, "  %s: %s\n", label(i), m.Devices[i].Name)
		}
	}
	return b.String()
}

// ranges formats numbers as "0-1,4".
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := strconv.Itoa(list[i])
		if j > i {
			part += "-" + strconv.Itoa(list[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
