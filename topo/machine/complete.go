package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// Places lists, by bus id, the PCI functions of a topology file that have the class of a GPU or a NIC and no
// content. Vendors publish such files for NCCL_TOPO_FILE; NCCL adds the GPUs and NICs of the running machine
// (v2.28.9 src/graph/xml.cc:756 for GPUs, :918 for NICs).
type Places struct {
	GPUs, NICs []*decl.Element
	Unsaid     []*decl.Element // functions without a class and with nothing below them
}

// PlacesOf collects the empty PCI functions of a tree by class, sorted by bus id.
func PlacesOf(root *decl.Element) *Places {
	p := &Places{}
	root.Walk(func(e *decl.Element, _ []*decl.Element) {
		if e.Name != "pci" || len(e.Children) > 0 {
			return
		}
		switch class, _ := e.Get("class"); {
		case strings.HasPrefix(class, "0x0300"), strings.HasPrefix(class, "0x0302"):
			p.GPUs = append(p.GPUs, e)
		case strings.HasPrefix(class, "0x0200"), strings.HasPrefix(class, "0x0207"),
			strings.HasPrefix(class, "0x0280"):
			p.NICs = append(p.NICs, e)
		case class == "":
			p.Unsaid = append(p.Unsaid, e)
		}
	})
	for _, l := range [][]*decl.Element{p.GPUs, p.NICs} {
		slices.SortStableFunc(l, func(a, b *decl.Element) int { return strings.Compare(busOf(a), busOf(b)) })
	}
	return p
}

// Command returns the command line that completes a file: with the kinds that the file's device ids identify,
// else with the word KIND.
func (p *Places) Command(file string) string {
	s := "simccl topo convert " + file
	if len(p.GPUs) > 0 {
		s += " --gpu-kind " + sameKind(p.GPUs, "KIND", gpuByDevice)
	}
	if len(p.NICs) > 0 {
		s += " --nic-kind " + sameKind(p.NICs, "KIND", nicByDevice)
	}
	return s + " > machine.xml"
}

// Kinds lists the valid kinds of GPU and, if the file has NICs, of NICs for the KIND of Command.
func (p *Places) Kinds() string {
	s := "GPUs: " + strings.Join(slices.Sorted(maps.Keys(gpuKinds)), ", ")
	if len(p.NICs) > 0 {
		s += "; NICs: " + strings.Join(slices.Sorted(maps.Keys(nicKinds)), ", ")
	}
	return s
}

// sameKind returns the kind that all devices have by their ids, or else a word.
func sameKind(list []*decl.Element, unknown string, kind func(*decl.Element) string) string {
	out := kind(list[0])
	for _, e := range list {
		if k := kind(e); k == "" || k != out {
			return unknown
		}
	}
	return out
}

func gpuByDevice(e *decl.Element) string {
	k, err := gpuOf(&Device{PCI: e}, "")
	if err != nil {
		return ""
	}
	return k
}

// Check returns an error for an unknown kind, also of an option without effect. The options are those of topo
// convert.
func (k Kinds) Check() error {
	for _, o := range []struct {
		option, name string
		p            func(string) *problem
	}{
		{"--gpu-kind", k.GPU, func(n string) *problem { return known("gpu.kind", n, gpuKinds) }},
		{"--nic-kind", k.NIC, func(n string) *problem { return known("nic.kind", n, nicKinds) }},
		{"--cpu-kind", k.CPU, func(n string) *problem { return known("cpu", n, cpuKinds) }},
	} {
		if o.name == "" {
			continue
		}
		if p := o.p(o.name); p != nil {
			return fmt.Errorf("%s: %s; %s", o.option, p.text, p.hint)
		}
	}
	return nil
}

// PlacesError reports what a file lacks, so that Complete cannot use it.
type PlacesError struct {
	At     decl.Origin
	Reason string
}

func (e *PlacesError) Error() string { return e.At.String() + ": " + e.Reason }

