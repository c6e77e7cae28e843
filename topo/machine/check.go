package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// check returns the first problem of a Spec, nil if it is valid.
func (s *Spec) check() *problem {
	for _, f := range []func() *problem{s.checkKinds, s.checkNUMA, s.checkGroups, s.checkNICs,
		s.checkNVLink} {
		if p := f(); p != nil {
			return p
		}
	}
	return nil
}

// known returns a problem unless name is a key of the table.
func known[T any](path, name string, table map[string]T) *problem {
	if _, ok := table[name]; ok {
		return nil
	}
	return wrong(path, "write one of "+strings.Join(slices.Sorted(maps.Keys(table)), ", "), "%q is not known",
		name)
}

func (s *Spec) checkKinds() *problem {
	if p := known("cpu", s.CPU, cpuKinds); p != nil {
		return p
	}
	if p := known("gpu.kind", s.GPU.Kind, gpuKinds); p != nil {
		return p
	}
	if p := known("network.kind", s.Network.Kind, networkKinds); p != nil {
		return p
	}
	if _, _, ok := link(s.GPU.PCIe); s.GPU.PCIe != "" && s.GPU.PCIe != unknownLink && !ok {
		return wrong("gpu.pcie", "write generation and lanes, 5x16, or unknown", "%q is no PCIe link",
			s.GPU.PCIe)
	}
	switch {
	case s.Domain < 0 || s.Domain > 1152:
		return wrong("domain", "write 0 to 1152 hosts", "%d hosts in one NVLink domain", s.Domain)
	case s.Network.Rails < 0 || s.Network.Radix < 0 || s.Network.Oversub < 0:
		return wrong("network", "leave out what is not known", "a negative number")
	}
	return nil
}

func (s *Spec) checkNUMA() *problem {
	if len(s.NUMA) == 0 || len(s.NUMA) > 64 {
		return wrong("numa", "list 1 to 64 nodes, such as {\"id\": 0, \"cores\": \"0-47\"}", "%d NUMA nodes",
			len(s.NUMA))
	}
	seen := map[int]bool{}
	for i, n := range s.NUMA {
		path := fmt.Sprintf("numa[%d]", i)
		if seen[n.ID] || n.ID < -1 {
			return wrong(path+".id", "give every node its own number, from 0; -1 where the host has none",
				"NUMA node %d", n.ID)
		}
		seen[n.ID] = true
		if _, ok := affinity(n.Cores); !ok {
			return wrong(path+".cores", "write ranges below 4096, such as 0-47,96-143",
				"%q is no list of cores", n.Cores)
		}
	}
	return nil
}

func (s *Spec) checkGroups() *problem {
	gpus, groups := 0, 0
	for i := range s.Groups {
		g := &s.Groups[i]
		path := fmt.Sprintf("groups[%d]", i)
		if !slices.ContainsFunc(s.NUMA, func(n NUMA) bool { return n.ID == g.NUMA }) {
			return wrong(path+".numa", "write the id of an entry of numa", "there is no NUMA node %d", g.NUMA)
		}
		if g.Bridge < 0 || g.Bridge > 255 {
			return wrong(path+".bridge", "number the host bridges of a NUMA node from 0 to 255",
				"host bridge %d", g.Bridge)
		}
		if p := s.checkGroup(g, path, 0); p != nil {
			return p
		}
		if groups += g.size(func(*Group) int { return 1 }); groups > maxGroups {
			return wrong("groups", fmt.Sprintf("a host has at most 576 GPUs in %d groups", maxGroups),
				"more groups")
		}
		if want := g.size(s.functions); len(g.Bus) > 0 && len(g.Bus) != want {
			return wrong(path+".bus", fmt.Sprintf("list %d, or none", want),
				"%d bus ids for %d PCI functions", len(g.Bus), want)
		}
		gpus += g.size(func(g *Group) int { return g.GPUs })
	}
	switch {
	case gpus == 0:
		return wrong("groups", "give a group GPUs", "no GPU")
	case gpus > 576:
		return wrong("groups", fmt.Sprintf("a host has at most 576 GPUs in %d groups", maxGroups),
			"%d GPUs in %d groups", gpus, groups)
	case len(s.GPU.Devs) > 0 && !numbers(s.GPU.Devs, gpus):
		return wrong("gpu.devs", fmt.Sprintf("list the numbers 0 to %d, each once", gpus-1),
			"these numbers for %d GPUs", gpus)
	}
	return s.checkBuses()
}

