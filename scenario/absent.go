package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/fabric"
)

// absences are the devices without which a job was restarted.
type absences struct {
	faults  []*fault
	removed []fabric.End // whole NICs, as the cluster with all of them counts
}

// absencesOf are the absences among faults; nil where there are none. Faults that cannot be
// read are left to addFault.
func absencesOf(faults []string) *absences {
	var a absences
	for _, text := range faults {
		if f, err := parseFault(text); err == nil && f.Absent {
			a.faults = append(a.faults, f)
		}
	}
	if len(a.faults) == 0 {
		return nil
	}
	return &a
}

// remove takes the devices out of the members of a cluster, cl with all of them. It
// splits a member where one of its nodes alone loses something; parents says of each
// member that it returns which it was. The network is read for leaves, nil without one.
func (a *absences) remove(members []fabric.Member, cl *fabric.Cluster,
	net *fabric.Network) (out []fabric.Member, parents []int, err error) {
	if a.faults, err = a.leaves(cl, net); err != nil {
		return nil, nil, err
	}
	found := make([]bool, len(a.faults))
	known := make([]map[string]bool, len(a.faults))
	host := 0
	for i, m := range members {
		from, last := 0, "-"
		for range m.Count {
			key := a.meant(host)
			if key == last { // as the node before it
				out[len(out)-1].Count++
				for _, g := range a.removed[from:] {
					if g.Host == host-1 {
						a.removed = append(a.removed, fabric.End{Host: host, Net: g.Net})
					}
				}
				host++
				continue
			}
			from, last = len(a.removed), key
			own := m
			own.Count = 1
			if own.Spec, err = a.without(m.Spec, cl, host, found, known); err != nil {
				return nil, nil, err
			}
			out, parents = append(out, own), append(parents, i)
			host++
		}
	}
	for j, f := range a.faults {
		if !found[j] {
			return nil, nil, fmt.Errorf("%s=%s: there is none such; %s", f.Kind, f.where(),
				list(sorted(known[j])))
		}
	}
	return out, parents, nil
}

// meant lists the faults that may be of a node.
func (a *absences) meant(host int) string {
	key := ""
	for j, f := range a.faults {
		if f.Node < 0 || f.Node == host {
			key += strconv.Itoa(j) + ","
		}
	}
	return key
}

// without is a node without what faults take from it.
func (a *absences) without(of *decl.Spec, cl *fabric.Cluster, host int, found []bool,
	known []map[string]bool) (*decl.Spec, error) {
	spec := of
	for j, f := range a.faults {
		if f.Node >= 0 && f.Node != host {
			continue
		}
		if spec == of {
			spec = clone(of)
		}
		n, err := a.take(f, spec, cl, host)
		if err != nil {
			return nil, err
		}
		if found[j] = found[j] || n > 0; known[j] == nil {
			known[j] = names(of, f.Kind)
		}
	}
	return spec, nil
}

// where is the place as a user writes it.
func (f *fault) where() string {
	if f.Node >= 0 {
		return fmt.Sprintf("node%d/%s", f.Node, f.Name)
	}
	return f.Name
}

// clone copies a Spec whose tree is about to change.
func clone(s *decl.Spec) *decl.Spec {
	c := *s
	c.Root = s.Root.Clone().SetParents()
	return &c
}

// take removes what a fault names from one node and counts it.
func (a *absences) take(f *fault, spec *decl.Spec, cl *fabric.Cluster, host int) (int, error) {
	switch f.Kind {
	case "gpu":
		return drop(spec.Root, "gpu", func(e *decl.Element) bool {
			dev, _ := e.Get("dev")
			return f.Name == dev || f.Name == "GPU"+dev || busOf(e) == strings.ToLower(f.Name)
		}), nil
	case "nvswitch":
		return switches(spec.Root, f.Name)
	}
	return a.nics(f, spec, cl, host), nil
}

// nics removes NICs by name, or by number among those that NCCL sees.
func (a *absences) nics(f *fault, spec *decl.Spec, cl *fabric.Cluster, host int) int {
	name, fused := f.Name, []string(nil)
	all := nets(cl.Host(host))
	for i, n := range all {
		if n.Name == f.Name || strconv.Itoa(i) == f.Name {
			name, fused = n.Name, n.Fused
			a.removed = append(a.removed, fabric.End{Host: host, Net: i})
		}
	}
	return drop(spec.Root, "net", func(e *decl.Element) bool {
		own, _ := e.Get("name")
		return own == name || slices.Contains(fused, own)
	})
}

// drop removes elements of a name and counts them.
func drop(root *decl.Element, name string, is func(*decl.Element) bool) int {
	n := 0
	var walk func(e *decl.Element)
	walk = func(e *decl.Element) {
		e.Children = slices.DeleteFunc(e.Children, func(c *decl.Element) bool {
			if c.Name == name && is(c) {
				n++
				return true
			}
			walk(c)
			return false
		})
	}
	walk(root)
	return n
}

