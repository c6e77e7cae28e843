package topo

import "strings"

// UnmatchedHCAs lists the entries of a NCCL_IB_HCA list ("^mlx5_1", "=mlx5_2:1")
// that match no InfiniBand or RoCE net of the Specs, and the names of those that
// are there. A list without such entries, or Specs without such nets, give none.
func UnmatchedHCAs(specs []*Spec, list string) (entries, nets []string) {
	var all []*Element
	for _, s := range specs {
		if s != nil && s.Root != nil {
			all = collect(s.Root, "net", all)
		}
	}
	ib := func(e *Element, name string) bool { return isIB(e, name) }
	return unmatched(all, list, ib)
}

// UnmatchedInterfaces lists the entries of a NCCL_SOCKET_IFNAME list that match
// no interface of sockets among the Systems' nets, and the names of those that
// are there.
func UnmatchedInterfaces(systems []*System, list string) (entries, nets []string) {
	var all []*Element
	for _, s := range systems {
		for _, n := range s.Of(NET) {
			if net := s.Nodes[n].Net; net.Sockets {
				e := &Element{Name: "net"}
				e.Set("name", net.Name)
				all = append(all, e)
			}
		}
	}
	return unmatched(all, list, func(*Element, string) bool { return true })
}

// unmatched compares a list of interfaces with the nets that it is about.
func unmatched(all []*Element, list string, about func(e *Element, name string) bool) (entries, names []string) {
	list = strings.TrimPrefix(list, "^")
	exact := strings.HasPrefix(list, "=")
	ifs := parseInterfaces(strings.TrimPrefix(list, "="))
	matched := make([]bool, len(ifs))
	seen := map[string]bool{}
	for _, e := range all {
		name, _ := e.Get("name")
		if !about(e, name) {
			continue
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
		for i := range ifs {
			matched[i] = matched[i] || matchInterface(name, e.Int("port", -1), ifs[i:i+1], exact)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	for i, f := range ifs {
		if !matched[i] {
			entries = append(entries, f.prefix)
		}
	}
	return entries, names
}
