// Package detect reads the machine it runs on into a topo.Spec: the file that
// NCCL 2.28.9 would write with NCCL_TOPO_DUMP_FILE (graph/xml.cc, graph/topo.cc
// ncclTopoGetSystem). GPUs come from NVML, everything else from sysfs, through
// interfaces, so that captured machines are tests.
package detect

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// ErrUnsupported matches, with errors.Is, every error about hardware or a library that the machine lacks.
var ErrUnsupported = errors.New("unsupported")

// AbsentError states what detection needs and what it found instead.
type AbsentError struct{ Needs, Found string }

func (e *AbsentError) Error() string {
	return fmt.Sprintf("detect: needs %s: %s", e.Needs, e.Found)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *AbsentError) Is(target error) bool { return target == ErrUnsupported }

// GPU is one GPU as NVML and CUDA report it.
type GPU struct {
	Index int    // NVML index, the dev attribute
	BusID string // 0000:1b:00.0, lower case
	SM    int
	GDR   bool
	// DMABuf reports that the driver exports GPU memory as DMA-BUF.
	DMABuf bool
	Name   string
	// Links lists the remote bus ids of all active NVLinks with P2P, in link order, lower case.
	Links []string
	// C2CMBps and C2CCount describe active C2C links.
	C2CMBps, C2CCount int
}

// Interface is a running network interface, in the system's order, and which
// addresses it has.
type Interface struct {
	Name   string
	V4, V6 bool
}

// HCA is an RDMA device with the limits that libibverbs reports and sysfs does not have.
type HCA struct {
	Name   string
	MaxQP  int
	DMABuf bool // registers DMA-BUF memory
}

// Host provides the sources that detection reads; tests replace them.
type Host struct {
	Tree       Tree // the root file system
	GPUs       func() ([]GPU, error)
	Interfaces func() ([]Interface, error)
	// Verbs lists the RDMA devices in the order of libibverbs; an error means
	// that NCCL cannot use it either. Nil: sysfs alone is asked.
	Verbs    func() ([]HCA, error)
	Hostname string
	Arch     string // GOARCH of the machine, default this one's
}

// Params are the settings of NCCL that select NICs.
type Params struct {
	IBDisable    bool   // NCCL_IB_DISABLE=1
	IBHCA        string // NCCL_IB_HCA
	MergeVFs     bool   // NCCL_IB_MERGE_VFS, on by default
	SocketIfname string // NCCL_SOCKET_IFNAME
	SocketFamily string // NCCL_SOCKET_FAMILY: AF_INET, AF_INET6, or any
	NoDMABuf     bool   // NCCL_DMABUF_ENABLE=0
	MaxGPUs      int    // use only this many GPUs, 0 for all
	// Begin is the <system> that NCCL loads before it probes the machine: the content of NCCL_TOPO_FILE, else
	// of DefaultFile; nil without one. Its attributes are kept, absent ones are detected, and branches
	// without a detected device are removed (topo.cc:1419-1475).
	Begin *topo.Element
}

// DefaultFile is the path at which virtual machines receive a topology file (topo.cc:1425).
const DefaultFile = "/var/run/nvidia-topologyd/virtualTopology.xml"

// Tree is a file system whose links can be followed to the end.
type Tree interface {
	fs.FS
	// RealPath resolves every link of a path ("sys/class/net/eth0/device").
	RealPath(path string) (string, error)
}

// Detect reads the machine: one XML per rank, a rank per GPU, fused in rank
// order.
func Detect(m *Host, p Params) (*topo.Spec, error) {
	gpus, err := m.GPUs()
	if err != nil {
		return nil, err
	}
	if len(gpus) == 0 {
		return nil, &AbsentError{"an NVIDIA GPU", "NVML lists none"}
	}
	if p.MaxGPUs > len(gpus) {
		return nil, fmt.Errorf("detect: %d GPUs wanted, there are %d", p.MaxGPUs, len(gpus))
	}
	if p.MaxGPUs > 0 {
		gpus = gpus[:p.MaxGPUs]
	}
	nets, err := m.nets(p)
	if err != nil {
		return nil, err
	}
	for i := range nets {
		nets[i].dmaBuf = nets[i].dmaBuf && !p.NoDMABuf
	}
	var all *topo.Element
	for rank := range gpus {
		b := newBuilder(m, p.Begin)
		b.gpu(&gpus[rank], rank)
		for i := range nets {
			b.net(&nets[i], i, &gpus[rank])
		}
		b.trim(b.root)
		settle(b.root)
		if all == nil {
			all = b.root
		} else {
			all.Fuse(b.root)
		}
	}
	return &topo.Spec{Name: "this machine", Root: all}, nil
}

