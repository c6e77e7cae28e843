package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// A DescribeError reports a part of a tree that a Spec cannot express.
type DescribeError struct {
	Origin  decl.Origin
	Problem string
	Write   string // what to write instead
}

func (e *DescribeError) Error() string {
	if e.Origin.Line > 0 {
		return fmt.Sprintf("%s: %s; %s", e.Origin, e.Problem, e.Write)
	}
	return e.Problem + "; " + e.Write
}

// Describe returns the Spec that generates a host's tree; it is the reverse of Generate. It takes the kinds
// with the tree's PCI ids, else kinds that NCCL treats in the same way, and marks these Facts as estimated.
// The error is a *DescribeError: trees can be more general than Specs.
func Describe(root *decl.Element, name string) (*Spec, error) {
	d := &describer{spec: &Spec{Name: name, Title: "described from a topology"}, bus: map[string]int{},
		ports: map[int]bool{}}
	root.SetParents()
	for _, cpu := range root.Children {
		if cpu.Name != "cpu" {
			continue
		}
		if err := d.cpu(cpu); err != nil {
			return nil, err
		}
		id := cpu.Int("numaid", -1)
		mask, _ := cpu.Get("affinity")
		d.spec.NUMA = append(d.spec.NUMA, NUMA{ID: id, Cores: Cores(mask)})
		groups, err := d.groups(cpu.Children)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			g.NUMA = id
			d.spec.Groups = append(d.spec.Groups, g)
		}
	}
	if len(d.gpus) == 0 {
		return nil, &DescribeError{Origin: root.Origin,
			Problem: "the file has no <gpu>, as files for NCCL_TOPO_FILE have none: what the GPUs are is " +
				"not in it",
			Write: "describe what NCCL wrote on such a host (NCCL_TOPO_DUMP_FILE)"}
	}
	if err := d.byNumber(); err != nil {
		return nil, err
	}
	if err := d.nvlinks(); err != nil {
		return nil, err
	}
	d.shorten()
	if p := d.spec.check(); p != nil {
		return nil, &DescribeError{Problem: p.path + ": " + p.text, Write: p.hint}
	}
	return d.spec, nil
}

// describer builds a Spec from a tree.
type describer struct {
	spec *Spec
	gpus []*decl.Element // in the order of the file, then by number
	bus  map[string]int  // of GPUs, their number
	// ports is the set of NIC port numbers seen so far.
	ports map[int]bool
}

// keep is the hint for trees that a Spec cannot express.
const keep = "leave --spec out: the topology file has it"

func cannot(e *decl.Element, format string, args ...any) error {
	return &DescribeError{Origin: e.Origin, Problem: fmt.Sprintf(format, args...), Write: keep}
}

func text(e *decl.Element, name string) string { v, _ := e.Get(name); return v }

// fact records, once, a Fact that is estimated because the tree does not determine it.
func (d *describer) fact(of, format string, args ...any) {
	f := Fact{Of: of, Source: fmt.Sprintf(format, args...), Estimated: true}
	if !slices.Contains(d.spec.Facts, f) {
		d.spec.Facts = append(d.spec.Facts, f)
	}
}

// cpu finds the kind of a CPU: its own, else the newest of its vendor that is not newer.
func (d *describer) cpu(e *decl.Element) error {
	arch, vendor, family, model := text(e, "arch"), text(e, "vendor"), e.Int("familyid", 0),
		e.Int("modelid", 0)
	kind, near := "", -1
	for _, name := range slices.Sorted(maps.Keys(cpuKinds)) {
		k := cpuKinds[name]
		switch {
		case k.arch != cmp.Or(arch, "arm64") || k.vendor != vendor && k.arch != "arm64":
		case k.family == family && k.model == model || k.arch == "arm64":
			if near < 1<<20 {
				kind, near = name, 1<<20
			}
		case vendor == "AuthenticAMD", k.family == family && k.model <= model:
			if k.model > near {
				kind, near = name, k.model
			}
		}
	}
	if kind == "" {
		return cannot(e, "a CPU of %s %s family %d model %d, of which no kind is known", arch, vendor, family,
			model)
	}
	if near < 1<<20 {
		d.fact("cpu", "family %d, model %d of %s is taken for %s, which is the same to NCCL", family, model,
			vendor, kind)
	}
	if d.spec.CPU != "" && d.spec.CPU != kind {
		return cannot(e, "CPUs of two kinds, %s and %s", d.spec.CPU, kind)
	}
	d.spec.CPU = kind
	return nil
}

