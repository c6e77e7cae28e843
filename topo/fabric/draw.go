package fabric

import (
	"fmt"
	"sort"
	"strings"
)

// TierInfo is a tier of a network as it is drawn: switches that are cabled in the same way, in runs.
type TierInfo struct {
	Tier  int `json:"tier"` // 0: hosts
	Count int `json:"count"`
	// "leaf0 to leaf15 (16): 256 hosts' ports, 4 x 400 to each of 64 of tier 2"
	Switches []string `json:"runs"`
}

// String formats a tier: a heading and the cables of its switches, a line each.
func (t TierInfo) String() string {
	what := fmt.Sprintf("tier %d: %s", t.Tier, counted(t.Count, "switch", "es"))
	if t.Tier == 0 {
		what = fmt.Sprintf("hosts: %d", t.Count)
	}
	s := what + "\n"
	for _, r := range t.Switches {
		s += "  " + r + "\n"
	}
	return s
}

// Drawn lists the tiers from the top to the hosts.
func (n *Network) Drawn() []TierInfo {
	tier := n.Tiers()
	top := 0
	for _, t := range tier { //lint:sorted a maximum
		top = max(top, t)
	}
	has := n.summaries(tier)
	var out []TierInfo
	for t := top; t >= 0; t-- {
		info := TierInfo{Tier: t}
		var names []string
		for i := range n.Switches {
			if name := n.Switches[i].Name; tier[name] == t && t > 0 {
				names = append(names, name)
			}
		}
		for h := range n.NHosts() {
			if t == 0 {
				names = append(names, n.HostName(h))
			}
		}
		key := func(i int) string {
			if t == 0 {
				return has[fmt.Sprintf("node%d", i)]
			}
			return has[names[i]]
		}
		info.Count = len(names)
		for i := 0; i < len(names); {
			from := i
			for i++; i < len(names) && key(i) == key(from); {
				i++
			}
			name := names[from]
			if i-from > 1 {
				name = fmt.Sprintf("%s to %s (%d)", name, names[i-1], i-from)
			}
			info.Switches = append(info.Switches, name+": "+key(from))
		}
		out = append(out, info)
	}
	return out
}

// counted formats a number and its noun, with the plural suffix many unless n is 1.
func counted(n int, noun, many string) string {
	if n != 1 {
		noun += many
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// summaries describes the cables of each switch and host: how many, at which speed, to how many peers of
// which tier.
func (n *Network) summaries(tier map[string]int) map[string]string {
	type kind struct {
		tier int
		gbit float64
	}
	cables := map[string]map[kind]int{}
	peers := map[string]map[kind]map[string]bool{}
	for i := range n.Cables {
		c := &n.Cables[i]
		for _, x := range [][2]string{{c.A, c.B}, {c.B, c.A}} {
			name, k := x[0], kind{tier[x[1]], c.Gbit}
			if e, ok := ParseEnd(name); ok {
				name = fmt.Sprintf("node%d", e.Host)
			}
			if cables[name] == nil {
				cables[name], peers[name] = map[kind]int{}, map[kind]map[string]bool{}
			}
			if peers[name][k] == nil {
				peers[name][k] = map[string]bool{}
			}
			far := x[1]
			if e, ok := ParseEnd(far); ok {
				far = fmt.Sprintf("node%d", e.Host)
			}
			cables[name][k] += c.Count
			peers[name][k][far] = true
		}
	}
	out := map[string]string{}
	for name, of := range cables { //lint:sorted each has its own entry
		var kinds []kind
		for k := range of { //lint:sorted sorted below
			kinds = append(kinds, k)
		}
		sort.Slice(kinds, func(i, j int) bool {
			return kinds[i].tier < kinds[j].tier || kinds[i].tier == kinds[j].tier &&
				kinds[i].gbit > kinds[j].gbit
		})
		var parts []string
		for _, k := range kinds {
			far := counted(len(peers[name][k]), "switch", "es") + fmt.Sprintf(" of tier %d", k.tier)
			if k.tier == 0 {
				far = counted(len(peers[name][k]), "host", "s")
			}
			parts = append(parts, fmt.Sprintf("%s of %g Gbit/s to %s", counted(of[k], "cable", "s"), k.gbit,
				far))
		}
		out[name] = strings.Join(parts, ", ")
	}
	return out
}
