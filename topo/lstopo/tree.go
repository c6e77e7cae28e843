package lstopo

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/iflist"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/machine"
)

// Given supplies what hwloc's file lacks.
type Given struct {
	machine.Kinds
	// NVLink replaces the file's NVLinks; nil: the file's, or assumed from the kind of GPU.
	NVLink *machine.NVLink
}

// builder builds NCCL's tree from hwloc's objects.
type builder struct {
	given Given
	root  *decl.Element
	cpus  map[*object]*decl.Element // by NUMA node
	pcis  map[*object]*decl.Element
	gpus  []machine.Device
	nics  []machine.Device
	notes []string
	numas []*object
}

// Tree builds the host's tree of NCCL elements from the file's text. It also returns notes about the
// assumptions made. Errors have a position.
func Tree(data []byte, file string, given Given) (*decl.Element, []string, error) {
	top, err := parse(data, file)
	if err != nil {
		return nil, nil, err
	}
	b := &builder{given: given, root: element("system", "version", "1"), cpus: map[*object]*decl.Element{},
		pcis: map[*object]*decl.Element{}}
	top.walk(func(o *object) {
		if o.kind == "NUMANode" {
			b.numas = append(b.numas, o)
		}
	})
	if len(b.numas) == 0 {
		b.numas = []*object{top} // hwloc 1 leaves a single node out
	}
	for _, n := range b.numas {
		if err := b.cpu(n); err != nil {
			return nil, nil, err
		}
	}
	if err := b.devices(top); err != nil {
		return nil, nil, err
	}
	if len(b.gpus) == 0 {
		return nil, nil, fail.File("%s: no NVIDIA GPU; run lstopo with --whole-io on the GPU host", top.at)
	}
	if len(b.nics) == 0 {
		b.note("no NIC in the file: run lstopo with --whole-io, or several nodes have no network")
	}
	links := given.NVLink
	if links == nil {
		if links, err = b.nvlinks(top); err != nil {
			return nil, nil, err
		}
	}
	notes, err := machine.Equip(b.root, b.gpus, b.nics, given.Kinds, links)
	if err != nil {
		return nil, nil, fail.Input(fmt.Errorf("%s: %w", file, err))
	}
	return b.root, append(b.notes, notes...), nil
}

func element(name string, attrs ...string) *decl.Element {
	e := &decl.Element{Name: name}
	for i := 0; i < len(attrs); i += 2 {
		e.Set(attrs[i], attrs[i+1])
	}
	return e
}

func (b *builder) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.notes, text) {
		b.notes = append(b.notes, text)
	}
}