// isSwitch reports whether a PCI function has others below it.
func isSwitch(e *decl.Element) bool { return e.Name == "pci" && e.Child("pci") != nil }

// groups describes elements side by side, in their order: each switch is a group, and so are
// the GPUs and NICs between switches.
func (d *describer) groups(list []*decl.Element) ([]Group, error) {
	var out []Group
	open := false // the last group takes more devices
	for _, e := range list {
		g, err := d.group(e)
		if err != nil {
			return nil, err
		}
		switch n := len(out) - 1; {
		case g.GPUs+g.NICs+len(g.Below) == 0: // NCCL drops it
		case isSwitch(e):
			out, open = append(out, *g), false
		case open && out[n].takes(g):
			out[n].GPUs, out[n].NICs, out[n].Bus = out[n].GPUs+g.GPUs, out[n].NICs+g.NICs,
				append(out[n].Bus, g.Bus...)
			if g.NIC != nil && out[n].NIC != nil {
				out[n].NIC.Names, out[n].NIC.Devs = append(out[n].NIC.Names, g.NIC.Names...),
					append(out[n].NIC.Devs, g.NIC.Devs...)
			} else if g.NIC != nil {
				out[n].NIC = g.NIC
			}
		default:
			out, open = append(out, *g), e.Parent().Name != "cpu" // what is at a CPU is a group each
		}
	}
	return out, nil
}

// takes reports whether a device can be added to the devices of a group, and orders them:
// GPUs are written before NICs, or NICs before GPUs.
func (g *Group) takes(one *Group) bool {
	if one.GPUs > 0 {
		g.NICsFirst = g.NICsFirst || g.GPUs == 0
		return g.NICs == 0 || g.NICsFirst
	}
	return !g.NICsFirst && (g.NIC == nil || g.NIC.same(one.NIC))
}

// group describes an element below a CPU or a switch: a GPU, a NIC, or a switch with its subtree. The group
// is empty for an element that NCCL skips.
func (d *describer) group(e *decl.Element) (*Group, error) {
	g := &Group{}
	switch {
	case isSwitch(e):
		if err := d.addSwitch(g, e); err != nil {
			return nil, err
		}
		below, err := d.groups(e.Children)
		if err != nil {
			return nil, err
		}
		for i := range below {
			g.Bus, below[i].Bus = append(g.Bus, below[i].Bus...), nil
		}
		if len(below) == 1 { // one below the other
			one := &below[0]
			one.Switches, one.Bus = append(g.Switches, one.Switches...), g.Bus
			return one, nil
		}
		g.Below = below
		return g, nil
	case e.Child("gpu") != nil:
		return g, d.addGPU(g, e)
	case e.Child("nic") != nil || e.Name == "nic":
		return g, d.addNIC(g, e)
	}
	return g, nil
}

// addSwitch finds the kind of a switch: its ids and link, else a bridge with that link.
func (d *describer) addSwitch(g *Group, e *decl.Element) error {
	gen := linkOf(e)
	if width := text(e, "link_width"); gen == unknownLink && text(e, "link_speed") == "" &&
		(width == "0" || width == "") {
		gen = "3x16" // NCCL's own where nothing is said (topo.cc, ncclTopoAddPci)
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(switchKinds)) {
		k := switchKinds[name]
		if k.gen != gen {
			continue
		}
		if k.vendor == text(e, "vendor") && k.device == text(e, "device") {
			best = name
			break
		}
		if strings.HasPrefix(name, "virtual") || best == "" && !strings.HasPrefix(name, "broadcom") {
			best = name // NCCL knows Broadcom's switches alone by their ids (topo.cc)
		}
	}
	if best == "" {
		return cannot(e, "the PCIe switch %s has a link of %s, of which no kind is known", text(e, "busid"),
			gen)
	}
	if k := switchKinds[best]; k.vendor != text(e, "vendor") || k.device != text(e, "device") {
		d.fact("groups.switches", "a switch %s:%s of %s is taken for %s", text(e, "vendor"),
			text(e, "device"), gen, best)
	}
	g.Switches = append(g.Switches, best)
	g.Bus = append(g.Bus, text(e, "busid"))
	return nil
}

