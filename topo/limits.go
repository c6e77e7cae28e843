package topo

import (
	"fmt"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/internal/view"
)

// Problem and remedy of a GPU in the wrong place.
const (
	noGPUHere  = "NCCL does not look for GPUs here"
	whereToPut = "put it into a <pci> below a <cpu>"
)

// examine returns an error for a Spec that exceeds NCCL's limits, or whose GPUs NCCL does not see. It runs
// before any work that grows with the square of the number of nodes.
func examine(spec *Spec, p *Params) error {
	maxNodes := p.Rules.Topo.MaxNodes
	gpus, err := CountGPUs(spec, p)
	if err != nil {
		return err
	}
	all := spec.Root.All("gpu")
	seen := map[*Element]bool{}
	var cpus []*Element
	for _, c := range spec.Root.Children {
		if c.Name != "cpu" {
			continue
		}
		cpus = append(cpus, c)
		visible(c, seen)
	}
	if len(cpus) > maxNodes {
		return Errors{view.TooMany(p.Rules, cpus[maxNodes], "<cpu> elements", len(cpus), maxNodes)}
	}
	var errs Errors
	var at []Origin
	for _, g := range all {
		if seen[g] || len(errs) > decl.MaxShown {
			continue
		}
		e := &Error{Pos: g.Origin, Path: g.Name, Problem: noGPUHere, Hint: whereToPut}
		if len(seen) == 0 {
			e.Err = decl.ErrNoGPU
		}
		errs, at = append(errs, e), append(at, g.Origin)
	}
	if len(errs) > 0 {
		nameIn(spec, errs, at)
		return errs
	}
	if gpus > maxNodes {
		return Errors{view.TooMany(p.Rules, all[maxNodes], "GPUs", gpus, maxNodes)}
	}
	return nil
}

// visible gathers the GPUs below a <cpu> or <pci> that no element hides which
// NCCL skips. Whether it takes each of them is seen later (missingGPUs).
func visible(e *Element, seen map[*Element]bool) {
	for _, c := range e.Children {
		switch {
		case c.Name == "pci":
			visible(c, seen)
		case c.Name == "gpu" && e.Name == "pci":
			seen[c] = true
		}
	}
}

// nameIn writes the paths of the elements that errors are about, found by their
// places in the file: each has one.
func nameIn(spec *Spec, errs Errors, at []Origin) {
	about := map[Origin][]*Error{}
	for i, e := range errs {
		about[at[i]] = append(about[at[i]], e)
	}
	decl.RootPlace(spec.Root).Walk(func(p *decl.Place) {
		if p.Elem.Origin.Line == 0 {
			return
		}
		for _, e := range about[p.Elem.Origin] {
			e.Path = p.String()
		}
	})
}

// holdable complains where the finished draft has more nodes of a kind, or links
// of a node, than NCCL has room for.
func (d *draft) holdable() {
	maxNodes, maxLinks := d.rules.Topo.MaxNodes, d.rules.Topo.MaxLinks
	for k := range d.of {
		if n := len(d.of[k]); n > maxNodes {
			d.complain(d.of[k][maxNodes].from, "",
				fmt.Sprintf("%d nodes of kind %v: NCCL fails with more than %d%s", n, NodeKind(k),
					maxNodes, d.rules.Aside(rules.AtManyNodes)),
				"leave out what no GPU uses")
			continue
		}
		for _, v := range d.of[k] {
			if n := len(v.edges); n > maxLinks {
				d.complain(v.from, "",
					fmt.Sprintf("%d links: NCCL fails with more than %d of a node%s", n, maxLinks,
						d.rules.Aside(rules.AtManyLinks)), "put some devices below another <pci>")
			}
		}
	}
}