func element(name string, attrs ...string) *topo.Element {
	e := &topo.Element{Name: name, Origin: topo.Origin{File: "detected"}}
	for i := 0; i+1 < len(attrs); i += 2 {
		e.Set(attrs[i], attrs[i+1])
	}
	return e
}

// settle marks the elements that NCCL's file writes with a separate end tag.
func settle(e *topo.Element) {
	e.Open = len(e.Children) > 0
	for _, c := range e.Children {
		settle(c)
	}
}

// builder builds the XML tree of one rank.
type builder struct {
	m    *Host
	root *topo.Element
	keep map[*topo.Element]bool // elements that exist on the machine, not only in Begin
}

func newBuilder(m *Host, begin *topo.Element) *builder {
	b := &builder{m: m, root: element("system", "version", "1"), keep: map[*topo.Element]bool{}}
	if begin != nil {
		b.root = begin.Clone()
		b.root.Walk(func(e *topo.Element, _ []*topo.Element) {
			if e.Name == "cpu" {
				e.Set("host_hash", b.hostHash())
			}
		})
	}
	return b
}

// find returns the first element that has a name and an attribute's value, and the element that contains it.
func (b *builder) find(name, attr, value string) (found, up *topo.Element) {
	b.root.Walk(func(e *topo.Element, above []*topo.Element) {
		if v, _ := e.Get(attr); found == nil && e.Name == name && v == value {
			found = e
			if len(above) > 0 {
				up = above[len(above)-1]
			}
		}
	})
	return found, up
}

// initial sets an attribute unless the element already has it.
func initial(e *topo.Element, name, value string) {
	if _, there := e.Get(name); !there {
		e.Set(name, value)
	}
}

// trim leaves out the branches in which nothing is kept and reports whether
// anything is (xml.cc:947).
func (b *builder) trim(e *topo.Element) bool {
	asked, _ := e.Get("keep")
	e.Attrs = slices.DeleteFunc(e.Attrs, func(a decl.Attr) bool {
		return a.Name == "keep" && (asked == "1" || b.keep[e])
	})
	if asked == "1" || b.keep[e] {
		return true
	}
	kept := false
	e.Children = slices.DeleteFunc(e.Children, func(c *topo.Element) bool {
		some := b.trim(c)
		kept = kept || some
		return !some && slices.Contains([]string{"pci", "cpu", "nic", "net"}, c.Name)
	})
	return kept
}

// gpu adds a GPU with its PCI branch (xml.cc:884 ncclTopoFillGpu).
func (b *builder) gpu(g *GPU, rank int) {
	pci := b.pci(g.BusID, "0x03")
	e := pci.Child("gpu")
	if e == nil {
		e = element("gpu")
		pci.Children = append(pci.Children, e)
	}
	initial(e, "dev", strconv.Itoa(g.Index))
	initial(e, "sm", strconv.Itoa(g.SM))
	gdr := "0"
	if g.GDR {
		gdr = "1"
	}
	e.Set("rank", strconv.Itoa(rank))
	initial(e, "gdr", gdr)
	b.keep[e] = true
	if e.Child("nvlink") == nil {
		nvlinks(e, g)
	}
	if g.C2CCount > 0 && e.Child("c2c") == nil {
		e.Children = append(e.Children, element("c2c", "bw", strconv.Itoa(g.C2CMBps), "count",
			strconv.Itoa(g.C2CCount)))
	}
	for _, c := range e.Children {
		if target, _ := c.Get("target"); c.Name == "nvlink" {
			initial(c, "tclass", b.targetClass(target))
		}
	}
}

// nvlinks adds a GPU's NVLinks: one element per remote end, with the number of links to it.
func nvlinks(e *topo.Element, g *GPU) {
	count := map[string]int{}
	var order []string
	for _, t := range g.Links {
		if count[t] == 0 {
			order = append(order, t)
		}
		count[t]++
	}
	for _, t := range order {
		e.Children = append(e.Children, element("nvlink", "target", t, "count", strconv.Itoa(count[t])))
	}
}

// targetClass returns the PCI class of an NVLink's far end; a device that the machine cannot see counts as an
// NVSwitch (xml.cc:869).
func (b *builder) targetClass(busID string) string {
	const nvswitch = "0x068000"
	path := b.m.pciPath(busID)
	if path == "" {
		return nvswitch
	}
	return b.m.read(path + "/class")
}

