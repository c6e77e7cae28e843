package logcheck

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// A PrintError reports why a log's system print does not yield a topology.
type PrintError struct {
	File    string
	Line    int
	Text    string
	Problem string
}

func (e *PrintError) Error() string {
	return fmt.Sprintf("%s:%d: %s in %q; give the topology with --topo, or run NCCL with "+
		"NCCL_TOPO_DUMP_FILE and keep the file beside the log", e.File, e.Line, e.Problem, e.Text)
}

// printed is the system print of one rank (topo.cc:ncclTopoPrint), converted to elements of a topology file.
// NCCL prints the tree below each CPU, one link per line. Attributes that it does not print (compute
// capability, GPUDirect) come from other lines.
type printed struct {
	root  *decl.Element
	gpus  map[int]*decl.Element // by rank of the communicator
	devs  []device              // DEV nodes, whose GPUs' ranks are not printed
	nets  []*decl.Element       // in order of first appearance
	host  map[*decl.Element]string
	seen  map[string]bool // NETs by name, "NET/1-0"
	stack []place         // open nodes, outermost first
	// rates are the bandwidths of NVLinks: of one entry per <nvlink> element, to
	// be turned into counts when the compute capability is known.
	rates map[*decl.Element]float64
	links map[*decl.Element]float64 // GB/s from the owner, by pci and nic
	at    ncclog.Text

	open   bool     // no line says whether a NET can do GPU Direct RDMA
	notes  []string // what was assumed
	halves int64    // lower halves of switches that were added
}

// device is a DEV node of 2.30.7's print (graph/topo.cc:297 of v2.30.7).
type device struct {
	host, bus int64
	gpu       *decl.Element
	at        ncclog.Text
}

// place is a node whose links follow: they are indented to its column.
type place struct {
	column int
	e      *decl.Element
}

var (
	// rawText is a node by its whole id, as links name it before 2.23.4.
	rawText  = ncclog.Pattern(`^(CPU|GPU|PCI|NIC|NET|NVS)/([0-9A-F]+)((?: \([^)]*\))?)$`)
	nodeText = ncclog.Pattern(`^(CPU|GPU|PCI|NIC|NET|NVS|DEV)/([0-9a-f]+)-([0-9a-f]+)(?: \(([^)]*)\))?$`)
	linkText = ncclog.Pattern(`^( *)\+ (\w+)\[(\d+\.\d)\] - (.*)$`)
)

// whole reports whether a line that concurrent output interrupted is still a complete line of a print.
func whole(line string) bool {
	m := linkText().FindStringSubmatch(line)
	return m == nil || nodeText().MatchString(byHost(m[4]))
}

// isSystem reports whether a line belongs to the tree of a system print, not
// to its paths.
func isSystem(line string) bool {
	return strings.HasPrefix(line, "CPU/") && nodeText().MatchString(byHost(line)) ||
		linkText().MatchString(line)
}

// readPrint parses the tree of a system print; it returns nil for no tree. lines is all lines of the rank;
// their paths show the order in which devices were found.
func readPrint(tree, lines []ncclog.Text) (*printed, error) {
	p := &printed{root: &decl.Element{Name: "system", Attrs: []decl.Attr{{Name: "version", Value: "1"}}},
		gpus: map[int]*decl.Element{}, rates: map[*decl.Element]float64{}, links: map[*decl.Element]float64{},
		seen: map[string]bool{}, host: map[*decl.Element]string{}}
	for _, l := range tree {
		p.at = l
		if err := p.line(l.Text); err != nil {
			return nil, err
		}
	}
	if len(p.root.Children) == 0 || len(p.gpus)+len(p.devs) == 0 {
		return nil, nil
	}
	p.trimmed()
	p.order(lines)
	return p, nil
}

func (p *printed) fail(problem string) error {
	return &PrintError{File: p.at.File, Line: p.at.Line, Text: p.at.Text, Problem: problem}
}

// new returns an element whose origin is the current line of the log.
func (p *printed) new(name string, attrs ...string) *decl.Element {
	e := &decl.Element{Name: name, Open: true, Origin: decl.Origin{File: p.at.File, Line: p.at.Line, Col: 1}}
	for i := 0; i+1 < len(attrs); i += 2 {
		e.Attrs = append(e.Attrs, decl.Attr{Name: attrs[i], Value: attrs[i+1]})
	}
	return e
}

