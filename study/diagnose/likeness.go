package diagnose

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/simccl/simccl/study/calibrate"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/topo/builtin"
)

// likeness is how a built-in machine is like the one that a table describes.
type likeness struct {
	name  string
	score float64
	xml   string
	nics  int
}

// words of a text, in lower case; a rate is written as the titles of machines do, 400Gb/s as 400g.
func words(text string) []string {
	text = bitRates().ReplaceAllString(text, "${1}G ")
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

var (
	bitRates = sync.OnceValue(
		func() *regexp.Regexp { return regexp.MustCompile(`(\d+) ?G(?:b/s|bps|bit/s)\b`) },
	)
	models = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:gb|gh|mi|a|b|h|l|t|v)\d+[a-z]?$|^\d{4}$`)
	})
	nets = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`<net name="([^"]*)"[^>]*speed="(\d+)"`)
	})
)

// modelOf is the first word of a GPU's name with its model: h100, l40s, 4090.
func modelOf(gpu string) string {
	all := words(gpu)
	if i := slices.IndexFunc(all, models().MatchString); i >= 0 {
		return all[i]
	}
	return ""
}

// marks are the words of a machine that distinguish it from others: those with a capital or a digit in
// its title, those of its name, but numbers.
func marks(m *builtin.Machine) (out []string) {
	for w := range strings.FieldsSeq(m.Title) {
		if strings.ContainsFunc(w, unicode.IsUpper) || strings.ContainsFunc(w, unicode.IsDigit) {
			out = append(out, words(w)...)
		}
	}
	out = append(out, words(m.Name)...)
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(w string) bool {
		return len(w) < 2 || w == "gpu" || strings.TrimRight(strings.TrimRight(w, "x"), "0123456789") == ""
	})
}

// nearest finds the built-in machine that is most like what a table says of its own: of the same GPU,
// the one that shares most words, each by how few machines have it; then by its number of GPUs and
// NICs; then the one that a GPU's name alone means. nil of a GPU that none has.
func nearest(r *calibrate.Run) *likeness {
	model := modelOf(r.GPU)
	if model == "" {
		return nil
	}
	said := words(r.GPU + " " + r.System)
	machines := builtin.List()
	count := map[string]int{}
	for _, m := range machines {
		for _, w := range marks(m) {
			count[w]++
		}
	}
	per := max(r.PerNode, r.Ranks/max(r.Nodes, 1))
	usual, _ := replay.Builtin(r.GPU, r.Ranks)
	var best *likeness
	for _, m := range machines {
		own := marks(m)
		if !slices.Contains(words(m.Name+" "+m.Title), model) ||
			slices.Contains(said, "sxm4") && slices.Contains(own, "pcie") {
			continue
		}
		l := likeness{name: m.Name, xml: string(m.XML())}
		for _, w := range own {
			if w != model && slices.Contains(said, w) {
				l.score += math.Log(float64(len(machines)) / float64(count[w]))
			}
		}
		gpus := strings.Count(l.xml, "<gpu ")
		l.nics = len(nets().FindAllString(l.xml, -1))
		switch {
		case gpus < per && m.Domain == 0 || r.Nodes > 1 && l.nics == 0:
			continue
		case gpus == per:
			l.score += 2
		}
		if r.NICs > 0 && l.nics == r.NICs {
			l.score++
		}
		if m.Name == usual {
			l.score += 0.5
		}
		if best == nil || l.score > best.score {
			best = &l
		}
	}
	return best
}

// plugins are network classes that words of a table name.
var plugins = []string{"roce", "slingshot", "tcpx", "tcpxo"}

// fit makes the nodes' NICs those that a table names: as many, and of the rate that its words say.
func (q *work) fit(b *bench, l *likeness) {
	r, s := b.table.run, &b.spec
	all := nets().FindAllStringSubmatch(l.xml, -1)
	if r.Nodes < 2 || len(all) == 0 || s.Machine.Nodes[0].Topo != l.name {
		return
	}
	if n := r.NICs; n > 0 && n < len(all) {
		// Those of the GPUs in use: of as many nodes' devices as are.
		near := len(all)
		if gpus := strings.Count(l.xml, "<gpu "); r.Ranks/r.Nodes < gpus {
			near = max(n, len(all)*(r.Ranks/r.Nodes)/gpus)
		}
		for i, net := range all {
			if i >= near || (i+1)*n/near == i*n/near {
				s.Network.Faults = append(s.Network.Faults, "nic="+net[1]+":absent")
			}
		}
		q.note(
			"%s has %d NICs; %d of them are left out, since the table says %d",
			l.name,
			len(all),
			len(all)-n,
			n,
		)
	}
	kind := builtin.Lookup(l.name).Network.Kind
	if s.Network.Class == "" && (kind == "" || kind == "infiniband") {
		for _, w := range words(r.System) {
			if slices.Contains(plugins, w) {
				s.Network.Class = w
				break
			}
		}
	}
	rate, _ := strconv.Atoi(all[0][2])
	said := rateOf(r.System)
	if said == 0 || said == rate || s.Network.Class == "slingshot" {
		return
	}
	name := fmt.Sprintf("%s-%dg.xml", l.name, said/1000)
	s.Network.Class = cmp.Or(s.Network.Class, kind, "infiniband")
	b.opt.Files = over{b.opt.Files, map[string][]byte{name: []byte(strings.ReplaceAll(l.xml,
		fmt.Sprintf(`speed="%d"`, rate), fmt.Sprintf(`speed="%d"`, said)))}}
	s.Machine.Nodes[0].Topo = name
	q.note("the NICs of %s have %d Gb/s, those of the table %d", l.name, rate/1000, said/1000)
}

// rateOf is the rate of a NIC that words say, Mb/s: 400Gb/s, NDR. 0 where they say none, or several.
func rateOf(text string) int {
	rate := 0
	for _, w := range words(text) {
		n, err := strconv.Atoi(strings.TrimSuffix(w, "g"))
		if err != nil || !strings.HasSuffix(w, "g") || n < 10 {
			continue
		}
		if rate != 0 && rate != 1000*n {
			return 0
		}
		rate = 1000 * n
	}
	return rate
}
