package logcheck

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/study/ncclog"
	"github.com/simccl/simccl/topo/decl"
)

// order sorts the devices below each CPU and switch into the order in which NCCL created them. The tree of a
// system print is sorted by bandwidth, but the first line of paths lists GPUs and NETs in order of creation.
// Example: a NIC outside PCI is printed first (5000 GB/s) although the NETs of a PCI NIC were created first.
func (p *printed) order(lines []ncclog.Text) {
	at := map[string]int{}
	for _, l := range lines {
		if !strings.HasPrefix(l.Text, "GPU/") || !strings.Contains(l.Text, " :") {
			continue
		}
		for i, m := range pathNode().FindAllStringSubmatch(l.Text, -1) {
			if _, ok := at[m[1]]; !ok {
				at[m[1]] = i
			}
		}
		break
	}
	defer p.unflatten(p.root)
	if len(at) == 0 {
		return
	}
	for _, cpu := range p.root.Children {
		hash, _ := cpu.Hex("host_hash")
		host := int64(hash) - hostHash
		cpu.Walk(func(e *decl.Element, _ []*decl.Element) {
			if e.Name == "cpu" || e.Name == "pci" {
				p.merge(e, func(a, b *decl.Element) bool { return before(a, b, host, at) })
			}
		})
	}
}

// merge interleaves children of equal bandwidth, whose order the print keeps, according to the order in the
// line of paths.
func (p *printed) merge(e *decl.Element, before func(a, b *decl.Element) bool) {
	var lists [][]*decl.Element
	of := map[float64]int{}
	for _, c := range e.Children {
		i, ok := of[p.links[c]]
		if !ok {
			i = len(lists)
			of[p.links[c]] = i
			lists = append(lists, nil)
		}
		lists[i] = append(lists[i], c)
	}
	if len(lists) < 2 {
		return
	}
	e.Children = e.Children[:0:0]
	for {
		next := -1
		for i, l := range lists {
			if len(l) > 0 && (next < 0 || before(l[0], lists[next][0])) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		e.Children = append(e.Children, lists[next][0])
		lists[next] = lists[next][1:]
	}
}

// pathNode matches a GPU or NET with its path: "NET/0-1 (3/1.2/PHB)".
var pathNode = ncclog.Pattern(`((?:GPU|NET)/[0-9a-f]+-[0-9a-f]+) \(\d+/[\d.]+/\w+\)`)

// anyNode is pathNode for nodes of every kind.
var anyNode = ncclog.Pattern(`([A-Z]+/[0-9a-f]+-[0-9a-f]+) \(\d+/[\d.]+/\w+\)`)

// before reports whether a was added before b. The line lists kind after kind,
// so that only two NETs or two GPUs can be compared.
func before(a, b *decl.Element, host int64, at map[string]int) bool {
	for _, kind := range [...]string{"NET", "GPU"} {
		i, ok := earliest(a, kind, host, at)
		j, also := earliest(b, kind, host, at)
		if ok && also {
			return i < j
		}
	}
	return false
}

// earliest returns the first position of a node of a kind at or below an element.
func earliest(e *decl.Element, kind string, host int64, at map[string]int) (int, bool) {
	first, ok := 0, false
	e.Walk(func(c *decl.Element, above []*decl.Element) {
		name := ""
		switch {
		case kind == "NET" && c.Name == "net":
			name = fmt.Sprintf("NET/%x-%x", host, c.Int("dev", 0))
		case kind == "GPU" && c.Name == "pci":
			bus, _ := c.Get("busid")
			name = fmt.Sprintf("GPU/%x-%x", host, cnum.BusID(bus))
		}
		if i, known := at[name]; known && (!ok || i < first) {
			first, ok = i, true
		}
	})
	return first, ok
}

// once removes NETs that a system print repeats and returns their number. NCCL attaches a NET without a PCI
// device to the first CPU that each process sees: processes of several CPUs list it once each, all under one
// NIC, and only the first can be reached (topo.cc:551). A topology file has it once.
func once(lines []ncclog.Text) ([]ncclog.Text, int) {
	seen := map[string]bool{}
	repeats := 0
	var out []ncclog.Text
	for _, l := range lines {
		name := ""
		if m := netLine().FindString(l.Text); m != "" {
			name = m
		} else if strings.HasPrefix(l.Text, "NET/") {
			name, _, _ = strings.Cut(l.Text, " ")
		}
		if name != "" && seen[name] {
			repeats++
			continue
		}
		if name != "" {
			seen[name] = true
		}
		out = append(out, l)
	}
	if repeats == 0 {
		return lines, 0
	}
	for i := range out {
		out[i].Text = shorten(out[i].Text)
	}
	return out, repeats
}

var netLine = ncclog.Pattern(`\+ NET\[[\d.]+\] - NET/[0-9a-fA-F]+(?:-[0-9a-f]+)? .*$`)

// shorten drops NETs that a line of paths has had, and the piece at its cut end.
func shorten(line string) string {
	if !pathNode().MatchString(line) {
		return line
	}
	head, rest, ok := strings.Cut(line, " :")
	if !ok {
		return line
	}
	seen := map[string]bool{}
	b := head + " :"
	for _, m := range anyNode().FindAllStringSubmatch(rest, -1) {
		if strings.HasPrefix(m[1], "NET/") && seen[m[1]] {
			continue
		}
		seen[m[1]] = true
		b += m[0] + " "
	}
	return b
}

// unflatten restores the lower level of Broadcom switches that NCCL merged into one node (topo.cc:199, marked
// by ffff): NCCL joins the trees of ranks before it merges switches, and only two levels preserve the printed
// order. A lower half begins at each NIC, which every rank's tree has, and contains the GPUs that follow.
// Example: NIC, GPU, NIC becomes {NIC, GPU}, {NIC}.
func (p *printed) unflatten(e *decl.Element) {
	for _, c := range e.Children {
		p.unflatten(c)
	}
	gen, _ := e.Get("device")
	mark, _ := e.Get("subsystem_device")
	upper, lower := map[string]string{"0xc010": "0xa096", "0xc030": "0x0000"}[gen],
		map[string]string{"0xc010": "0xa096", "0xc030": "0x1000"}[gen]
	if vendor, _ := e.Get("vendor"); e.Name != "pci" || vendor != "0x1000" || mark != "0xffff" ||
		upper == "" {
		return
	}
	e.Set("subsystem_device", upper)
	var halves []*decl.Element
	for _, c := range e.Children {
		if n := len(halves); n == 0 || c.Child("nic") != nil {
			p.halves++
			half := &decl.Element{Name: "pci", Open: true, Origin: c.Origin}
			half.Attrs = append(half.Attrs, e.Attrs...)
			half.Set("busid", cnum.BusIDText(halfBus+p.halves<<12))
			half.Set("subsystem_device", lower)
			halves = append(halves, half)
		}
		last := halves[len(halves)-1]
		last.Children = append(last.Children, c)
	}
	e.Children = halves
}

// halfBus is the first bus id of restored lower halves: a PCI domain that no machine has.
const halfBus = int64(0xfff0) << 20
