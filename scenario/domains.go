package scenario

import (
	"fmt"

	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
)

// domains joins nodes to NVLink domains: every K of them, over all entries, where the Spec says
// so, else those of each built-in machine that has such domains. The last domain has the
// hosts that are left.
func (l *loader) domains(members []fabric.Member) ([]fabric.Member, error) {
	k := l.spec.Machine.NVLinkDomain
	if k > 1 {
		if n := l.spec.Machine.Nodes; len(l.sources) == 1 && (len(n) == 0 || n[0].Count == 0) {
			members[0].Count = k // one domain where the Spec names no number of nodes
		}
		return joined(members, k)
	}
	var out []fabric.Member
	for i := 0; i < len(members); {
		from := i
		for i++; i < len(members) && l.sources[i] == l.sources[from]; { // one entry, taken apart by absences
			i++
		}
		part, size := members[from:i], l.sources[from].domain
		if k == 1 || size < 2 || len(part) == 1 && part[0].Count == 1 {
			for _, m := range part {
				m.Fabric = k == 1
				out = append(out, m)
			}
			continue
		}
		domains, err := joined(part, size)
		if err != nil {
			return nil, err
		}
		out = append(out, domains...)
	}
	return out, nil
}

// joined makes domains of k consecutive hosts each, of equal or unequal ones; the last has what is left.
func joined(members []fabric.Member, k int) ([]fabric.Member, error) {
	var out []fabric.Member
	specs := map[string]*decl.Spec{} // equal domains share one, by what they are made of
	var groups []decl.Group
	hosts := 0
	add := func(count int) error {
		key := fmt.Sprint(groups)
		spec := specs[key]
		if spec == nil {
			var err error
			if spec, err = decl.Join(groups...); err != nil {
				return bad(err)
			}
			specs[key] = spec
		}
		out = append(out, fabric.Member{Spec: spec, Count: count, Fabric: true})
		groups, hosts = nil, 0
		return nil
	}
	for _, m := range members {
		for left := m.Count; left > 0; {
			n, times := min(left, k-hosts), 1
			if hosts == 0 && left >= k {
				times = left / k
			}
			groups, hosts = append(groups, decl.Group{Spec: m.Spec, Count: n}), hosts+n
			if left -= n * times; hosts == k {
				if err := add(times); err != nil {
					return nil, err
				}
			}
		}
	}
	if hosts > 0 {
		if err := add(1); err != nil {
			return nil, err
		}
	}
	return out, nil
}