// line reads one line of the tree: a CPU, or a link behind blanks.
func (p *printed) line(text string) error {
	link := linkText().FindStringSubmatch(text)
	if link == nil {
		m := nodeText().FindStringSubmatch(byHost(text))
		cpu, err := p.cpu(m)
		if err != nil {
			return err
		}
		p.root.Children = append(p.root.Children, cpu)
		p.stack = []place{{0, cpu}}
		return nil
	}
	column := len(link[1])
	for len(p.stack) > 0 && p.stack[len(p.stack)-1].column > column {
		p.stack = p.stack[:len(p.stack)-1]
	}
	if len(p.stack) == 0 || p.stack[len(p.stack)-1].column != column {
		return p.fail("a link of no node")
	}
	owner := p.stack[len(p.stack)-1].e
	bw, _ := strconv.ParseFloat(link[3], 64)
	m := nodeText().FindStringSubmatch(byHost(link[4]))
	if m == nil {
		return p.fail("an unknown node")
	}
	inner, err := p.link(owner, link[2], bw, m)
	if err == nil && inner != nil {
		p.stack = append(p.stack, place{len(text) - len(link[4]), inner})
	}
	return err
}

// byHost converts a node's text, which may have the whole 64-bit id, to host and id.
func byHost(text string) string {
	m := rawText().FindStringSubmatch(text)
	if m == nil {
		return text
	}
	id, err := strconv.ParseUint(m[2], 16, 64)
	if err != nil {
		return text
	}
	return fmt.Sprintf("%s/%x-%x%s", m[1], id>>56, id&(1<<56-1), m[3])
}

// link adds the far end of a link and returns the element to which the following links belong.
func (p *printed) link(owner *decl.Element, kind string, bw float64, m []string) (*decl.Element, error) {
	switch kind {
	case "PCI":
		return p.pci(owner, bw, m)
	case "NVL":
		return nil, p.nvlink(owner, bw, m)
	case "C2C":
		return nil, p.c2c(owner, bw)
	case "NET":
		return nil, p.net(owner, m)
	case "LOC":
		return nil, p.deviceOf(owner, m)
	case "SYS":
		return nil, nil // follow from the CPUs, and from NCCL itself
	}
	return nil, p.fail("a " + kind + " link, which simccl cannot take from a log")
}

// cpu reads "CPU/0-1 (1/2/-1)": architecture, vendor, model in NCCL's numbers.
func (p *printed) cpu(m []string) (*decl.Element, error) {
	numa := "-1"
	if n, err := strconv.ParseInt(m[3], 16, 64); err == nil && n < 1<<31 {
		numa = strconv.FormatInt(n, 10)
	}
	host, _ := strconv.ParseInt(m[2], 16, 32)
	e := p.new("cpu", "host_hash", fmt.Sprintf("0x%x", hostHash+host), "numaid", numa)
	f := strings.Split(m[4], "/")
	if len(f) != 3 {
		return nil, p.fail("a CPU without its kind")
	}
	arch, vendor, model := topo.CPUArch(atoi(f[0])), topo.CPUVendor(atoi(f[1])), topo.CPUModel(atoi(f[2]))
	set := func(arch, vendor string, family, model int) {
		e.Attrs = append(e.Attrs, decl.Attr{Name: "arch", Value: arch})
		if vendor != "" {
			e.Attrs = append(e.Attrs, decl.Attr{Name: "vendor", Value: vendor},
				decl.Attr{Name: "familyid", Value: strconv.Itoa(family)},
				decl.Attr{Name: "modelid", Value: strconv.Itoa(model)})
		}
	}
	switch {
	case arch == topo.ArchARM:
		set("arm64", "", 0, 0)
	case arch == topo.ArchPower:
		set("ppc64", "", 0, 0)
	case arch == topo.ArchX86 && vendor == topo.VendorIntel:
		// The least model of each class (topo.cc:520).
		least := map[topo.CPUModel]int{topo.ModelBDW: 0x4F, topo.ModelSKL: 0x55, topo.ModelSRP: 0x8F,
			topo.ModelERP: 0xCF}[model]
		set("x86_64", "GenuineIntel", 6, least)
	case arch == topo.ArchX86 && vendor == topo.VendorAMD:
		set("x86_64", "AuthenticAMD", 143, 49)
	case arch == topo.ArchX86 && vendor == topo.VendorZhaoxin && model == topo.ModelYongfeng:
		set("x86_64", "CentaurHauls", 7, 0x5B)
	case arch == topo.ArchX86 && vendor == topo.VendorZhaoxin:
		set("x86_64", "CentaurHauls", 6, 0)
	case arch == topo.ArchX86:
		set("x86_64", "unknown", 0, 0)
	default:
		return nil, p.fail("a CPU of unknown architecture")
	}
	return e, nil
}