// cpu adds a NUMA node with its kind of CPU, which its package or the machine names.
func (b *builder) cpu(n *object) error {
	info := func(name string) string {
		for o := n; o != nil; o = o.above {
			if v := o.info[name]; v != "" {
				return v
			}
			for _, c := range o.children {
				if c.kind == "Package" && c.info[name] != "" {
					return c.info[name]
				}
			}
		}
		return ""
	}
	e := element("cpu", "host_hash", "0x1234567800000000", "numaid", cmp.Or(n.attrs["os_index"], "0"))
	if mask := affinity(n.attrs["cpuset"]); mask != "" {
		e.Set("affinity", mask)
	}
	switch arch, vendor := info("Architecture"), info("CPUVendor"); {
	case vendor == "GenuineIntel", vendor == "AuthenticAMD", vendor == "CentaurHauls":
		family, model := number(info("CPUFamilyNumber")), number(info("CPUModelNumber"))
		if vendor == "AuthenticAMD" && family > 15 {
			family = 15 + (family-15)<<4 // NCCL adds the extended family shifted by 4
		}
		e.Set("arch", "x86_64")
		e.Set("vendor", vendor)
		e.Set("familyid", strconv.Itoa(family))
		e.Set("modelid", strconv.Itoa(model))
	case arch == "aarch64", strings.HasPrefix(info("CPUImplementer"), "0x"), arch == "arm64":
		e.Set("arch", "arm64")
	case arch == "ppc64le", arch == "ppc64":
		e.Set("arch", "ppc64")
	case b.given.CPU == "":
		return fail.File("%s: no CPUVendor of this NUMA node; name the CPUs with --cpu-kind", n.at)
	}
	if b.given.CPU != "" {
		if err := machine.SetCPU(e, b.given.CPU); err != nil {
			return fail.Argument(err)
		}
	}
	b.cpus[n] = e
	b.root.Append(e)
	return nil
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

// affinity converts hwloc's CPU set, "0x0000ffff,0xffffffff", to the format of sysfs.
func affinity(set string) string {
	var words []string
	for w := range strings.SplitSeq(set, ",") {
		if w = strings.TrimPrefix(strings.TrimSpace(w), "0x"); w == "" {
			w = "0"
		}
		if _, err := strconv.ParseUint(w, 16, 32); err != nil {
			return ""
		}
		if len(words) > 0 {
			w = strings.Repeat("0", 8-len(w)) + w
		}
		words = append(words, w)
	}
	return strings.Join(words, ",")
}

// numaOf returns the NUMA node of a PCI function: that of the nearest enclosing object that is one or
// contains one.
func (b *builder) numaOf(o *object) *object {
	for up := o.above; up != nil; up = up.above {
		if up.kind == "NUMANode" {
			return up
		}
		var below []*object
		for _, n := range b.numas {
			for a := n; a != nil; a = a.above {
				if a == up {
					below = append(below, n)
				}
			}
		}
		if len(below) > 1 {
			b.note("%s: which NUMA node PCI devices are near is not said; they are taken for those of the "+
				"first", up.at)
		}
		if len(below) > 0 {
			return below[0]
		}
	}
	return b.numas[0]
}

// parent returns the element that NCCL puts a function below. On the way up NCCL takes every second bridge,
// the upstream port of a switch, and skips downstream ports and root ports.
func (b *builder) parent(o *object) (*decl.Element, error) {
	for range 2 {
		o = o.above
		if o == nil || o.kind != "Bridge" || o.attrs["bridge_type"] == "0-1" {
			return nil, nil
		}
	}
	if e := b.pcis[o]; e != nil {
		return e, nil
	}
	e, err := b.function(o)
	if err != nil {
		return nil, err
	}
	return e, b.hang(o, e)
}

// hang appends a function's element to the element of its parent bridge, else to its CPU.
func (b *builder) hang(o *object, e *decl.Element) error {
	b.pcis[o] = e
	up, err := b.parent(o)
	if err != nil {
		return err
	}
	if up == nil {
		up = b.cpus[b.numaOf(o)]
	}
	up.Append(e)
	return nil
}

// function creates the element of a PCI function, with its ids and link.
func (b *builder) function(o *object) (*decl.Element, error) {
	f, err := o.pci()
	if err != nil {
		return nil, err
	}
	speed, width, ok := link(o)
	if !ok {
		b.note("%s: the link of %s is not said: NCCL takes it for x16 of generation 3", o.at, f.bus)
	}
	e := element("pci", "busid", f.bus, "class", f.class, "vendor", f.vendor, "device", f.device,
		"subsystem_vendor", f.subVendor,
		"subsystem_device", f.subDevice, "link_speed", speed, "link_width", width)
	e.Origin = o.at
	return e, nil
}

// Kinds of hwloc's OS devices.
const (
	osNetwork     = "2"
	osOpenFabrics = "3"
)

// devices collects the GPUs and NICs among the PCI functions.
func (b *builder) devices(top *object) error {
	var gpus, ib, eth []*object
	top.walk(func(o *object) {
		if o.kind != "PCIDev" {
			return
		}
		class := o.attrs["pci_type"]
		switch {
		case strings.HasPrefix(class, "03") && strings.HasPrefix(class[min(len(class), 5):], "[10de:"):
			gpus = append(gpus, o)
		case o.osDevice(osOpenFabrics) != nil:
			ib = append(ib, o)
		case o.osDevice(osNetwork) != nil:
			eth = append(eth, o)
		}
	})
	slices.SortFunc(gpus, func(x, y *object) int {
		return strings.Compare(x.attrs["pci_busid"], y.attrs["pci_busid"])
	})
	nics, kind := ib, osOpenFabrics
	if len(ib) == 0 {
		if nics, kind = eth, osNetwork; len(eth) > 0 {
			b.note("no RDMA NIC: every Ethernet port is taken to be up and in use")
		}
	}
	slices.SortStableFunc(nics, func(x, y *object) int {
		return iflist.Compare(x.osDevice(kind).attrs["name"], y.osDevice(kind).attrs["name"])
	})
	for _, o := range gpus {
		e, err := b.function(o)
		if err != nil {
			return err
		}
		b.gpus = append(b.gpus, machine.Device{PCI: e, Model: o.model()})
		if err := b.hang(o, e); err != nil {
			return err
		}
	}
	cards := map[string]*decl.Element{} // of RDMA NICs, which NCCL takes for ports of function 0 (net_ib)
	for _, o := range nics {
		card := strings.TrimRight(o.attrs["pci_busid"], "0123456789abcdef")
		e := cards[card]
		if e == nil || kind != osOpenFabrics {
			var err error
			if e, err = b.function(o); err != nil {
				return err
			}
			if cards[card] = e; kind == osOpenFabrics {
				e.Set("busid", card+"0")
			}
			if err := b.hang(o, e); err != nil {
				return err
			}
		}
		b.nics = append(b.nics, machine.Device{PCI: e, Name: o.osDevice(kind).attrs["name"],
			Sockets: kind == osNetwork, GUID: guid(o.osDevice(kind).info["NodeGUID"])})
	}
	return nil
}

// osDevice returns the first OS device of a kind of a function, nil for none.
func (o *object) osDevice(kind string) *object {
	for _, c := range o.children {
		if c.kind == "OSDev" && c.attrs["osdev_type"] == kind {
			return c
		}
	}
	return nil
}

// model returns the GPU's name, where hwloc knew CUDA or NVML.
func (o *object) model() string {
	for _, c := range o.children {
		if m := c.info["GPUModel"]; c.kind == "OSDev" && m != "" {
			return m
		}
	}
	return o.info["PCIDevice"]
}

// guid converts "b859:9f03:00d4:1234" to hexadecimal text with 0x.
func guid(text string) string {
	if hex := strings.ReplaceAll(text, ":", ""); len(hex) == 16 {
		if _, err := strconv.ParseUint(hex, 16, 64); err == nil {
			return "0x" + hex
		}
	}
	return ""
}
