package logcheck

import (
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
)

// unfuse restores the ports of virtual NICs, which NCCL removes from the system that it prints. For
// mlx5_0+mlx5_1, device 8, it prints
//
//	... + NET[100.0] - NET/0-8 (0/200c00000000001/1/100.000000)
//
// and the ports are two of 50 GB/s. NCCL numbers virtual NICs after all ports (graph/topo.cc:1261 of
// v2.28.9), so the ports have the numbers of no printed NET, in the order of the virtual NICs. If these
// numbers do not suffice, and in releases that do not print the virtual NICs of one card, the printed NET is
// a port.
func (p *printed) unfuse(r *rules.Topo) {
	hosts := map[string][]*decl.Element{}
	for _, n := range p.nets {
		hosts[p.host[n]] = append(hosts[p.host[n]], n)
	}
	into := map[*decl.Element][]*decl.Element{}
	for _, nets := range hosts { //lint:sorted hosts share nothing
		unfuseHost(nets, r, into)
	}
	p.root.Walk(func(e *decl.Element, _ []*decl.Element) {
		var all []*decl.Element
		for _, c := range e.Children {
			if ports := into[c]; ports != nil {
				all = append(all, ports...)
				continue
			}
			all = append(all, c)
		}
		e.Children = all
	})
}

// unfuseHost finds the ports of the NETs of one host.
func unfuseHost(nets []*decl.Element, r *rules.Topo, into map[*decl.Element][]*decl.Element) {
	var fused []*decl.Element
	ports, first := 0, 1<<16
	taken := map[int]bool{}
	for _, n := range nets {
		if k := strings.Count(attr(n, "name"), "+"); k > 0 {
			fused, ports, first = append(fused, n), ports+k+1, min(first, n.Int("dev", 0))
			continue
		}
		taken[n.Int("dev", 0)] = true
	}
	var free []int
	for dev := 0; len(fused) > 0 && dev < first && len(free) < ports; dev++ {
		if !taken[dev] {
			free = append(free, dev)
		}
	}
	slices.SortFunc(fused, func(a, b *decl.Element) int { return a.Int("dev", 0) - b.Int("dev", 0) })
	known := len(free) == ports && !r.FusedBelowCards
	for _, n := range fused {
		if !known {
			n.Set("name", "net"+attr(n, "dev"))
			continue
		}
		k := strings.Count(attr(n, "name"), "+") + 1
		into[n] = portsOf(n, free[:k])
		free = free[k:]
	}
}

// portsOf returns the ports of a virtual NIC, with their numbers.
func portsOf(n *decl.Element, devs []int) []*decl.Element {
	guid, err := strconv.ParseUint(strings.TrimPrefix(attr(n, "guid"), "0x"), 16, 64)
	var out []*decl.Element
	for i, name := range strings.Split(attr(n, "name"), "+") {
		port := n.Clone()
		port.Set("name", name)
		port.Set("dev", strconv.Itoa(devs[i]))
		port.Set("port", strconv.Itoa(i+1))
		port.Set("speed", strconv.Itoa(n.Int("speed", 0)/len(devs)))
		if err == nil {
			port.Set("guid", "0x"+strconv.FormatUint(guid+uint64(i), 16))
		}
		out = append(out, port)
	}
	return out
}

func attr(e *decl.Element, name string) string {
	text, _ := e.Get(name)
	return text
}