// pci returns the element of a PCI device, creating it and the elements above it as needed, and fills in
// their missing attributes (xml.cc:571 ncclTopoGetXmlFromSys).
func (b *builder) pci(busID, class string) *topo.Element {
	e, up := b.find("pci", "busid", busID)
	if e == nil {
		e = element("pci", "busid", busID)
	}
	if class != "" {
		initial(e, "class", class)
	}
	path := b.m.pciPath(busID)
	b.fillPCI(e, busID, path)
	switch {
	case up == nil && path == "":
		insert(b.cpu("-1"), e)
	case up == nil:
		insert(b.above(path), e)
	case up.Name == "pci":
		id, _ := up.Get("busid")
		b.pci(id, "")
	case up.Name == "cpu":
		b.fillCPU(up)
	}
	return e
}

// fillPCI adds what sysfs reports of a device; its class overrides the file's.
func (b *builder) fillPCI(e *topo.Element, busID, path string) {
	if path == "" {
		initial(e, "link_speed", "")
		initial(e, "link_width", "")
	} else {
		if v := b.m.read(path + "/class"); v != "" {
			e.Set("class", v)
		}
		for _, f := range []string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
			if v := b.m.read(path + "/" + f); v != "" {
				initial(e, f, v)
			}
		}
		initial(e, "link_speed", b.m.linkSpeed(path))
		initial(e, "link_width",
			strconv.Itoa(min(b.m.number(path+"/max_link_width"), b.m.number(parent(path)+"/max_link_width"))))
	}
	if v, _ := e.Get("vendor"); v == "0x1000" {
		b.broadcomLinks(e, busID)
	}
}

// above returns the element that a PCI device is connected to. It skips every other bridge, since a switch
// consists of two, up to the CPU of the root complex.
func (b *builder) above(path string) *topo.Element {
	dirs := strings.Split(path, "/")
	for i, steps := len(dirs)-1, 1; i > 0; i, steps = i-1, steps+1 {
		up := dirs[i-1]
		if !isBusID(up) {
			return b.cpu(b.m.read(path + "/numa_node"))
		}
		if steps == 2 {
			return b.pci(up, "")
		}
	}
	return b.cpu("-1")
}

// isBusID reports whether a directory name is like "0000:1b:00.0" (xml.cc:556).
func isBusID(s string) bool {
	if len(s) != 12 || s[4] != ':' || s[7] != ':' || s[10] != '.' {
		return false
	}
	for _, i := range []int{0, 1, 2, 3, 5, 6, 8, 9, 11} {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
			return false
		}
	}
	return true
}

// insert adds a child at its position in the order of bus ids, as NCCL does.
func insert(parent, e *topo.Element) {
	id, _ := e.Get("busid")
	at := len(parent.Children)
	for i, c := range parent.Children {
		if other, ok := c.Get("busid"); ok && id < other {
			at = i
			break
		}
	}
	parent.Children = append(parent.Children, nil)
	copy(parent.Children[at+1:], parent.Children[at:])
	parent.Children[at] = e
}

func (b *builder) cpu(numa string) *topo.Element {
	for _, c := range b.root.Children {
		if v, _ := c.Get("numaid"); c.Name == "cpu" && v == numa {
			b.fillCPU(c)
			return c
		}
	}
	e := element("cpu", "host_hash", b.hostHash(), "numaid", numa)
	b.fillCPU(e)
	b.root.Children = append(b.root.Children, e)
	return e
}

// hostHash returns a number that is equal for all processes of a host since its last boot.
func (b *builder) hostHash() string {
	h := fnv.New64a()
	h.Write([]byte(b.m.Hostname + b.m.read("proc/sys/kernel/random/boot_id")))
	return fmt.Sprintf("%#x", h.Sum64())
}

// fillCPU sets a CPU's affinity, architecture, vendor and model (xml.cc:476).
func (b *builder) fillCPU(e *topo.Element) {
	numa, _ := e.Get("numaid")
	if v := b.m.read("sys/devices/system/node/node" + numa + "/cpumap"); v != "" {
		initial(e, "affinity", v)
	}
	b.processor(e)
}

// archNames maps Go's names of architectures to NCCL's.
var archNames = map[string]string{"amd64": "x86_64", "arm64": "arm64", "ppc64le": "ppc64"}

// processor adds the CPUID attributes of x86, converting the kernel's family and model back to NCCL's, which
// shift the extended family (xml.cc:527).
func (b *builder) processor(e *topo.Element) {
	arch := cmp.Or(b.m.Arch, runtime.GOARCH)
	if name, ok := archNames[arch]; ok {
		initial(e, "arch", name)
	}
	if arch != "amd64" {
		return
	}
	info := b.m.cpuInfo()
	family, _ := strconv.Atoi(info["cpu family"])
	model, _ := strconv.Atoi(info["model"])
	if family > 15 {
		family = 15 + (family-15)<<4
	}
	initial(e, "vendor", info["vendor_id"])
	if _, there := e.Get("familyid"); !there {
		e.Set("familyid", strconv.Itoa(family))
		e.Set("modelid", strconv.Itoa(model))
	}
}
