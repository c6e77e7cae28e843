package decl

import (
	"fmt"
	"slices"
	"strings"
)

// Hosts splits a Spec of several hosts into one Spec per host_hash, in order of first appearance. A Spec of
// one host is returned unchanged.
func Hosts(spec *Spec) []*Spec {
	if spec == nil || spec.Root == nil {
		return []*Spec{spec}
	}
	roots := SplitHosts(spec.Root)
	if len(roots) < 2 {
		return []*Spec{spec}
	}
	out := make([]*Spec, len(roots))
	for i, r := range roots {
		out[i] = &Spec{Name: fmt.Sprintf("%s#%d", spec.Name, i), Root: r}
	}
	out[0].Warnings = spec.Warnings
	return out
}

// ownCard changes the guid of a copied host's NICs, so that each copy has its own: NCCL treats nets of equal
// guid and port as one card and divides its bandwidth among their channels.
func ownCard(e *Element, host int) {
	if n, ok := e.Hex("guid"); ok && e.Name == "net" && host > 0 && n != 0 {
		e.Set("guid", fmt.Sprintf("%#x", n+uint64(host)<<16))
	}
}

// Group is Count consecutive hosts with equal topologies.
type Group struct {
	Spec  *Spec
	Count int
}

// Join combines hosts, equal or not, into one NVLink domain: it concatenates the CPUs of all hosts and gives
// each host its own host_hash, as NCCL's dump of a multi-node domain has them. Each Spec must describe one
// host. A domain of one host is returned as its Spec.
func Join(groups ...Group) (*Spec, error) {
	out, names, hosts := &Spec{}, []string(nil), 0
	var only *Spec
	for _, g := range groups {
		if g.Count < 1 {
			return nil, fmt.Errorf("an NVLink domain of %d hosts: it has at least 1", g.Count)
		}
		if g.Spec == nil || g.Spec.Root == nil {
			return nil, NoGPU(g.Spec)
		}
		if n := len(SplitHosts(g.Spec.Root)); n > 1 {
			return nil, fmt.Errorf("%s holds a domain of %d hosts already; give the file of one host",
				g.Spec.Name, n)
		}
		if only = g.Spec; out.Root == nil {
			root := *g.Spec.Root
			root.Children, out.Root = nil, &root
		}
		for range g.Count {
			for _, c := range g.Spec.Root.Children {
				out.Root.Children = append(out.Root.Children, ofHost(c, hosts))
			}
			hosts++
		}
		out.Warnings = append(out.Warnings, g.Spec.Warnings...)
		names = append(names, fmt.Sprintf("%s x %d", g.Spec.Name, g.Count))
	}
	if hosts < 2 {
		return only, nil
	}
	out.Name = strings.Join(names, " + ")
	return out, nil
}

// ofHost copies an element for a host of a domain.
func ofHost(c *Element, host int) *Element {
	n := c.Clone()
	if n.Name == "cpu" {
		n.Set("host_hash", fmt.Sprintf("0x%x", host+1))
	}
	n.Walk(func(e *Element, _ []*Element) { ownCard(e, host) })
	return n
}

// SplitHosts copies a tree once per host_hash, in order of first appearance, each copy with that host's CPUs
// (topo.cc:557).
func SplitHosts(root *Element) []*Element {
	var hashes []uint64
	var hosts []*Element
	for _, c := range root.Children {
		if c.Name != "cpu" {
			continue
		}
		h, _ := c.Hex("host_hash")
		i := 0
		for i < len(hashes) && hashes[i] != h {
			i++
		}
		if i == len(hashes) {
			hashes = append(hashes, h)
			top := *root
			top.Children = nil
			top.Attrs = append([]Attr(nil), root.Attrs...)
			hosts = append(hosts, &top)
		}
		hosts[i].Children = append(hosts[i].Children, dropMisplaced(c.Clone()))
	}
	for _, h := range hosts {
		h.SetParents()
	}
	return hosts
}

// places maps an element to the elements inside which NCCL reads it. Elsewhere NCCL skips it, like every
// unknown element (xml.cc:326-377).
var places = map[string][]string{"pci": {"cpu", "pci"}, "gpu": {"pci"}, "nvlink": {"gpu"}, "xgmi": {"gpu"},
	"c2c":     {"gpu"},
	"pcilink": {"pci"}, "nic": {"pci", "cpu"}, "net": {"nic"}}

// dropMisplaced removes elements at places where NCCL does not read them.
func dropMisplaced(e *Element) *Element {
	e.Children = slices.DeleteFunc(e.Children, func(c *Element) bool {
		return !slices.Contains(places[c.Name], e.Name)
	})
	for _, c := range e.Children {
		dropMisplaced(c)
	}
	return e
}