// lanes are PCIe speeds by file text, in GB/s of 16 lanes (topo.cc:432).
var lanes = []struct {
	text string
	bw   float64
}{{"16.0 GT/s PCIe", 24}, {"32.0 GT/s PCIe", 48}, {"8.0 GT/s PCIe", 12}, {"64.0 GT/s PCIe", 96},
	{"5.0 GT/s PCIe", 6}, {"2.5 GT/s PCIe", 3}}

// speed returns a link_speed and link_width of a PCIe link with the bandwidth that NCCL printed, rounded to
// one decimal. NCCL does not distinguish pairs of equal bandwidth.
func speed(bw float64) (text string, width int, ok bool) {
	for _, widths := range [...][]int{{16}, {8, 4, 2, 1}, {32, 48, 64, 80, 96, 112, 128}} {
		for _, l := range lanes {
			for _, w := range widths {
				if math.Abs(l.bw*float64(w)/16-bw) < 0.051 {
					return l.text, w, true
				}
			}
		}
	}
	// Sums of unequal ports: lanes of Gen1 are the finest unit.
	if w := int(math.Round(bw * 80 / 15)); w > 0 && math.Abs(float64(w*15)/80-bw) < 0.051 {
		return "2.5 GT/s PCIe", w, true
	}
	return "", 0, false
}

// classes of devices below a PCI link, by kind of node.
var classes = map[string]string{"PCI": "0x060400", "GPU": "0x030200", "DEV": "0x030200", "NIC": "0x020000"}

// pci adds a switch, a GPU or a NIC below its owner.
func (p *printed) pci(owner *decl.Element, bw float64, m []string) (*decl.Element, error) {
	bus, err := strconv.ParseInt(m[3], 16, 64)
	class := classes[m[1]]
	if err != nil || class == "" || owner.Name != "cpu" && owner.Name != "pci" {
		return nil, p.fail("an unknown device")
	}
	if m[1] == "NIC" && bw > 4000 {
		// A NIC outside PCI (topo.cc:551): bandwidth of LOC.
		nic := p.new("nic")
		owner.Children = append(owner.Children, nic)
		p.links[nic] = bw
		return nic, nil
	}
	text, width, ok := speed(bw)
	if !ok {
		return nil, p.fail("a PCI bandwidth of no width and speed")
	}
	e := p.new("pci", "busid", cnum.BusIDText(bus), "class", class)
	if id, err := strconv.ParseUint(m[4], 16, 64); (m[1] == "PCI" || m[1] == "DEV") && err == nil {
		for i, name := range [...]string{"vendor", "device", "subsystem_vendor", "subsystem_device"} {
			e.Set(name, fmt.Sprintf("0x%04x", id>>(48-16*i)&0xffff))
		}
	}
	e.Set("link_speed", text)
	e.Set("link_width", strconv.Itoa(width))
	owner.Children = append(owner.Children, e)
	p.links[e] = bw
	switch m[1] {
	case "GPU":
		rank, err := strconv.Atoi(m[4])
		if err != nil {
			return nil, p.fail("a GPU without its rank")
		}
		gpu := p.new("gpu")
		e.Children = append(e.Children, gpu)
		p.gpus[rank] = gpu
		return gpu, nil
	case "DEV":
		return p.device(e, bus, m)
	case "NIC":
		nic := p.new("nic")
		e.Children = append(e.Children, nic)
		return nic, nil
	}
	return e, nil
}

// device adds the GPU of a DEV node; its rank is found later (place).
func (p *printed) device(e *decl.Element, bus int64, m []string) (*decl.Element, error) {
	const parts = 3 // the bits of a bus id that number parts of a GPU (graph/topo.h:97)
	if bus&parts != 0 {
		return nil, p.fail("a part of a GPU (MLOPart), which is not modelled,")
	}
	host, err := strconv.ParseInt(m[2], 16, 64)
	if err != nil {
		return nil, p.fail("an unknown device")
	}
	gpu := p.new("gpu")
	e.Children = append(e.Children, gpu)
	p.devs = append(p.devs, device{host: host, bus: bus, gpu: gpu, at: p.at})
	return gpu, nil
}

