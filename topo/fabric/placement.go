package fabric

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/simccl/simccl/internal/termtext"
)

// HostName returns the name of a host: the site's, if the file has it, else node0, node1, ….
func (n *Network) HostName(i int) string {
	if i < len(n.Hosts) {
		return n.Hosts[i].Name
	}
	return fmt.Sprintf("node%d", i)
}

// NHosts returns the number of hosts that have a cable or a name.
func (n *Network) NHosts() int {
	hosts := len(n.Hosts)
	for i := range n.Cables {
		for _, s := range []string{n.Cables[i].A, n.Cables[i].B} {
			if e, ok := ParseEnd(s); ok {
				hosts = max(hosts, e.Host+1)
			}
		}
	}
	return hosts
}

// HostError names a host that a network does not have.
type HostError struct{ Name, Hint string }

func (e *HostError) Error() string {
	return fmt.Sprintf("no host %s in the network; %s", termtext.Quote(e.Name, 0), e.Hint)
}

// Find returns the numbers of hosts by name: exactly, else by the part before the first dot, where that is
// one host's. The error is a *HostError.
func (n *Network) Find(names []string) ([]int, error) {
	short := func(s string) string { s, _, _ = strings.Cut(s, "."); return s }
	exact, first := map[string]int{}, map[string]int{}
	count := n.NHosts()
	for i := range count {
		name := n.HostName(i)
		exact[name] = i
		if _, ok := first[short(name)]; ok {
			first[short(name)] = -1
		} else {
			first[short(name)] = i
		}
	}
	var out []int
	for _, name := range names {
		i, ok := exact[name]
		if !ok {
			i, ok = first[short(name)]
		}
		if !ok || i < 0 {
			return nil, &HostError{name, fmt.Sprintf("it has %d, %s to %s", count, n.HostName(0),
				n.HostName(max(0, count-1)))}
		}
		if slices.Contains(out, i) {
			return nil, &HostError{name, "it is listed twice"}
		}
		out = append(out, i)
	}
	return out, nil
}

// Place returns the network as a job on some of its hosts sees it: node0 is the first of them, and so on;
// cables of other hosts are left out. It returns a *HostError for an unknown name.
func (n *Network) Place(names []string) (*Network, error) {
	at, err := n.Find(names)
	if err != nil {
		return nil, err
	}
	number := map[int]int{}
	for i, h := range at {
		number[h] = i
	}
	out := *n
	out.Hosts, out.Cables = nil, nil
	for _, h := range at {
		host := Host{Name: n.HostName(h)}
		if h < len(n.Hosts) {
			host = n.Hosts[h]
		}
		out.Hosts = append(out.Hosts, host)
	}
	for _, c := range n.Cables {
		keep := true
		for _, s := range []*string{&c.A, &c.B} {
			if e, ok := ParseEnd(*s); ok {
				i, in := number[e.Host]
				if e.Host = i; !in {
					keep = false
				}
				*s = e.String()
			}
		}
		if keep {
			out.Cables = append(out.Cables, c)
		}
	}
	return &out, nil
}

// Leaves returns, by host, the switch of each port, in order of nets; "" for a port without a cable.
func (n *Network) Leaves() [][]string {
	type port struct {
		End
		leaf string
	}
	ports := make([][]port, n.NHosts())
	for i := range n.Cables {
		c := &n.Cables[i]
		if e, ok := ParseEnd(c.A); ok {
			ports[e.Host] = append(ports[e.Host], port{e, c.B})
		} else if e, ok := ParseEnd(c.B); ok {
			ports[e.Host] = append(ports[e.Host], port{e, c.A})
		}
	}
	out := make([][]string, len(ports))
	most := map[End]bool{}
	for _, list := range ports {
		for _, p := range list {
			most[End{0, p.Net, p.Port}] = true
		}
	}
	var all []End
	for e := range most { //lint:sorted sorted below
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool {
		return all[i].Net < all[j].Net || all[i].Net == all[j].Net && all[i].Port < all[j].Port
	})
	place := map[End]int{}
	for i, e := range all {
		place[e] = i
	}
	for h, list := range ports {
		out[h] = make([]string, len(all))
		for _, p := range list {
			out[h][place[End{0, p.Net, p.Port}]] = p.leaf
		}
	}
	return out
}

// Crossings counts the hops that leave their leaf in rings over hosts in an order, one ring per port. Each
// ring leads from a host to the next and from the last to the first, on the same port. of is the number of
// all hops.
func (n *Network) Crossings(order []int) (crossing, of int) {
	leaves := n.Leaves()
	for i, h := range order {
		next := order[(i+1)%len(order)]
		if next == h {
			continue
		}
		for k, leaf := range leaves[h] {
			if leaf == "" || leaves[next][k] == "" {
				continue
			}
			if of++; leaf != leaves[next][k] {
				crossing++
			}
		}
	}
	return crossing, of
}

// ByLeaf sorts hosts as a scheduler's topology plugin does: by leaf in the order of the file, then by number.
func (n *Network) ByLeaf(hosts []int) []int {
	rank := map[string]int{}
	for i := range n.Switches {
		rank[n.Switches[i].Name] = i
	}
	leaves := n.Leaves()
	out := slices.Clone(hosts)
	slices.Sort(out)
	sort.SliceStable(out, func(i, j int) bool {
		for k, a := range leaves[out[i]] {
			if b := leaves[out[j]][k]; a != b {
				return rank[a] < rank[b]
			}
		}
		return false
	})
	return out
}

// Packed selects count hosts that span the fewest groups of leaves: repeatedly the smallest group that has
// all hosts still missing, else the largest group.
func (n *Network) Packed(count int) []int {
	var groups [][]int
	at := map[string]int{}
	for h, list := range n.Leaves() {
		key := strings.Join(list, "\x00")
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], h)
	}
	var out []int
	for len(out) < count && len(groups) > 0 {
		left, best := count-len(out), 0
		for i, g := range groups {
			b := len(groups[best])
			fits, bestFits := len(g) >= left, b >= left
			if fits && (!bestFits || len(g) < b) || !fits && !bestFits && len(g) > b {
				best = i
			}
		}
		out = append(out, groups[best][:min(left, len(groups[best]))]...)
		groups = slices.Delete(groups, best, best+1)
	}
	return n.ByLeaf(out)
}

// Crossed lists the leaves of some hosts with how many ports of them each has, in the order of the file.
func (n *Network) Crossed(hosts []int) (names []string, ports []int) {
	count := map[string]int{}
	leaves := n.Leaves()
	for _, h := range hosts {
		for _, l := range leaves[h] {
			count[l]++
		}
	}
	for i := range n.Switches {
		if c := count[n.Switches[i].Name]; c > 0 {
			names, ports = append(names, n.Switches[i].Name), append(ports, c)
		}
	}
	return names, ports
}