// busOf is the bus id of the PCI function that an element is on.
func busOf(e *decl.Element) string {
	if p := e.Parent(); p != nil {
		id, _ := p.Get("busid")
		return strings.ToLower(id)
	}
	return ""
}

// unseen is the target of NVLinks to NVSwitches that a host does not see.
const unseen = "fffffff:ff:ff.0"

// targets are the NVSwitches that NVLinks lead to, in order of their bus ids.
func targets(root *decl.Element) []string {
	var out []string
	for _, l := range root.All("nvlink") {
		t, _ := l.Get("target")
		if class, _ := l.Get("tclass"); strings.HasPrefix(class, "0x0680") && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return out
}

// switches removes the NVLinks to one NVSwitch, by bus id or number.
func switches(root *decl.Element, name string) (int, error) {
	all := targets(root)
	if slices.Contains(all, unseen) {
		return 0, fmt.Errorf("nvswitch=%s: this machine does not see its NVSwitches one by one; take a "+
			"topology that lists them", name)
	}
	for i, t := range all {
		if name == strconv.Itoa(i) || strings.EqualFold(name, t) {
			return drop(root, "nvlink", func(e *decl.Element) bool {
				own, _ := e.Get("target")
				return own == t
			}), nil
		}
	}
	return 0, nil
}

// names are the devices of a kind that a node has.
func names(spec *decl.Spec, kind string) map[string]bool {
	out := map[string]bool{}
	switch kind {
	case "nvswitch":
		for _, t := range targets(spec.Root) {
			out[t] = true
		}
	case "gpu":
		for _, e := range spec.Root.All("gpu") {
			dev, _ := e.Get("dev")
			out[dev] = true
		}
	default:
		for _, e := range spec.Root.All("net") {
			name, _ := e.Get("name")
			out[name] = true
		}
	}
	return out
}

// leaves turns a leaf that is absent into the NICs whose cables all lead to it, and
// takes the switch out of the network.
func (a *absences) leaves(cl *fabric.Cluster, net *fabric.Network) ([]*fault, error) {
	var out []*fault
	for _, f := range a.faults {
		if f.Kind != "leaf" {
			out = append(out, f)
			continue
		}
		if net == nil {
			return nil, fmt.Errorf("leaf=%s: without a fabric there are no switches between the nodes; "+
				"rail=3:absent takes a rail", f.Name)
		}
		if !slices.ContainsFunc(net.Switches, func(s fabric.Switch) bool { return s.Name == f.Name }) {
			var known []string
			for _, s := range net.Switches {
				known = append(known, s.Name)
			}
			return nil, fmt.Errorf("leaf=%s: the network has no such switch; %s", f.Name, list(known))
		}
		removed, host := behind(net, f.Name)
		if host >= 0 {
			return nil, fmt.Errorf("leaf=%s: node%d reaches the network through it alone; a job restarts "+
				"without such nodes: take fewer nodes and a network for them", f.Name, host)
		}
		out = append(out, removed...)
		net.Switches = slices.DeleteFunc(net.Switches, func(s fabric.Switch) bool { return s.Name == f.Name })
		net.Cables = slices.DeleteFunc(net.Cables, func(c fabric.Cable) bool {
			return c.A == f.Name || c.B == f.Name
		})
	}
	return out, nil
}

// behind are the NICs that reach the network through one switch alone, as absent; host is
// the first that has no others, -1 for none.
func behind(net *fabric.Network, leaf string) (out []*fault, host int) {
	only := map[fabric.End]bool{}
	var order []fabric.End
	for _, c := range net.Cables {
		for _, pair := range [][2]string{{c.A, c.B}, {c.B, c.A}} {
			e, ok := fabric.ParseEnd(pair[0])
			if !ok {
				continue
			}
			e.Port = 0
			if was, known := only[e]; !known {
				order, only[e] = append(order, e), pair[1] == leaf
			} else {
				only[e] = was && pair[1] == leaf
			}
		}
	}
	host = -1
	for _, e := range order {
		if !only[e] {
			continue
		}
		out = append(out, &fault{Absent: true, Kind: "nic", Node: e.Host, Name: strconv.Itoa(e.Net)})
		if host < 0 && !slices.ContainsFunc(order, func(o fabric.End) bool {
			return o.Host == e.Host && !only[o]
		}) {
			host = e.Host
		}
	}
	return out, host
}

// rewire takes the cables of absent NICs out of a network and numbers the others as
// NCCL does without them.
func (a *absences) rewire(net *fabric.Network) {
	rename := func(s string) (string, bool) {
		e, ok := fabric.ParseEnd(s)
		if !ok {
			return s, true
		}
		before := 0
		for _, g := range a.removed {
			switch {
			case g == fabric.End{Host: e.Host, Net: e.Net}:
				return "", false
			case g.Host == e.Host && g.Net < e.Net:
				before++
			}
		}
		e.Net -= before
		return e.String(), true
	}
	kept := net.Cables[:0]
	for _, c := range net.Cables {
		x, here := rename(c.A)
		y, there := rename(c.B)
		if c.A, c.B = x, y; here && there {
			kept = append(kept, c)
		}
	}
	net.Cables = kept
}