// Complete turns a file of places into a machine: it adds GPUs and NICs of the given kinds, else of the kinds
// that device ids identify, numbered by bus id as CUDA and the kernel number them. The file's PCI tree, links
// and CPUs are unchanged. With links nil, NVLinks are assumed from the kind of GPU. notes lists the
// assumptions.
func Complete(root *decl.Element, k Kinds, links *NVLink) (notes []string, err error) {
	p := PlacesOf(root)
	switch {
	case len(p.GPUs) == 0 && len(p.Unsaid) > 0:
		return nil, &PlacesError{p.Unsaid[0].Origin, fmt.Sprintf("no class of %s, nor of %d more: write "+
			"class=\"0x030200\" into the <pci> of each GPU and class=\"0x020700\" into that of each NIC",
			busOf(p.Unsaid[0]), len(p.Unsaid)-1)}
	case len(p.GPUs) == 0:
		return nil, &PlacesError{root.Origin, "no place of a GPU: add <pci busid=… class=\"0x030200\"/> of " +
			"each GPU below its PCIe switch, as lspci and nvidia-smi topo -m show them"}
	case k.NIC != "" && len(p.NICs) == 0:
		return nil, &PlacesError{root.Origin, "--nic-kind " + k.NIC +
			" has no effect: there is no place of a NIC, <pci> with class=\"0x0200…\" or \"0x0207…\""}
	}
	var gpus, nics []Device
	for _, e := range p.GPUs {
		gpus = append(gpus, Device{PCI: e})
	}
	for i, e := range p.NICs {
		kind := k.NIC
		if kind == "" {
			kind = nicByDevice(e)
		}
		name := "net%d"
		if n, ok := nicKinds[kind]; ok {
			name = n.name
		}
		nics = append(nics, Device{PCI: e, Name: strings.Replace(name, "%d", strconv.Itoa(i), 1)})
	}
	if k.CPU != "" {
		for _, c := range root.Children {
			if c.Name == "cpu" {
				if err := SetCPU(c, k.CPU); err != nil {
					return nil, err
				}
			}
		}
	}
	kind := kindOr(k.GPU, sameKind(p.GPUs, "", gpuByDevice))
	// of a board of 8, or what a VM has of one
	if links == nil && len(gpus) != 4 && strings.HasSuffix(kind, "-sxm") && gpuKinds[kind].links >= 8 {
		links = &NVLink{Switch: true}
		notes = append(notes, fmt.Sprintf("%d NVLinks of each GPU are assumed to lead to NVSwitches",
			gpuKinds[kind].links))
	}
	more, err := Equip(root, gpus, nics, k, links)
	if notes = append(notes, more...); err != nil {
		return nil, err
	}
	notes = append(notes, otherIDs(gpus, gpuByDevice, k.GPU, "GPU")...)
	for _, d := range gpus {
		setIDs(d.PCI, gpuKinds[kindOr(k.GPU, gpuByDevice(d.PCI))].pci)
	}
	for _, d := range nics {
		setIDs(d.PCI, nicKinds[kindOr(k.NIC, nicByDevice(d.PCI))].pci)
	}
	return append(notes,
		fmt.Sprintf("%d GPUs and %d NICs are put into the places of the file, numbered by bus id", len(gpus),
			len(nics))), nil
}

func kindOr(given, found string) string {
	if given != "" {
		return given
	}
	return found
}

// otherIDs notes the first device whose ids are those of another kind than the given one.
func otherIDs(list []Device, kind func(*decl.Element) string, given, what string) []string {
	if given == "" {
		return nil
	}
	for _, d := range list {
		if k := kind(d.PCI); k != "" && k != given {
			device, _ := d.PCI.Get("device")
			return []string{
				fmt.Sprintf("%s: device %s is that of %s; the %s is taken for %s, as the option says",
					busOf(d.PCI), device, k, what, given)}
		}
	}
	return nil
}

// setIDs adds the ids and the link that a place leaves out.
func setIDs(e *decl.Element, id pciID) {
	if id == (pciID{}) {
		return
	}
	speed, width, _ := link(id.gen)
	for _, a := range [][2]string{{"vendor", id.vendor}, {"device", id.device},
		{"subsystem_vendor", id.subVendor}, {"subsystem_device", id.subDevice}, {"link_speed", speed},
		{"link_width", width}} {
		e.SetDefault(a[0], a[1])
	}
}

// nicByDevice returns the kind of a NIC by its device id, "" if it is unknown. Of kinds that share the id it
// returns the one whose class and link are the file's.
func nicByDevice(e *decl.Element) string {
	device, _ := e.Get("device")
	class, _ := e.Get("class")
	rate, _ := e.Get("link_speed")
	best, most := "", -1
	for _, name := range slices.Sorted(maps.Keys(nicKinds)) {
		k := nicKinds[name]
		if device == "" || k.pci.device != device {
			continue
		}
		like := 0
		if k.pci.class == class {
			like += 2
		}
		if speed, _, _ := link(k.pci.gen); strings.HasPrefix(rate, strings.TrimSuffix(speed, " GT/s PCIe")) {
			like++
		}
		if like > most {
			best, most = name, like
		}
	}
	return best
}
