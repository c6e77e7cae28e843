package view

import (
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
)

// gap is an attribute that NCCL requires and a file does not have. A rank takes it from
// the running host where its own GPU is below the element (graph/xml.cc:573, 476), and in no
// other place.
type gap struct {
	attr   string
	source rules.Place
	hint   string
}

const (
	pciHint = `write link_speed="16.0 GT/s PCIe" link_width="16" as they are, or "" in both for 16 lanes of ` +
		`Gen3 as NCCL takes them`
	cpuHint = `write the processor, for example arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143"`
)

// fillMissing sets attributes that NCCL would read from the running machine and a file lacks (xml.cc:476,
// xml.cc:548), and records each in v.gaps. The defaults are those stated with the golden decisions: an AMD
// x86 machine without sysfs.
func (v *Host) fillMissing() {
	v.gaps = map[*decl.Element][]gap{}
	lacks := func(e *decl.Element, attr string, source rules.Place, hint string) bool {
		_, ok := e.Get(attr)
		if !ok {
			v.gaps[e] = append(v.gaps[e], gap{attr, source, hint})
		}
		return !ok
	}
	fill := func(e *decl.Element, attr, value string, source rules.Place, hint string) {
		if lacks(e, attr, source, hint) {
			e.Set(attr, value)
		}
	}
	for _, c := range v.root.All("cpu") {
		fill(c, "arch", "x86_64", rules.AtCPUArch, cpuHint)
		if arch, _ := c.Get("arch"); !strings.HasPrefix(arch, "x86_64") {
			continue
		}
		fill(c, "vendor", "AuthenticAMD", rules.AtCPUVendor, cpuHint)
		if vendor, _ := c.Get("vendor"); modelled(vendor) {
			lacks(c, "familyid", rules.AtCPUFamily, cpuHint)
			lacks(c, "modelid", rules.AtCPUFamily, cpuHint)
		}
	}
	for _, e := range v.root.All("pci") {
		class := decl.PCIBridgeClass
		switch {
		case e.Child("gpu") != nil:
			class = "0x03"
		case e.Child("nic") != nil:
			class = "0x02"
		}
		fill(e, "class", class, rules.AtPCIClass, `write class="`+class+`", as NCCL_TOPO_DUMP_FILE does`)
		fill(e, "link_width", "", rules.AtPCIWidth, pciHint)
		fill(e, "link_speed", "", rules.AtPCISpeed, pciHint)
	}
	for _, l := range v.root.All("nvlink") {
		// a target that the machine does not show is an NVSwitch (xml.cc:834)
		l.SetDefault("tclass", "0x068000")
	}
}

// modelled reports a vendor of whose processors NCCL distinguishes models.
func modelled(vendor string) bool {
	for _, v := range []string{"GenuineIntel", "CentaurHauls", "  Shanghai  "} {
		if strings.HasPrefix(vendor, v) {
			return true
		}
	}
	return false
}

// required complains of the gaps that a rank of the host does not fill and meets all the
// same, as nets are in the trees of all ranks: NCCL's init fails there.
func (v *Host) required() error {
	nets := above(slices.DeleteFunc(v.root.All("net"), func(n *decl.Element) bool {
		keep, _ := n.Get("keep")
		return keep != "1"
	}))
	var errs decl.Errors
	for _, name := range []string{"cpu", "pci"} {
		for _, e := range v.root.All(name) {
			if nets[e] > 0 && len(v.gaps[e]) > 0 && v.unfilled(e) {
				errs = append(errs, v.missing(e, v.gaps[e]))
			}
		}
	}
	return errs.Or()
}

// widths complains of widths below an element that a rank does not fill: a virtual NIC with
// wider links above it reads them all (graph/topo.cc:1180).
func (v *Host) widths(parent *decl.Element) error {
	var errs decl.Errors
	for _, e := range parent.All("pci") {
		width := slices.DeleteFunc(slices.Clone(v.gaps[e]), func(g gap) bool {
			return g.attr != "link_width"
		})
		if e != parent && len(width) > 0 && v.unfilled(e) {
			width[0].source = rules.AtPortWidth
			errs = append(errs, v.missing(e, width))
		}
	}
	return errs.Or()
}

// unfilled reports whether a rank does not have its own GPU below an element.
func (v *Host) unfilled(e *decl.Element) bool {
	if v.whole { // each rank fills the branches of all
		return v.below[e] == 0
	}
	return v.below[e] < len(v.GPUs)
}

func (v *Host) missing(e *decl.Element, gaps []gap) *decl.Error {
	names := make([]string, len(gaps))
	for i, g := range gaps {
		names[i] = g.attr
	}
	return &decl.Error{Pos: e.Origin, Path: decl.PathOf(e, e.Parent().Chain()),
		Problem: "has no " + strings.Join(names, ", ") + ": NCCL fails on it" +
			v.rules.Aside(gaps[0].source) +
			", since only branches with the GPU of the reading rank are completed from the host",
		Hint: gaps[0].hint}
}

// above counts for each element how many of a list are below it or are it.
func above(list []*decl.Element) map[*decl.Element]int {
	n := map[*decl.Element]int{}
	for _, e := range list {
		for ; e != nil; e = e.Parent() {
			n[e]++
		}
	}
	return n
}
