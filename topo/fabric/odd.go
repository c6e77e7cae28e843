package fabric

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Tiers returns the distance of each switch from the hosts, 1 for leaves; 0 for a switch that no host
// reaches.
func (n *Network) Tiers() map[string]int {
	next := map[string][]string{}
	tier := map[string]int{}
	var front []string
	for i := range n.Cables {
		c := &n.Cables[i]
		_, a := ParseEnd(c.A)
		_, b := ParseEnd(c.B)
		switch {
		case a && b:
		case a || b:
			leaf := c.A
			if a {
				leaf = c.B
			}
			if tier[leaf] == 0 {
				tier[leaf] = 1
				front = append(front, leaf)
			}
		default:
			next[c.A], next[c.B] = append(next[c.A], c.B), append(next[c.B], c.A)
		}
	}
	for len(front) > 0 {
		s := front[0]
		front = front[1:]
		for _, o := range next[s] {
			if tier[o] == 0 {
				tier[o] = tier[s] + 1
				front = append(front, o)
			}
		}
	}
	return tier
}

// cabled is one host or switch with its connections as key-value pairs, for comparison with its peers.
type cabled struct {
	name string
	has  map[string]string
}

// Oddities describes cabling that differs from that of the peers: a port on another leaf, a missing cable,
// too few cables between two switches, or a slower one.
func (n *Network) Oddities() []string {
	out := n.oddHosts()
	tier := n.Tiers()
	byTier := map[int][]cabled{}
	ups, hosts := n.uplinks(tier)
	highest := 0
	for i := range n.Switches {
		name := n.Switches[i].Name
		t := tier[name]
		if t == 0 {
			out = append(out, fmt.Sprintf("switch %s has no cable", name))
			continue
		}
		highest = max(highest, t)
		byTier[t] = append(byTier[t], cabled{name, ups[name]})
	}
	for t := 1; t < highest; t++ {
		out = append(out, differences(byTier[t], "has", "to")...)
	}
	var down []cabled
	for _, c := range byTier[1] {
		down = append(down, cabled{c.name, map[string]string{"": fmt.Sprintf("%d", hosts[c.name])}})
	}
	for _, d := range unusual(down) {
		out = append(out, fmt.Sprintf("%s has %s ports to hosts, %d of %d leaves have %s", d.name, d.mine,
			d.peers, len(down),
			d.usual))
	}
	return append(append(out, n.slow(tier)...), n.absent()...)
}

// absent lists switches whose numbers are missing from a series, such as spine2 among spine0, spine1 and
// spine3; only if few are missing.
func (n *Network) absent() (out []string) {
	series := map[string][]int{}
	var order []string
	for i := range n.Switches {
		name := n.Switches[i].Name
		stem := strings.TrimRight(name, "0123456789")
		k, err := strconv.Atoi(name[len(stem):])
		if err != nil || len(name)-len(stem) > 6 || name[len(stem)] == '0' && len(name) > len(stem)+1 {
			continue
		}
		if series[stem] == nil {
			order = append(order, stem)
		}
		series[stem] = append(series[stem], k)
	}
	for _, stem := range order {
		list := series[stem]
		slices.Sort(list)
		lost := list[len(list)-1] - list[0] + 1 - len(list)
		if lost < 1 || 4*lost > len(list) {
			continue
		}
		for i := 1; i < len(list); i++ {
			for k := list[i-1] + 1; k < list[i]; k++ {
				out = append(out, fmt.Sprintf("there is no switch %s%d between %s%d and %s%d", stem, k, stem,
					list[i-1], stem,
					list[i]))
			}
		}
	}
	return out
}

// oddHosts returns the hosts whose nets are connected to other leaves than those of their peers.
func (n *Network) oddHosts() []string {
	var items []cabled
	for h, list := range n.Leaves() {
		c := cabled{fmt.Sprintf("host %s", n.label(h)), map[string]string{}}
		for k, leaf := range list {
			if leaf != "" {
				c.has[fmt.Sprintf("port %d", k)] = leaf
			}
		}
		items = append(items, c)
	}
	return differences(items, "is on", "")
}

// label names a host, by both names where there are two.
func (n *Network) label(i int) string {
	if name := n.HostName(i); name != fmt.Sprintf("node%d", i) {
		return fmt.Sprintf("%s (node%d)", name, i)
	}
	return n.HostName(i)
}

// uplinks lists, by switch, its cables to the tier above, and counts those to hosts.
func (n *Network) uplinks(tier map[string]int) (up map[string]map[string]string, hosts map[string]int) {
	count, hosts := map[string]map[string]int{}, map[string]int{}
	for i := range n.Cables {
		c := &n.Cables[i]
		for _, x := range [][2]string{{c.A, c.B}, {c.B, c.A}} {
			_, a := ParseEnd(x[0])
			_, b := ParseEnd(x[1])
			switch {
			case a:
			case b:
				hosts[x[0]]++
			case tier[x[1]] > tier[x[0]]:
				if count[x[0]] == nil {
					count[x[0]] = map[string]int{}
				}
				count[x[0]][x[1]] += c.Count
			}
		}
	}
	up = map[string]map[string]string{}
	for s, list := range count { //lint:sorted each has its own entry
		up[s] = map[string]string{}
		for o, k := range list { //lint:sorted each has its own entry
			up[s][o] = fmt.Sprintf("%d", k)
		}
	}
	return up, hosts
}

