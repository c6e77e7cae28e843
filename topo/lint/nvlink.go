package lint

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/simccl/simccl/internal/cnum"
	"github.com/simccl/simccl/internal/termtext"
	"github.com/simccl/simccl/topo"
)

// gpuLinks is a GPU's declared NVLinks, counted by peer.
type gpuLinks struct {
	it      item
	sm      int
	total   int
	toGPU   map[int64]int // by the peer's bus id
	targets string        // switches by address, to compare with other GPUs
}

// nvlinks checks the NVLinks of all GPUs: that both ends declare the same number of links, and that peers
// have equal ones.
func (c *checker) nvlinks() {
	byHost := map[string]map[int64]*gpuLinks{}
	var order []*gpuLinks
	for _, it := range c.all["gpu"] {
		g := &gpuLinks{it: it, sm: it.e.Int("sm", 0), toGPU: map[int64]int{}}
		order = append(order, g)
		if byHost[it.host] == nil {
			byHost[it.host] = map[int64]*gpuLinks{}
		}
		byHost[it.host][cnum.BusID(it.bus)] = g
		c.ownLinks(g)
	}
	for _, g := range order {
		c.mirrored(g, byHost[g.it.host])
	}
	c.uniform(order)
}

// ownLinks counts a GPU's NVLinks by target.
func (c *checker) ownLinks(g *gpuLinks) {
	var targets []string
	for _, l := range g.it.e.Children {
		if l.Name != "nvlink" && l.Name != "xgmi" {
			continue
		}
		n := l.Int("count", 0)
		at := item{e: l, path: g.it.path + "/" + l.Name}
		if n <= 0 {
			c.say(Warning, "nvlink", at, "count", fmt.Sprintf("%d NVLinks", n),
				"write how many there are, or remove the element")
		}
		g.total += n
		target, _ := l.Get("target")
		class, _ := l.Get("tclass")
		if c.isGPU(class) {
			g.toGPU[cnum.BusID(target)] += n
		} else {
			targets = append(targets, target)
		}
		if class == "" && !c.amd {
			c.say(Note, "nvlink", at, "tclass", "no tclass: taken for an NVSwitch",
				`write tclass="0x068000" for a switch, "0x030200" for a GPU`)
		}
	}
	sort.Strings(targets)
	g.targets = strings.Join(targets, " ")
	if most := topo.MaxNVLinks(g.sm); !c.amd && g.sm > 0 && g.total > most {
		c.say(Warning, "nvlink-count", g.it, "", fmt.Sprintf("%d NVLinks, an sm_%d chip has %d", g.total,
			g.sm, most),
			"count each link once; links to peers through a switch belong to the switch, not to each peer")
	}
}

// isGPU reports whether a class of PCI is a GPU's; AMD's accelerators have the class 0x12.
func (c *checker) isGPU(class string) bool {
	return strings.HasPrefix(class, "0x03") || c.amd && (strings.HasPrefix(class, "0x12") || class == "")
}

// mirrored finds links of one side only, or of another number than the peer's.
func (c *checker) mirrored(g *gpuLinks, host map[int64]*gpuLinks) {
	own := cnum.BusID(g.it.bus)
	for _, p := range slices.Sorted(maps.Keys(g.toGPU)) {
		peer, ok := host[p]
		switch back := 0; {
		case !ok:
			c.say(Note, "nvlink", g.it, "",
				fmt.Sprintf("NVLinks to %s, where no GPU is declared: NCCL ignores them", cnum.BusIDText(p)),
				"declare that GPU, or remove the links")
		default:
			back = peer.toGPU[own]
			if back == g.toGPU[p] || (back > 0 && own > p) {
				continue
			}
			problem := fmt.Sprintf("%d NVLinks to %s but %d back", g.toGPU[p], peer.it.bus, back)
			if back == 0 {
				c.say(Error, "nvlink-asymmetric", g.it, "", problem+": NCCL fails on it",
					"declare the same count on both GPUs")
				continue
			}
			c.say(Warning, "nvlink-asymmetric", g.it, "", problem+
				": each direction gets its own bandwidth and rings shrink to the slower",
				"declare the same count on both GPUs")
		}
	}
}

// uniform finds GPUs of one kind whose NVLinks differ from the others'.
func (c *checker) uniform(order []*gpuLinks) {
	type group struct {
		total   int
		targets string
	}
	bySM := map[int]map[group]int{}
	for _, g := range order {
		if bySM[g.sm] == nil {
			bySM[g.sm] = map[group]int{}
		}
		bySM[g.sm][group{g.total, g.targets}]++
	}
	common := map[int]group{}
	for sm, groups := range bySM { //lint:sorted each has its own entry
		most, best := 0, group{}
		for k, n := range groups { //lint:sorted the best group is the same in any order
			if n > most ||
				(n == most && (k.total > best.total || (k.total == best.total && k.targets > best.targets))) {
				most, best = n, k
			}
		}
		common[sm] = best
	}
	for _, g := range order {
		groups, best := bySM[g.sm], common[g.sm]
		mine, most := groups[group{g.total, g.targets}], groups[best]
		switch {
		case mine*2 > len(order) || mine == most:
		case g.total != best.total:
			c.say(Warning, "nvlink-uneven", g.it, "", fmt.Sprintf("%d NVLinks while %d GPUs have %d", g.total,
				most, best.total),
				"check nvidia-smi nvlink -s; a dead link or a missing <nvlink> slows every ring and "+
					"switches NVLS off")
		case g.targets != best.targets:
			c.say(Warning, "nvlink-uneven", g.it, "", fmt.Sprintf("NVLinks to %s while %d GPUs have %s",
				or(termtext.Short(g.targets, 0), "no switch"), most, or(termtext.Short(best.targets, 0),
					"no switch")),
				"all GPUs of a board should name the same switches")
		}
	}
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
