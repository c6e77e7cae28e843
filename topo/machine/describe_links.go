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
	a.Names, b.Names, a.Devs, b.Devs, a.First, b.First = nil, nil, nil, nil, 0, 0
	return fmt.Sprintf("%+v", a) == fmt.Sprintf("%+v", b)
}

// addNIC describes a NIC, for now of a kind of its own.
func (d *describer) addNIC(g *Group, e *decl.Element) error {
	nic := e
	if e.Name == "pci" {
		nic = e.Child("nic")
	}
	nets := nic.All("net")
	if len(nets) == 0 {
		return nil // NCCL drops it
	}
	n, err := d.nicKind(e, nets)
	if err != nil {
		return err
	}
	for _, net := range nets {
		dev := net.Int("dev", -1)
		if dev < 0 || d.ports[dev] {
			return cannot(net, "port %d has no number of its own", dev)
		}
		d.ports[dev] = true
		n.Devs, n.Names = append(n.Devs, dev), append(n.Names, text(net, "name"))
	}
	g.NIC = n
	g.NICs++
	if e.Name == "pci" {
		g.Bus = append(g.Bus, text(e, "busid"))
	}
	return nil
}

// nicKind describes a NIC from its ports, which must be equal in speed, latency and GPUDirect.
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
	n := &NIC{Virtual: e.Name == "nic", Speed: p.Int("speed", 10000), NoGDR: text(p, "gdr") == "0",
		Latency: latency}
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
		for i, same := range []bool{!strings.HasSuffix(name, "-vf"), k.speed == n.Speed,
			k.pci.class == text(e, "class"), k.noGDR == n.NoGDR,
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

// nvlinks describes the NVLinks: to NVSwitches, or between pairs of GPUs.
func (d *describer) nvlinks() error {
	l := &d.spec.NVLink
	between := map[[2]int]int{}
	var each []int // links to NVSwitches that the host does not see
	for i, gpu := range d.gpus {
		own, virtual := NVLink{}, 0
		for _, e := range gpu.All("nvlink") {
			target, class, count := text(e, "target"), text(e, "tclass"), e.Int("count", 1)
			to, known := d.bus[target]
			switch {
			case known:
				between[[2]int{i, to}] += count
			case !strings.HasPrefix(class, "0x0680") || class == "0x068001":
				return cannot(e, "an NVLink to %s, of class %s", target, class)
			case strings.HasPrefix(target, "fffffff"):
				virtual += count
			default:
				own.Counts, own.Bus = append(own.Counts, count), append(own.Bus, target)
			}
		}
		each = append(each, virtual)
		if i > 0 && fmt.Sprint(own) != fmt.Sprint(*l) || len(own.Counts) > 0 && virtual > 0 {
			return cannot(gpu, "GPU %d has other links to NVSwitches than GPU 0", i)
		}
		*l = own
	}
	most := slices.Max(each)
	switch l.Switch = most > 0 || len(l.Counts) > 0; {
	case slices.Min(each) < most:
		l.Each = each
	case most != gpuKinds[d.spec.GPU.Kind].links:
		l.Links = most
	}
	return d.pairs(between)
}

// pairs describes links between GPUs: as a mesh if all pairs have the same number, else pair by pair.
func (d *describer) pairs(between map[[2]int]int) error {
	l, n := &d.spec.NVLink, len(d.gpus)
	mesh := between[[2]int{0, 1}]
	for a := range n {
		for b := a + 1; b < n; b++ {
			there, back := between[[2]int{a, b}], between[[2]int{b, a}]
			if there != back {
				return cannot(d.gpus[a], "GPU %d has %d NVLinks to GPU %d, which has %d back", a, there, b,
					back)
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

// shorten writes the kind of most NICs once, groups that repeat, and no numbers that ports
// have anyway.
func (d *describer) shorten() {
	s := d.spec
	s.share(s.Groups)
	var kinds []*NIC
	ports, used, usual := map[*NIC]int{}, map[int]bool{}, true
	s.each(func(g *Group) {
		n := s.nic(g)
		if !slices.Contains(kinds, n) {
			kinds = append(kinds, n)
		}
		for range g.NICs * max(n.Ports, 1) {
			dev := (&NIC{}).number(0, used)
			usual = usual && n.Devs[ports[n]] == dev
			used[dev] = true
			ports[n]++
		}
	})
	for _, n := range kinds {
		if usual {
			n.Devs = nil
		}
	}
	s.Groups = repeated(s.Groups)
}

// share removes the kind of NIC from groups whose NICs are of the Spec's common kind.
func (s *Spec) share(groups []Group) {
	for i := range groups {
		g := &groups[i]
		switch {
		case g.NIC == nil:
		case s.NIC.Kind == "":
			s.NIC, g.NIC = *g.NIC, nil
		case s.NIC.same(g.NIC):
			s.NIC.Names, s.NIC.Devs = append(s.NIC.Names, g.NIC.Names...), append(s.NIC.Devs, g.NIC.Devs...)
			g.NIC = nil
		}
		s.share(g.Below)
	}
}

// repeated merges consecutive equal groups into one with Times.
func repeated(groups []Group) []Group {
	var out []Group
	for _, g := range groups {
		g.Below = repeated(g.Below)
		if n := len(out) - 1; n >= 0 && shape(&out[n]) == shape(&g) && max(out[n].Times, 1) < maxGroups {
			out[n].Times = max(out[n].Times, 1) + 1
			out[n].Bus = append(out[n].Bus, g.Bus...)
			continue
		}
		out = append(out, g)
	}
	return out
}

// shape returns a key that is equal for equal groups, ignoring bus ids and Times. A group with its own kind
// of NIC is equal to no other: the key has the kind's address.
func shape(g *Group) string {
	c := *g
	c.Bus, c.Times = nil, 0
	return fmt.Sprintf("%+v", c)
}

// Cores converts sysfs' hexadecimal CPU mask to ranges, "0-3,36".
func Cores(mask string) string {
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
