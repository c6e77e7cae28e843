package decl

import (
	"cmp"
	"fmt"
	"slices"
)

// GPUs lists a host's GPUs in the order of local ranks: by device number where every
// one has it, else by bus id.
func GPUs(root *Element) []*Element {
	gpus := root.All("gpu")
	byDev := true
	for _, g := range gpus {
		_, ok := g.Get("dev")
		byDev = byDev && ok
	}
	key := func(g *Element) int64 {
		if byDev {
			return int64(g.Int("dev", 0))
		}
		return g.BusID()
	}
	slices.SortStableFunc(gpus, func(a, b *Element) int { return cmp.Compare(key(a), key(b)) })
	return gpus
}

// Subset is a Spec with some of a host's GPUs alone, by local rank: what the members of
// a communicator over these GPUs see (topo.cc:1394 joins the trees of its ranks). The
// Spec must be of one host.
func Subset(spec *Spec, local []int) (*Spec, error) {
	if spec == nil || spec.Root == nil {
		return nil, NoGPU(spec)
	}
	if n := len(SplitHosts(spec.Root)); n > 1 {
		return nil, fmt.Errorf("%s holds a domain of %d hosts: GPUs are chosen of one host", spec.Name, n)
	}
	root := spec.Root.Clone()
	gpus := GPUs(root.SetParents())
	for _, i := range local {
		if i < 0 || i >= len(gpus) {
			return nil, fmt.Errorf("GPU %d of %s, which has GPUs 0 to %d", i, spec.Name, len(gpus)-1)
		}
	}
	for i, g := range gpus {
		if !slices.Contains(local, i) {
			drop(root, g)
		}
	}
	return &Spec{Name: fmt.Sprintf("%s%v", spec.Name, local), Root: root, Warnings: spec.Warnings}, nil
}

// drop takes an element out of a tree.
func drop(root, e *Element) {
	root.Walk(func(x *Element, _ []*Element) {
		if i := slices.Index(x.Children, e); i >= 0 {
			x.Children = slices.Delete(x.Children, i, i+1)
		}
	})
}