// checkGroup checks a group at a depth below the outermost one, and the groups below it.
func (s *Spec) checkGroup(g *Group, path string, depth int) *problem {
	if g.GPUs < 0 || g.NICs < 0 || g.Times < 0 || g.GPUs > maxEach || g.NICs > maxEach ||
		max(g.Times, 1) > maxGroups || len(g.Switches) > 8 {
		return wrong(path, fmt.Sprintf("write at most %d GPUs and NICs, 8 switches, %d times", maxEach,
			maxGroups), "a group of that size")
	}
	if depth > 0 && (g.NUMA != 0 || g.Bridge != 0 || len(g.Bus) > 0) {
		return wrong(path, "write numa, bridge and bus of the outermost group",
			"a place of its own of a group below another")
	}
	if len(g.Below) > 0 && depth == maxBelow {
		return wrong(path+".below", "list chains of switches as switches", "groups more than %d deep",
			maxBelow)
	}
	for k, kind := range g.Switches {
		if p := known(fmt.Sprintf("%s.switches[%d]", path, k), kind, switchKinds); p != nil {
			return p
		}
	}
	if g.Apart && len(g.Switches) == 0 {
		return wrong(path+".apart", "name the switch above the NICs in switches",
			"no switch to be apart below")
	}
	for i := range g.Below {
		if p := s.checkGroup(&g.Below[i], fmt.Sprintf("%s.below[%d]", path, i), depth+1); p != nil {
			return p
		}
	}
	return nil
}

// size sums a quantity (of) over a group, the groups below it and all their copies. The sum is capped at
// 2^40.
func (g *Group) size(of func(*Group) int) int {
	g = g.parts()
	n := of(g)
	for i := range g.Below {
		n += g.Below[i].size(of)
	}
	return min(n*max(g.Times, 1), 1<<40)
}

// numbers reports whether a list has 0 to n-1, each once.
func numbers(list []int, n int) bool {
	sorted := slices.Sorted(slices.Values(list))
	for i, v := range sorted {
		if v != i {
			return false
		}
	}
	return len(sorted) == n
}

// functions returns the number of PCI functions in one copy of a group (parts has resolved Apart), without
// those below it.
func (s *Spec) functions(g *Group) int {
	n := len(g.Switches) + g.GPUs
	if !s.nic(g).Virtual {
		n += g.NICs
	}
	return n
}

// checkBuses wants bus ids that are well-formed and used once.
func (s *Spec) checkBuses() *problem {
	seen := map[string]string{}
	for i := range s.Groups {
		for k, id := range s.Groups[i].Bus {
			path := fmt.Sprintf("groups[%d].bus[%d]", i, k)
			var dom, bus, dev, fn uint16
			if n, err := fmt.Sscanf(id, "%04x:%02x:%02x.%1x", &dom, &bus, &dev, &fn); n != 4 || err != nil ||
				len(id) != 12 {
				return wrong(path, "write domain:bus:device.function, 0000:1b:00.0", "%q is no bus id", id)
			}
			if at := seen[id]; at != "" {
				return wrong(path, "a PCI function has its own bus id", "%s is used at %s too", id, at)
			}
			seen[id] = path
		}
	}
	return nil
}

func (s *Spec) checkNICs() *problem {
	ports, used := map[*NIC]int{}, map[int]bool{}
	paths := map[*NIC]string{&s.NIC: "nic"}
	var name func(list []Group, path string)
	name = func(list []Group, path string) {
		for i := range list {
			at := fmt.Sprintf("%s[%d]", path, i)
			if n := list[i].NIC; n != nil && paths[n] == "" {
				paths[n] = at + ".nic"
			}
			name(list[i].Below, at+".below")
		}
	}
	name(s.Groups, "groups")
	var kinds []*NIC
	s.each(func(g *Group) {
		n := s.nic(g)
		if g.NICs > 0 && !slices.Contains(kinds, n) {
			kinds = append(kinds, n)
		}
		ports[n] += g.NICs * max(n.Ports, 1)
	})
	for _, n := range kinds {
		if p := n.check(paths[n], ports[n]); p != nil {
			return p
		}
	}
	var twice *problem
	clear(ports)
	s.each(func(g *Group) {
		n := s.nic(g)
		for range g.NICs * max(n.Ports, 1) {
			dev := n.number(ports[n], used)
			if used[dev] && twice == nil {
				twice = wrong(paths[n]+".first", "leave it out, or number ports so that each has its own",
					"port %d is numbered twice", dev)
			}
			used[dev] = true
			ports[n]++
		}
	})
	return twice
}

