package topo

import "fmt"

// Hosts takes a Spec of several hosts apart, one Spec for each host_hash in
// order of first appearance; a Spec of one host is returned as it is.
func Hosts(spec *Spec) []*Spec {
	if spec == nil || spec.Root == nil {
		return []*Spec{spec}
	}
	roots := splitHosts(spec.Root)
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

// ownCard gives the NICs of a copied host numbers of their own: NCCL takes nets
// of equal guid and port for one card, whose bandwidth their channels share.
func ownCard(e *Element, host int) {
	if n, ok := e.Hex("guid"); ok && e.Name == "net" && host > 0 && n != 0 {
		e.Set("guid", fmt.Sprintf("%#x", n+uint64(host)<<16))
	}
}

// Join makes one NVLink domain of k equal hosts: the Spec's CPUs k times over,
// each time with another host_hash, as NCCL's dump of a multi-node domain has
// them. The Spec must be of one host.
func Join(spec *Spec, k int) (*Spec, error) {
	if k == 1 {
		return spec, nil
	}
	if k < 1 {
		return nil, fmt.Errorf("an NVLink domain of %d hosts: it has at least 1", k)
	}
	if spec == nil || spec.Root == nil {
		return nil, noGPU(spec)
	}
	if n := len(splitHosts(spec.Root)); n > 1 {
		return nil, fmt.Errorf("%s holds a domain of %d hosts already; give the file of one host", spec.Name, n)
	}
	root := *spec.Root
	root.Children = nil
	for i := range k {
		for _, c := range spec.Root.Children {
			n := c.Clone()
			if n.Name == "cpu" {
				n.Set("host_hash", fmt.Sprintf("0x%x", i+1))
			}
			n.Walk(func(e *Element, _ []*Element) { ownCard(e, i) })
			root.Children = append(root.Children, n)
		}
	}
	return &Spec{Name: fmt.Sprintf("%s x %d", spec.Name, k), Root: &root, Warnings: spec.Warnings}, nil
}
