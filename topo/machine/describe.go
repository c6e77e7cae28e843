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

// A DescribeError says what of a tree a Spec cannot say.
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

// Describe makes the Spec of a host's tree, the reverse of Generate. Kinds are those with
// the tree's PCI ids, else those that are the same to NCCL: these are Facts that
// are estimated. The error is a *DescribeError: a tree can have more than a Spec can say.
func Describe(root *decl.Element, name string) (*Spec, error) {
	d := &describer{spec: &Spec{Name: name, Title: "described from a topology"}, bus: map[string]int{}, ports: map[int]bool{}}
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
		d.spec.NUMA = append(d.spec.NUMA, NUMA{ID: id, Cores: cores(mask)})
		for _, e := range cpu.Children {
			if err := d.group(e, id); err != nil {
				return nil, err
			}
		}
	}
	if len(d.gpus) == 0 {
		return nil, &DescribeError{Origin: root.Origin, Problem: "the file has no <gpu>, as files for NCCL_TOPO_FILE have none: what the GPUs are is not in it",
			Write: "describe what NCCL wrote on such a host (NCCL_TOPO_DUMP_FILE)"}
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

// describer collects a Spec.
type describer struct {
	spec *Spec
	gpus []*decl.Element
	bus  map[string]int // of GPUs, their place
	// ports are the numbers of NIC ports so far.
	ports map[int]bool
}

// keep says that a Spec has no words for something; the file itself has them.
const keep = "leave --spec out: the topology file has it"

func cannot(e *decl.Element, format string, args ...any) error {
	return &DescribeError{Origin: e.Origin, Problem: fmt.Sprintf(format, args...), Write: keep}
}

func text(e *decl.Element, name string) string { v, _ := e.Get(name); return v }

// fact notes once what was taken for want of better.
func (d *describer) fact(of, format string, args ...any) {
	f := Fact{Of: of, Source: fmt.Sprintf(format, args...), Estimated: true}
	if !slices.Contains(d.spec.Facts, f) {
		d.spec.Facts = append(d.spec.Facts, f)
	}
}

// cpu finds the kind of a CPU: its own, else the newest of its vendor that is not newer.
func (d *describer) cpu(e *decl.Element) error {
	arch, vendor, family, model := text(e, "arch"), text(e, "vendor"), e.Int("familyid", 0), e.Int("modelid", 0)
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
		return cannot(e, "a CPU of %s %s family %d model %d, of which no kind is known", arch, vendor, family, model)
	}
	if near < 1<<20 {
		d.fact("cpu", "family %d, model %d of %s is taken for %s, which is the same to NCCL", family, model, vendor, kind)
	}
	if d.spec.CPU != "" && d.spec.CPU != kind {
		return cannot(e, "CPUs of two kinds, %s and %s", d.spec.CPU, kind)
	}
	d.spec.CPU = kind
	return nil
}

// isSwitch reports whether a PCI function has others below it.
func isSwitch(e *decl.Element) bool { return e.Name == "pci" && e.Child("pci") != nil }

// group describes a subtree of a CPU: switches one below the other, then GPUs and NICs.
func (d *describer) group(e *decl.Element, numa int) error {
	g := Group{NUMA: numa}
	for isSwitch(e) {
		if err := d.addSwitch(&g, e); err != nil {
			return err
		}
		below := e.Children
		if n := slices.IndexFunc(below, isSwitch); n < 0 {
			return d.leaves(&g, below)
		}
		if len(below) == 2 && isSwitch(below[0]) && isSwitch(below[1]) {
			return d.apart(&g, below)
		}
		if len(below) > 1 {
			return cannot(e, "the PCIe switch %s has switches and more below it", text(e, "busid"))
		}
		e = below[0]
	}
	return d.leaves(&g, []*decl.Element{e})
}