// number returns the device number of the i-th port of this kind of NIC.
func (n *NIC) number(i int, used map[int]bool) int {
	switch {
	case len(n.Devs) > 0:
		return n.Devs[i]
	case n.First > 0:
		return n.First + i
	}
	dev := 0
	for used[dev] {
		dev++
	}
	return dev
}

func (n *NIC) check(path string, ports int) *problem {
	if p := known(path+".kind", n.Kind, nicKinds); p != nil {
		return p
	}
	if _, _, ok := link(n.PCIe); n.PCIe != "" && n.PCIe != unknownLink && !ok {
		return wrong(path+".pcie", "write generation and lanes, 5x16, or unknown", "%q is no PCIe link",
			n.PCIe)
	}
	switch {
	case n.Ports < 0 || n.Ports > 4 && !n.Virtual || n.Ports > maxEach:
		return wrong(path+".ports", "write 1 to 4, to 64 of what has no PCI function", "%d ports", n.Ports)
	case n.First < 0 || n.First > 1<<16:
		return wrong(path+".first", "write the number of the first port, 0 to 65536", "port %d", n.First)
	case len(n.Names) > 0 && len(n.Names) != ports:
		return wrong(path+".names", "name every port", "%d names for %d ports", len(n.Names), ports)
	case len(n.Devs) > 0 && (n.First > 0 || len(n.Devs) != ports || slices.Min(n.Devs) < 0 ||
		slices.Max(n.Devs) > 1<<16):
		return wrong(path+".devs", "number every port from 0 to 65536, without first",
			"%d numbers for %d ports", len(n.Devs), ports)
	case n.Speed < 0 || n.Speed > 10_000_000:
		return wrong(path+".speed", "write Mb/s of a port, 400000", "%d Mb/s", n.Speed)
	case n.Latency < 0 || n.Latency > 1e6:
		return wrong(path+".latency", "write us as the net plugin reports them", "%v us", n.Latency)
	case n.Name != "" && strings.Count(n.Name, "%d") != 1:
		return wrong(path+".name", "write mlx5_%d", "%q has no place for the number", n.Name)
	}
	return nil
}

func (s *Spec) checkNVLink() *problem {
	l := &s.NVLink
	kinds := 0
	for _, has := range []bool{l.Switch, l.Mesh > 0, len(l.Pairs) > 0} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return wrong("nvlink", "write one of switch, mesh and pairs", "NVLinks of two kinds")
	case l.Mesh < 0 || l.Mesh > 64 || l.Links < 0 || l.Links > 64:
		return wrong("nvlink", "write 1 to 64", "so many links")
	case len(l.Counts) > 0 && !l.Switch || len(l.Counts) > 32:
		return wrong("nvlink.counts",
			"they are the links to each of at most 32 visible NVSwitches, with switch: true", "counts")
	case len(l.Each) > 0 && (!l.Switch || l.Links > 0 || len(l.Counts) > 0 || len(l.Each) != s.GPUs() ||
		slices.Min(l.Each) < 0 || slices.Max(l.Each) > 64):
		return wrong("nvlink.each",
			fmt.Sprintf("they are the links of each of %d GPUs, 0 to 64, with switch: true and no links "+
				"and counts", s.GPUs()), "%d numbers", len(l.Each))
	case len(l.Bus) > 0 && len(l.Bus) != len(l.Counts):
		return wrong("nvlink.bus", "one bus id for each of counts", "%d bus ids for %d NVSwitches",
			len(l.Bus), len(l.Counts))
	}
	gpus := s.GPUs()
	for i, p := range l.Pairs {
		if p[0] < 0 || p[1] < 0 || p[0] >= gpus || p[1] >= gpus || p[0] == p[1] || p[2] < 1 || p[2] > 64 {
			return wrong(fmt.Sprintf("nvlink.pairs[%d]", i), "write two GPUs and their links, [0, 1, 4]",
				"%v among %d GPUs", p, gpus)
		}
	}
	return nil
}

// GPUs returns the number of GPUs of a host.
func (s *Spec) GPUs() int {
	n := 0
	for i := range s.Groups {
		n += s.Groups[i].size(func(g *Group) int { return g.GPUs })
	}
	return n
}

// Ports returns the number of NIC ports of a host.
func (s *Spec) Ports() int {
	n := 0
	for i := range s.Groups {
		n += s.Groups[i].size(func(g *Group) int { return g.NICs * max(s.nic(g).Ports, 1) })
	}
	return n
}