// linkOf writes a link as a Spec has it, "5x16"; sysfs and hand-written files spell rates
// "16.0 GT/s PCIe" and "16 GT/s".
func linkOf(e *decl.Element) string {
	rate, _, said := strings.Cut(text(e, "link_speed"), " GT/s")
	have, err := strconv.ParseFloat(rate, 64)
	for _, gen := range slices.Sorted(maps.Keys(transfers)) {
		want, werr := strconv.ParseFloat(transfers[gen], 64)
		if !said || err != nil || werr != nil || have != want {
			continue
		}
		if _, _, ok := link(gen + "x" + text(e, "link_width")); ok {
			return gen + "x" + text(e, "link_width")
		}
	}
	return unknownLink
}

func (d *describer) addGPU(g *Group, e *decl.Element) error {
	gpu := e.Child("gpu")
	kind, err := d.gpuKind(e, gpu)
	if err != nil {
		return err
	}
	one := GPU{Kind: kind, NoGDR: text(gpu, "gdr") == "0", PCIe: linkOf(e)}
	if one.PCIe == gpuKinds[kind].pci.gen {
		one.PCIe = ""
	}
	all := &d.spec.GPU
	if len(d.gpus) > 0 && (one.Kind != all.Kind || one.NoGDR != all.NoGDR || one.PCIe != all.PCIe) {
		return cannot(e, "GPUs of two kinds")
	}
	all.Kind, all.NoGDR, all.PCIe = one.Kind, one.NoGDR, one.PCIe
	all.Devs = append(all.Devs, gpu.Int("dev", len(d.gpus)))
	d.gpus = append(d.gpus, gpu)
	g.GPUs++
	g.Bus = append(g.Bus, text(e, "busid"))
	return nil
}

// byNumber sorts the GPUs by their numbers, which must be 0 to n-1.
func (d *describer) byNumber() error {
	devs := d.spec.GPU.Devs
	if !numbers(devs, len(devs)) {
		return cannot(d.gpus[0], "GPUs are numbered %v, not from 0, each once", devs)
	}
	inFile := d.gpus
	d.gpus = make([]*decl.Element, len(inFile))
	for i, dev := range devs {
		d.gpus[dev] = inFile[i]
		d.bus[text(inFile[i].Parent(), "busid")] = dev
	}
	if slices.IsSorted(devs) {
		d.spec.GPU.Devs = nil
	}
	return nil
}

// gpuKind returns the kind with the PCI device, else one of the compute capability whose NVLinks
// and C2C are like these.
func (d *describer) gpuKind(e, gpu *decl.Element) (string, error) {
	links, c2c, sm := 0, gpu.Child("c2c") != nil, gpu.Int("sm", 0)
	for _, l := range gpu.All("nvlink") {
		links += l.Int("count", 1)
	}
	best, score := "", -1
	for _, name := range slices.Sorted(maps.Keys(gpuKinds)) {
		k := gpuKinds[name]
		named := k.pci.device == text(e, "device")
		if k.sm != sm || (k.c2cNo > 0) != c2c || k.rare && !named {
			continue
		}
		points := 0
		for i, same := range []bool{k.pci.gen == linkOf(e), (k.links > 0) == (links > 0), k.links == links,
			named} {
			if same {
				points += 1 << i
			}
		}
		if points > score {
			best, score = name, points
		}
	}
	if best == "" {
		return "", cannot(gpu, "a GPU of compute capability %d, of which no kind is known", sm)
	}
	if score < 1<<3 {
		d.fact("gpu", "compute capability %d and %d NVLinks: taken for %s", sm, links, best)
	}
	return best, nil
}