// deviceOf checks the link of a DEV node to its GPU. Other links of this kind
// follow from NCCL itself.
func (p *printed) deviceOf(owner *decl.Element, m []string) error {
	if m[1] != "GPU" || owner.Name != "gpu" || len(p.devs) == 0 {
		return nil
	}
	if bus, err := strconv.ParseInt(m[3], 16, 64); err != nil || bus != p.devs[len(p.devs)-1].bus {
		return p.fail("a GPU with several ranks, which is not modelled,")
	}
	return nil
}

// c2c adds a C2C link of a GPU to its CPU; the CPU's end prints it, too.
func (p *printed) c2c(owner *decl.Element, bw float64) error {
	if owner.Name == "gpu" {
		owner.Children = append(owner.Children, p.new("c2c", "bw", strconv.FormatFloat(bw*1000, 'f', 0, 64),
			"count", "1"))
	}
	return nil
}

// targets maps the kind of node at the end of an NVLink to its tclass.
var targets = map[string]string{"GPU": "0x030200", "DEV": "0x030200", "NVS": "0x068000", "CPU": "0x068001"}

// nvlink adds an NVLink to a GPU.
func (p *printed) nvlink(owner *decl.Element, bw float64, m []string) error {
	if owner.Name != "gpu" {
		return nil // the other end prints it
	}
	if arch, _ := p.stack[0].e.Get("arch"); m[1] == "CPU" && arch == "arm64" {
		return p.c2c(owner, bw) // an NVLink before NCCL 2.26.2
	}
	class := targets[m[1]]
	if class == "" {
		return p.fail("an NVLink to an unknown device")
	}
	bus := "fffffff:ffff:ff"
	if m[1] == "GPU" || m[1] == "DEV" {
		id, err := strconv.ParseInt(m[3], 16, 64)
		if err != nil {
			return p.fail("an NVLink to an unknown GPU")
		}
		bus = cnum.BusIDText(id)
	}
	l := p.new("nvlink", "target", bus, "tclass", class)
	p.rates[l] = bw
	owner.Children = append(owner.Children, l)
	return nil
}

// net adds a NET from "NET/0-0 (coll/asic/port/bw)".
func (p *printed) net(owner *decl.Element, m []string) error {
	f := strings.Split(m[4], "/")
	if len(f) == 3 {
		f = append([]string{"0"}, f...) // no CollNet before 2.24.3
	}
	id, err := strconv.ParseInt(m[3], 16, 32)
	if owner.Name != "nic" || len(f) != 4 || err != nil {
		return p.fail("a NET without its description")
	}
	dev := strconv.FormatInt(id, 10)
	if p.seen[m[0][:strings.IndexByte(m[0], ' ')]] {
		return nil // see once
	}
	p.seen[m[0][:strings.IndexByte(m[0], ' ')]] = true
	bw, err := strconv.ParseFloat(f[3], 64)
	if err != nil {
		return p.fail("a NET without bandwidth")
	}
	e := p.new("net", "dev", dev, "latency", "0", "speed", strconv.FormatFloat(math.Round(bw*8000), 'f', 0,
		64), "port", f[2], "guid", "0x"+f[1], "coll", f[0])
	p.nets, p.host[e] = append(p.nets, e), m[2]
	owner.Children = append(owner.Children, e)
	return nil
}

// trimmed adds a NET to each NIC without one: before NCCL 2.28.7 NETs are removed if all ranks are on one
// node, and then they do not affect any decision.
func (p *printed) trimmed() {
	p.root.Walk(func(e *decl.Element, _ []*decl.Element) {
		if e.Name == "nic" && len(e.Children) == 0 {
			n := p.new("net", "dev", strconv.Itoa(len(p.nets)), "latency", "0", "speed", "10000", "port", "1",
				"guid", fmt.Sprintf("0x%x", len(p.nets)+1), "coll", "0")
			p.nets = append(p.nets, n)
			e.Children = append(e.Children, n)
		}
	})
}

// counts sets the NVLink counts of GPUs of compute capability sm, and reports whether every bandwidth is a
// multiple of one link's.
func (p *printed) counts(r *rules.Topo, sm int) bool {
	one := float64(r.NVLink(sm))
	whole := true
	for l, bw := range p.rates {
		n := math.Round(bw / one)
		if n < 1 || math.Abs(n*one-bw) > 0.051+n*0.001 {
			whole, n = false, max(n, 1)
		}
		l.Set("count", strconv.Itoa(int(n)))
	}
	return whole
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

// hostHash is the host_hash of host 0; the others count on.
const hostHash = 0x1234567800000000