// differences compares each item with its most similar group of peers, and describes it if that group is
// larger than the item's own.
func differences(items []cabled, verb, to string) (out []string) {
	key := func(c *cabled) string {
		var parts []string
		for k, v := range c.has { //lint:sorted sorted below
			parts = append(parts, k+"\x00"+v)
		}
		slices.Sort(parts)
		return strings.Join(parts, "\x01")
	}
	groups := map[string][]int{}
	var order []string
	for i := range items {
		k := key(&items[i])
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], i)
	}
	for _, k := range order {
		mine := groups[k]
		best, common := "", 0
		for _, o := range order {
			if len(groups[o]) <= len(mine) || o == k {
				continue
			}
			same := inCommon(items[mine[0]].has, items[groups[o][0]].has)
			if same > common || same == common && same > 0 && len(groups[o]) > len(groups[best]) {
				best, common = o, same
			}
		}
		if peers := groups[best]; best != "" && 2*common >= len(items[peers[0]].has) {
			for _, i := range mine {
				out = append(out, unlike(&items[i], &items[peers[0]], len(peers), verb, to)...)
			}
		}
	}
	return out
}

// inCommon counts equal key-value pairs of a and b.
func inCommon(a, b map[string]string) (n int) {
	for k, v := range a { //lint:sorted a count
		if b[k] == v {
			n++
		}
	}
	return n
}

// unlike describes how c differs from its peers.
func unlike(c, peer *cabled, peers int, verb, to string) (out []string) {
	keys := map[string]bool{}
	for k := range c.has { //lint:sorted sorted below
		keys[k] = true
	}
	for k := range peer.has { //lint:sorted sorted below
		keys[k] = true
	}
	var list []string
	for k := range keys { //lint:sorted sorted below
		list = append(list, k)
	}
	sort.Strings(list)
	for _, k := range list {
		mine, theirs := c.has[k], peer.has[k]
		if mine == theirs {
			continue
		}
		what, said := c.name+": "+k+" "+verb, [2]string{mine, theirs}
		if to != "" {
			what = c.name + " " + verb
			for i, v := range said {
				v = cmp.Or(v, "no")
				if said[i] = v + " cables " + to + " " + k; v == "1" {
					said[i] = "1 cable " + to + " " + k
				}
			}
		} else {
			for i, v := range said {
				if v == "" {
					said[i] = "no cable"
				}
			}
		}
		out = append(out, fmt.Sprintf("%s %s, its %d peers %s", what, said[0], peers, said[1]))
	}
	return out
}

// rare is a value that few items have, and the usual one.
type rare struct {
	name, mine, usual string
	peers             int
}

// unusual lists whose only value is not the one that more than half have.
func unusual(items []cabled) (out []rare) {
	count := map[string]int{}
	usual := ""
	for _, c := range items {
		count[c.has[""]]++
		if count[c.has[""]] > count[usual] {
			usual = c.has[""]
		}
	}
	if 2*count[usual] <= len(items) {
		return nil
	}
	for _, c := range items {
		if v := c.has[""]; v != usual {
			out = append(out, rare{c.name, v, usual, count[usual]})
		}
	}
	return out
}

// slow lists cables of another speed than most between the same tiers.
func (n *Network) slow(tier map[string]int) (out []string) {
	level := func(s string) int { return tier[s] } // 0: a host's port
	kinds := map[[2]int][]cabled{}
	var order [][2]int
	for i := range n.Cables {
		c := &n.Cables[i]
		k := [2]int{min(level(c.A), level(c.B)), max(level(c.A), level(c.B))}
		if kinds[k] == nil {
			order = append(order, k)
		}
		kinds[k] = append(kinds[k],
			cabled{c.A + " to " + c.B, map[string]string{"": fmt.Sprintf("%g", c.Gbit)}})
	}
	for _, k := range order {
		for _, r := range unusual(kinds[k]) {
			out = append(out, fmt.Sprintf("cable %s has %s Gbit/s, %d of %d of its kind have %s",
				n.ends(r.name), r.mine,
				r.peers, len(kinds[k]), r.usual))
		}
	}
	return out
}

// ends writes the ends of a cable with the host's own name.
func (n *Network) ends(text string) string {
	a, b, _ := strings.Cut(text, " to ")
	for _, s := range []*string{&a, &b} {
		if e, ok := ParseEnd(*s); ok && e.Host < len(n.Hosts) {
			*s += " (" + n.Hosts[e.Host].Name
			if e.Net < len(n.Hosts[e.Host].Nets) {
				*s += " " + n.Hosts[e.Host].Nets[e.Net]
			}
			*s += ")"
		}
	}
	return a + " to " + b
}
