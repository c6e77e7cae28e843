package show

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/topo"
)

// Change is one difference between two topologies.
type Change struct {
	Kind string      `json:"kind"` // "added", "removed", "changed", "moved"
	What string      `json:"what"` // "gpu 0000:1b:00.0", "net mlx5_0"
	Attr string      `json:"attr,omitempty"`
	From string      `json:"from,omitempty"`
	To   string      `json:"to,omitempty"`
	Pos  topo.Origin `json:"-"`
	At   string      `json:"at"` // place in the file that has it, the second for changes
}

// String formats a change on one line.
func (c Change) String() string {
	switch c.Kind {
	case "added":
		return fmt.Sprintf("+ %s  (%s)", c.What, c.At)
	case "removed":
		return fmt.Sprintf("- %s  (%s)", c.What, c.At)
	case "moved":
		return fmt.Sprintf("> %s: from %s to %s  (%s)", c.What, c.From, c.To, c.At)
	}
	return fmt.Sprintf("~ %s: %s %s -> %s  (%s)", c.What, c.Attr, c.From, c.To, c.At)
}

// part is an element under the name by which it is found again.
type part struct {
	e  *topo.Element
	up string // key of the enclosing element
}

// Diff compares the declarations of two Specs. It matches devices by bus id, nets by name and CPUs by NUMA
// number, at any position. Order, and attributes that NCCL itself rewrites (rank, host_hash, keep), are no
// differences.
func Diff(a, b *topo.Spec) []Change {
	pa, names := parts(a, nil)
	pb, names := parts(b, names)
	var out []Change
	for _, n := range names {
		x, y := pa[n], pb[n]
		switch {
		case x.e == nil:
			out = append(out, change("added", n, y.e))
		case y.e == nil:
			out = append(out, change("removed", n, x.e))
		default:
			if x.up != y.up {
				c := change("moved", n, y.e)
				c.From, c.To = x.up, y.up
				out = append(out, c)
			}
			out = append(out, attrChanges(n, x.e, y.e)...)
		}
	}
	return out
}

func change(kind, what string, e *topo.Element) Change {
	return Change{Kind: kind, What: what, Pos: e.Origin, At: e.Origin.String()}
}

var passing = map[string]bool{"rank": true, "host_hash": true, "keep": true}

func attrChanges(name string, a, b *topo.Element) []Change {
	var out []Change
	add := func(attr, from, to string) {
		if from == to || passing[attr] {
			return
		}
		c := change("changed", name, b)
		c.Attr, c.From, c.To = attr, from, to
		c.At = b.AttrOrigin(attr).String()
		out = append(out, c)
	}
	for _, x := range a.Attrs {
		to, ok := b.Get(x.Name)
		if !ok {
			to = "nothing"
		}
		add(x.Name, x.Value, to)
	}
	for _, y := range b.Attrs {
		if _, ok := a.Get(y.Name); !ok {
			add(y.Name, "nothing", y.Value)
		}
	}
	return out
}

// parts names every element of a Spec; names collects them in order of first
// appearance.
func parts(s *topo.Spec, names []string) (map[string]part, []string) {
	out := map[string]part{}
	known := map[string]bool{}
	for _, n := range names {
		known[n] = true
	}
	hosts := map[string]int{}
	again := map[string]int{} // how often a name was taken
	s.Root.Walk(func(e *topo.Element, above []*topo.Element) {
		host, up := "", ""
		for _, a := range append(above[:len(above):len(above)], e) {
			if a.Name == "cpu" {
				h, _ := a.Get("host_hash")
				if _, ok := hosts[h]; !ok {
					hosts[h] = len(hosts)
				}
				if hosts[h] > 0 {
					host = fmt.Sprintf("host %d ", hosts[h])
				}
			}
			if a != e {
				up = keyOf(a, up)
			}
		}
		name := host + keyOf(e, up)
		for base := name; out[name].e != nil; {
			again[base]++
			name = fmt.Sprintf("%s #%d", base, 1+again[base])
		}
		out[name] = part{e, up}
		if !known[name] {
			known[name] = true
			names = append(names, name)
		}
	})
	return out, names
}

// keyOf names an element by its identifying attribute (bus id, name, NUMA number, target); an element without
// one is named by its parent's key.
func keyOf(e *topo.Element, up string) string {
	id := map[string]string{"cpu": "numaid", "pci": "busid", "net": "name", "nvlink": "target",
		"pcilink": "target"}[e.Name]
	v, _ := e.Get(id)
	switch e.Name {
	case "system":
		return "system"
	case "cpu", "pci", "net":
		return e.Name + " " + v
	}
	return strings.TrimSpace(e.Name+" "+v) + " of " + up
}
