package machine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
)

// same reports whether two kinds differ in names and numbers of ports alone.
func (n *NIC) same(other *NIC) bool {
	a, b := *n, *other
	a.Names, b.Names, a.First, b.First = nil, nil, 0, 0
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

// addNICs describes NICs, for now each group's by themselves.
func (d *describer) addNICs(g *Group, list []*decl.Element) error {
	for _, e := range list {
		nic := e
		if e.Name == "pci" {
			nic = e.Child("nic")
		}
		nets := nic.All("net")
		if len(nets) == 0 {
			continue // NCCL drops it
		}
		n, err := d.nicKind(e, nets)
		if err != nil {
			return err
		}
		if g.NIC == nil {
			g.NIC = n
		} else if !g.NIC.same(n) {
			return cannot(e, "NICs of two kinds below one switch")
		}
		for _, net := range nets {
			dev := net.Int("dev", -1)
			if i := len(g.NIC.Names); i == 0 && dev != d.free() {
				g.NIC.First = dev
			} else if want := g.NIC.number(i, d.ports); dev != want {
				return cannot(net, "port %d comes where port %d does: ports are not in order", dev, want)
			}
			d.ports[dev] = true
			g.NIC.Names = append(g.NIC.Names, text(net, "name"))
		}
		g.NICs++
		if e.Name == "pci" {
			g.Bus = append(g.Bus, text(e, "busid"))
		}
	}
	return nil
}

// free is the least number that no port has.
func (d *describer) free() int { return (&NIC{}).number(0, d.ports) }

// nicKind describes a NIC by its ports.
func (d *describer) nicKind(e *decl.Element, nets []*decl.Element) (*NIC, error) {
	p := nets[0]
	for _, o := range nets {
		for _, a := range []string{"speed", "latency", "gdr"} {
			if text(o, a) != text(p, a) {
				return nil, cannot(o, "ports of one NIC differ in %s", a)
			}
		}
	}
	latency, _ := strconv.ParseFloat(text(p, "latency"), 64)
	n := &NIC{Virtual: e.Name == "nic", Speed: p.Int("speed", 10000), NoGDR: text(p, "gdr") == "0", Latency: latency}
	if n.Ports = len(nets); n.Ports == 1 {
		n.Ports = 0
	}
	best, score := "", -1
	for _, name := range slices.Sorted(maps.Keys(nicKinds)) {
		k := nicKinds[name]
		if k.noGDR && !n.NoGDR || k.latency > 0 && latency == 0 {
			continue // a Spec cannot take these back
		}
		points := 0
		for i, same := range []bool{!strings.HasSuffix(name, "-vf"), k.speed == n.Speed, k.pci.class == text(e, "class"), k.noGDR == n.NoGDR,
			k.maxConn == p.Int("maxconn", k.maxConn), k.pci.device == text(e, "device")} {
			if same {
				points += 1 << i
			}
		}
		if points > score {
			best, score = name, points
		}
	}
	k := nicKinds[best]
	if n.Kind = best; k.pci.device != text(e, "device") {
		d.fact("nic", "a NIC of %d Mb/s: taken for %s", n.Speed, best)
	}
	if n.Speed == k.speed {
		n.Speed = 0
	}
	if n.Latency == k.latency {
		n.Latency = 0
	}
	n.NoGDR = n.NoGDR && !k.noGDR
	if gen := linkOf(e); !n.Virtual && gen != k.pci.gen {
		n.PCIe = gen
	}
	return n, nil
}

// isVirtual reports whether an NVLink leads to NVSwitches that the host does not see.
func isVirtual(target string) bool { return strings.HasPrefix(target, "fffffff") }

// nvlinks describes what NVLinks lead to.
func (d *describer) nvlinks() error {
	l := &d.spec.NVLink
	between := map[[2]int]int{}
	for i, gpu := range d.gpus {
		own := NVLink{}
		for _, e := range gpu.All("nvlink") {
			target, class, count := text(e, "target"), text(e, "tclass"), e.Int("count", 1)
			to, known := d.bus[target]
			switch {
			case known:
				between[[2]int{i, to}] += count
			case !strings.HasPrefix(class, "0x0680") || class == "0x068001":
				return cannot(e, "an NVLink to %s, of class %s", target, class)
			case isVirtual(target):
				own.Switch, own.Links = true, own.Links+count
			default:
				own.Switch, own.Counts, own.Bus = true, append(own.Counts, count), append(own.Bus, target)
			}
		}
		if i > 0 && fmt.Sprint(own) != fmt.Sprint(*l) {
			return cannot(gpu, "GPU %d has other links to NVSwitches than GPU 0", i)
		}
		*l = own
	}
	if l.Links == gpuKinds[d.spec.GPU.Kind].links || len(l.Counts) > 0 {
		l.Links = 0
	}
	return d.pairs(between)
}

// pairs describes links between GPUs: so many of each pair, or each pair's.
func (d *describer) pairs(between map[[2]int]int) error {
	l, n := &d.spec.NVLink, len(d.gpus)
	mesh := between[[2]int{0, 1}]
	for a := range n {
		for b := a + 1; b < n; b++ {
			there, back := between[[2]int{a, b}], between[[2]int{b, a}]
			if there != back {
				return cannot(d.gpus[a], "GPU %d has %d NVLinks to GPU %d, which has %d back", a, there, b, back)
			}
			if there > 0 {
				l.Pairs = append(l.Pairs, [3]int{a, b, there})
			}
			if there != mesh {
				mesh = 0
			}
		}
	}
	if l.Switch && len(l.Pairs) > 0 {
		return cannot(d.gpus[0], "NVLinks to NVSwitches and to other GPUs")
	}
	if mesh > 0 && n > 2 {
		l.Mesh, l.Pairs = mesh, nil
	}
	return nil
}

// shorten writes the kind of most NICs once, and groups that repeat.
func (d *describer) shorten() {
	s := d.spec
	for i := range s.Groups {
		g := &s.Groups[i]
		switch {
		case g.NIC == nil || g.NIC.First > 0:
		case s.NIC.Kind == "":
			s.NIC, g.NIC = *g.NIC, nil
		case s.NIC.same(g.NIC):
			s.NIC.Names = append(s.NIC.Names, g.NIC.Names...)
			g.NIC = nil
		}
	}
	var out []Group
	for _, g := range s.Groups {
		if n := len(out) - 1; n >= 0 && g.NIC == nil && out[n].NIC == nil && shape(&out[n]) == shape(&g) && max(out[n].Times, 1) < maxGroups {
			out[n].Times = max(out[n].Times, 1) + 1
			out[n].Bus = append(out[n].Bus, g.Bus...)
			continue
		}
		out = append(out, g)
	}
	s.Groups = out
}

// shape is a group without bus ids and how often it is there.
func shape(g *Group) string {
	c := *g
	c.Bus, c.Times = nil, 0
	return fmt.Sprintf("%+v", c)
}

// cores writes sysfs' mask of CPUs as ranges, "0-3,36".
func cores(mask string) string {
	var list []int
	words := strings.Split(mask, ",")
	for i, w := range words {
		v, err := strconv.ParseUint(w, 16, 32)
		if err != nil {
			return ""
		}
		for b := range 32 {
			if v>>b&1 == 1 {
				list = append(list, 32*(len(words)-1-i)+b)
			}
		}
	}
	slices.Sort(list)
	var parts []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if part := strconv.Itoa(list[i]); j == i {
			parts = append(parts, part)
		} else {
			parts = append(parts, part+"-"+strconv.Itoa(list[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