// apart describes two switches side by side, GPUs below one and NICs below the other.
func (d *describer) apart(g *Group, below []*decl.Element) error {
	g.Apart = true
	kind := ""
	for i, e := range below {
		one := Group{NUMA: g.NUMA}
		if err := d.addSwitch(&one, e); err != nil {
			return err
		}
		if slices.ContainsFunc(e.Children, isSwitch) || i > 0 && one.Switches[0] != kind {
			return cannot(e, "the PCIe switch %s has a branch of its own", text(e, "busid"))
		}
		kind = one.Switches[0]
		groups := len(d.spec.Groups)
		if err := d.leaves(&one, e.Children); err != nil {
			return err
		}
		d.spec.Groups = d.spec.Groups[:groups]
		if i == 0 {
			g.NICsFirst = one.GPUs == 0
		}
		g.GPUs, g.NICs, g.Bus, g.NIC = g.GPUs+one.GPUs, g.NICs+one.NICs, append(g.Bus, one.Bus...), cmp.Or(one.NIC, g.NIC)
		if one.GPUs > 0 && one.NICs > 0 || i > 0 && g.NICsFirst == (one.GPUs == 0) {
			return cannot(e, "the PCIe switch %s has switches side by side below it that are not GPUs' and NICs'", text(e.Parent(), "busid"))
		}
	}
	g.Switches = append(g.Switches, kind)
	d.spec.Groups = append(d.spec.Groups, *g)
	return nil
}

// addSwitch finds the kind of a switch: its ids and link, else a bridge with that link.
func (d *describer) addSwitch(g *Group, e *decl.Element) error {
	gen := linkOf(e)
	if width := text(e, "link_width"); gen == unknownLink && text(e, "link_speed") == "" && (width == "0" || width == "") {
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
		return cannot(e, "the PCIe switch %s has a link of %s, of which no kind is known", text(e, "busid"), gen)
	}
	if k := switchKinds[best]; k.vendor != text(e, "vendor") || k.device != text(e, "device") {
		d.fact("groups.switches", "a switch %s:%s of %s is taken for %s", text(e, "vendor"), text(e, "device"), gen, best)
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

// leaves describes the devices below the last switch, or one at the CPU itself. GPUs are
// written before NICs, or NICs before GPUs, as the first one is.
func (d *describer) leaves(g *Group, list []*decl.Element) error {
	var gpus, nics []*decl.Element
	for _, e := range list {
		switch {
		case e.Child("gpu") != nil:
			gpus = append(gpus, e)
		case e.Child("nic") != nil || e.Name == "nic":
			nics = append(nics, e)
		}
	}
	if len(gpus)+len(nics) == 0 {
		return nil // a device that NCCL drops
	}
	g.NICsFirst = len(gpus) > 0 && len(nics) > 0 && slices.Index(list, nics[0]) < slices.Index(list, gpus[0])
	first, second := d.addGPUs, d.addNICs
	if g.NICsFirst {
		first, second, gpus, nics = d.addNICs, d.addGPUs, nics, gpus
	}
	if err := first(g, gpus); err != nil {
		return err
	}
	if err := second(g, nics); err != nil {
		return err
	}
	d.spec.Groups = append(d.spec.Groups, *g)
	return nil
}

func (d *describer) addGPUs(g *Group, list []*decl.Element) error {
	for _, e := range list {
		gpu := e.Child("gpu")
		if gpu.Int("dev", len(d.gpus)) != len(d.gpus) {
			return cannot(gpu, "GPU %s comes in place %d: GPUs are not in order", text(gpu, "dev"), len(d.gpus))
		}
		kind, err := d.gpuKind(e, gpu)
		if err != nil {
			return err
		}
		one := GPU{Kind: kind, NoGDR: text(gpu, "gdr") == "0", PCIe: linkOf(e)}
		if one.PCIe == gpuKinds[kind].pci.gen {
			one.PCIe = ""
		}
		if len(d.gpus) > 0 && one != d.spec.GPU {
			return cannot(e, "GPUs of two kinds")
		}
		d.spec.GPU = one
		g.GPUs++
		g.Bus = append(g.Bus, text(e, "busid"))
		d.bus[text(e, "busid")] = len(d.gpus)
		d.gpus = append(d.gpus, gpu)
	}
	return nil
}

// gpuKind is the kind with the PCI device, else one of the compute capability whose NVLinks
// and C2C are like these.
func (d *describer) gpuKind(e, gpu *decl.Element) (string, error) {
	links, c2c, sm := 0, gpu.Child("c2c") != nil, gpu.Int("sm", 0)
	for _, l := range gpu.All("nvlink") {
		links += l.Int("count", 1)
	}
	best, score := "", -1
	for _, name := range slices.Sorted(maps.Keys(gpuKinds)) {
		k := gpuKinds[name]
		if k.sm != sm || (k.c2cNo > 0) != c2c {
			continue
		}
		points := 0
		for i, same := range []bool{k.pci.gen == linkOf(e), (k.links > 0) == (links > 0), k.links == links, k.pci.device == text(e, "device")} {
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
