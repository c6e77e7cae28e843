package diagnose

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// apart1 is the ratio of two tables' times from which on they are of machines of which one lacks something:
// two that are sound differ by less.
const apart1 = 1.25

// compared takes from tables of one operation on as many ranks what the slower ones have that the faster ones
// have not: a release, a setting, fewer NICs, a word that is evidence, a host. It is what was changed, and so
// the cause, whatever curve fits.
func (q *work) compared() {
	for i, a := range q.m.tables {
		for _, b := range q.m.tables[i+1:] {
			switch r := ratioOf(a, b); {
			case r >= apart1:
				q.differ(a, b, r)
			case r > 0 && r <= 1/apart1:
				q.differ(b, a, 1/r)
			}
		}
	}
	q.slowHosts()
}

// ratioOf is the median of the times of a over those of b at the sizes of both, those from 1 MiB on where
// there are some; 0 of tables that cannot be compared.
func ratioOf(a, b *table) float64 {
	if a.fn != b.fn || a.run.Ranks != b.run.Ranks || a.run.Nodes != b.run.Nodes {
		return 0
	}
	for _, from := range []int64{large, 0} {
		var d []float64
		for _, r := range a.rows {
			k := slices.IndexFunc(b.rows, func(o row) bool { return o.bytes == r.bytes })
			if k >= 0 && r.bytes >= from {
				d = append(d, math.Log(r.us/b.rows[k].us))
			}
		}
		if len(d) > 0 {
			return math.Exp(median(d))
		}
	}
	return 0
}

// differ names what distinguishes a table from one that is faster.
func (q *work) differ(slow, fast *table, r float64) {
	add := func(kind, has string) {
		q.m.facts = append(q.m.facts, fact{kind, fmt.Sprintf("%s takes %.2f times as long as %s, and %s",
			slow.name(), r, fast.name(), has), sure})
	}
	a, b := slow.run, fast.run
	if a.NCCL != b.NCCL && a.NCCL*b.NCCL > 0 {
		add("release", fmt.Sprintf("has NCCL %s, not %s", versionOf(a.NCCL), versionOf(b.NCCL)))
	}
	for _, kv := range a.Env {
		if !slices.Contains(b.Env, kv) && !said(kv) {
			add(leftOver(kv), "has "+kv)
		}
	}
	for _, kv := range b.Env {
		name, _, _ := strings.Cut(kv, "=")
		if !said(kv) && !slices.ContainsFunc(a.Env, func(s string) bool {
			return strings.HasPrefix(s, name+"=")
		}) {
			add(leftOver(kv), "has no "+kv)
		}
	}
	if a.NICs > 0 && a.NICs < b.NICs {
		add("wrong-hca", fmt.Sprintf("has %d NICs of a node, not %d", a.NICs, b.NICs))
	}
	other := factsOf("", []byte(fast.words()))
	for _, f := range factsOf("", []byte(slow.words())) {
		if !slices.ContainsFunc(other, func(o fact) bool { return o.kind == f.kind }) {
			add(f.kind, "says so"+strings.TrimPrefix(f.text, ":1"))
		}
	}
}

// said reports whether a variable says where, not how.
func said(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.Contains(silent, name) || strings.HasPrefix(name, "NCCL_DEBUG")
}

func versionOf(code int) string { return fmt.Sprintf("%d.%d.%d", code/10000, code/100%100, code%100) }

// words are what a table says of its machine, and the name of its file.
func (t *table) words() string {
	return strings.NewReplacer("_", " ", "\n", " ").Replace(t.run.File + " " + t.run.System)
}

// onHost finds the host of a rank in a table's head.
var onHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^#\s*Rank\s+\d+\s.*\son\s+(\S+)\s+device\b`)
})

func hostsOf(text []byte) map[string]bool {
	out := map[string]bool{}
	for _, m := range onHost().FindAllSubmatch(text, -1) {
		out[string(m[1])] = true
	}
	return out
}

// slowHosts names hosts that are in slow tables only, of tables of one operation on several sets of hosts.
func (q *work) slowHosts() {
	good, slow := map[string]bool{}, map[string][]string{}
	for _, t := range q.m.tables {
		worst := 1.0
		for _, o := range q.m.tables {
			worst = max(worst, ratioOf(t, o))
		}
		for h := range t.hosts { //lint:sorted each by itself
			if worst < apart1 {
				good[h] = true
			} else {
				slow[h] = append(slow[h], t.name())
			}
		}
	}
	maps.DeleteFunc(slow, func(h string, _ []string) bool { return good[h] })
	if len(good) == 0 {
		return
	}
	for _, h := range slices.SortedFunc(maps.Keys(slow), func(a, b string) int {
		if d := len(slow[b]) - len(slow[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}) {
		q.m.facts = append(q.m.facts,
			fact{"slow-node", fmt.Sprintf("every table with host %s is at least %g "+
				"times as slow as the fastest: %s", h, apart1, list3(slow[h])), sure})
	}
}

// wire is a bandwidth that perftest measured between two NICs.
type wire struct {
	gbit float64
	gpu  bool // between memories of GPUs
	text string
}

var (
	wireWords = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(
			`(?i)ib_(?:write|read|send)_bw\b[^0-9\n]{0,30}([0-9.]+) ?(G(?:b/s|bps|bit/s|b/sec)|GB/s)`)
	})
	wireHead = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`BW average\[(Gb|MB|MiB)/sec\]`)
	})
	wireRow = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s*\d+\s+\d+\s+[0-9.]+\s+([0-9.]+)\s+[0-9.]+\s*$`)
	})
)

// wiresOf reads what perftest prints, and what people say of it: the best of each text.
func wiresOf(name string, text []byte) (best *wire) {
	unit, line := 0.0, 0
	gpu := strings.Contains(string(text), "use_cuda")
	take := func(number string, unit float64) {
		if v, err := strconv.ParseFloat(number, 64); err == nil && (best == nil || v*unit > best.gbit) {
			best = &wire{v * unit, gpu, fmt.Sprintf("%s:%d: perftest reached %.4g Gb/s", name, line, v*unit)}
		}
	}
	for l := range strings.Lines(string(text)) {
		line++
		if m := wireWords().FindStringSubmatch(l); m != nil {
			take(m[1], map[bool]float64{true: 8, false: 1}[m[2] == "GB/s"])
		}
		if m := wireHead().FindStringSubmatch(l); m != nil {
			unit = map[string]float64{"Gb": 1, "MB": 8e-3, "MiB": 8e-3 * 1.048576}[m[1]]
		} else if m := wireRow().FindStringSubmatch(l); m != nil && unit > 0 {
			take(m[1], unit)
		}
	}
	return best
}

// wired weighs what perftest measured: NICs that have their rate by themselves are neither slow nor behind
// a slow cable, and what is lost is lost between them and the GPUs, or among many flows.
func (q *work) wired() {
	if len(q.benches) == 0 {
		return
	}
	rate := q.benches[0].rate()
	for _, w := range q.m.wires {
		if rate == 0 {
			return
		}
		text := fmt.Sprintf("%s of %g", w.text, rate)
		if w.gbit < 0.8*rate {
			q.m.facts = append(q.m.facts, fact{"nic-slow", text, hint})
			continue
		}
		for _, kind := range []string{"nic-slow", "link-slow", "slow-node", "mtu"} {
			q.m.facts = append(q.m.facts, fact{kind, "against it: " + text, -hint})
		}
		if w.gpu {
			for _, kind := range []string{"no-gpudirect", "acs", "pcie"} {
				q.m.facts = append(q.m.facts, fact{kind, "against it: " + text + " between GPUs", -hint})
			}
		}
	}
}
