package logcheck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/simccl/simccl/study/ncclog"
)

// A log may lack lines of a system print. Other ranks of the host print the same
// lines; else a line that must have been there is tried: one whose links or whose
// name are in the log. A line to which only the paths point is taken only if
// with it nothing differs any more.

// row is a parsed line of a system print's tree.
type row struct {
	ncclog.Text
	head       bool // a CPU
	col, inner int  // columns of a link and of the node to which it leads
	kind, bw   string
	name, rest string // "GPU/0-3000", "(0)"
}

func rowOf(t ncclog.Text) row {
	m := linkText().FindStringSubmatch(t.Text)
	if m == nil {
		name, rest, _ := strings.Cut(t.Text, " ")
		return row{Text: t, head: true, name: name, rest: rest}
	}
	name, rest, _ := strings.Cut(m[4], " ")
	return row{Text: t, col: len(m[1]), inner: len(t.Text) - len(m[4]), kind: m[2], bw: m[3], name: name,
		rest: rest}
}

// addition is a tree with one line inserted.
type addition struct {
	tree []ncclog.Text
	text string
	sure bool // that a line is lost is plain; only which is tried
}

// trees assigns to each rank the lines of its system print's tree: the union of the lines of all ranks of the
// host, if they do not contradict each other.
func (f *finder) trees() {
	f.tree = map[*ncclog.Rank][]ncclog.Text{}
	for _, k := range f.c.Ranks {
		var own []ncclog.Text
		for _, l := range k.Lines {
			if isSystem(l.Text) && (!l.Torn || whole(l.Text)) {
				own = append(own, l)
			}
		}
		if len(own) > 0 {
			f.tree[k] = own
		}
	}
	hosts := map[string][]*ncclog.Rank{}
	for _, k := range f.c.Ranks {
		if len(f.tree[k]) > 0 && len(hosts[k.Host()]) < maxPrints {
			hosts[k.Host()] = append(hosts[k.Host()], k)
		}
	}
	for _, ranks := range hosts {
		all := f.union(ranks)
		for _, k := range ranks {
			if _, ok := united(all, f.tree[k]); ok {
				f.tree[k] = all
			}
		}
	}
}

// maxPrints bounds the prints of a host that are united.
const maxPrints = 16

// union merges the lines of the ranks' prints. If two prints lack adjacent lines their order is ambiguous:
// among the merges that start with each print it takes the shortest that can be parsed.
func (f *finder) union(ranks []*ncclog.Rank) []ncclog.Text {
	var best []ncclog.Text
	bestReads := false
	for _, base := range ranks {
		tree := f.tree[base]
		for _, k := range ranks {
			if all, ok := united(tree, f.tree[k]); ok {
				tree = all
			}
		}
		_, err := readPrint(tree, base.Lines)
		if reads := err == nil; best == nil || reads && !bestReads || reads == bestReads &&
			len(tree) < len(best) {
			best, bestReads = tree, reads
		}
	}
	return best
}

// united adds to a tree the lines that another print of it has in addition; ok is false if they are not
// prints of one tree.
func united(a, b []ncclog.Text) ([]ncclog.Text, bool) {
	texts := make([]string, len(b))
	for i, l := range b {
		texts[i] = l.Text
	}
	if len(a)*len(b) > maxAlign {
		return a, false
	}
	var out []ncclog.Text
	equal := 0
	for _, m := range byCost(a, texts, func(s string) string { return s }) {
		switch {
		case m.theirs < 0:
			out = append(out, b[m.ours])
			continue
		case m.ours >= 0:
			equal++
		}
		out = append(out, a[m.theirs])
	}
	return out, 4*equal > 3*len(b)
}

// maxLost bounds the lines that are looked for, maxAdditions the trees that are tried
// for one.
const (
	maxLost      = 4
	maxAdditions = 200
)

// repair adds lines to the print of the rank that has most of them, as long as they
// explain more. sure: only where it is plain that a line is lost.
func (f *finder) repair(at guess, best *fit, sure bool) *fit {
	k := f.longest()
	if k == nil {
		return best
	}
	for len(f.added) < maxLost && (best == nil || best.differing > 0) {
		have, chosen := f.tree[k], -1
		list := additions(k, f.c, have)
		for i, a := range list[:min(len(list), maxAdditions)] {
			if sure && !a.sure || f.trials >= maxTrials(f.nranks) {
				continue
			}
			f.tree[k] = a.tree
			t := f.trial(at)
			if t == nil || !t.better(best, qPrint) || !a.sure && t.differing > 0 {
				continue
			}
			if best, chosen = t, i; t.differing == 0 {
				break
			}
		}
		f.tree[k] = have
		if chosen < 0 {
			break
		}
		f.tree[k] = list[chosen].tree
		f.added = append(f.added, strings.TrimSpace(list[chosen].text))
	}
	return best
}

// longest returns the first rank among those whose print has the most lines.
func (f *finder) longest() *ncclog.Rank {
	var best *ncclog.Rank
	for _, k := range f.c.Ranks {
		if len(f.tree[k]) > 0 && (best == nil || len(f.tree[k]) > len(f.tree[best])) {
			best = k
		}
	}
	return best
}

// adder collects possible additions to a tree.
type adder struct {
	rows  []row
	tree  []ncclog.Text
	named map[string][]string // names in the paths by kind, "GPU" → "GPU/0-3000"
	have  map[string]bool     // names in the tree; of a device its GPU's
	rates map[string][]string // bandwidths of links by kind of node
	out   []addition
	c     *ncclog.Communicator
	k     *ncclog.Rank
}

// additions returns the trees with one inserted line that may have been lost, the certain ones first.
func additions(k *ncclog.Rank, c *ncclog.Communicator, tree []ncclog.Text) []addition {
	a := &adder{tree: tree, named: map[string][]string{}, have: map[string]bool{},
		rates: map[string][]string{}, c: c, k: k}
	for _, l := range tree {
		r := rowOf(l)
		a.rows = append(a.rows, r)
		if kind := kindOf(r.name); r.head || r.kind == "PCI" || r.kind == "NET" {
			a.have[plain(r.name)] = true
			if !r.head && !slices.Contains(a.rates[kind], r.bw) {
				a.rates[kind] = append(a.rates[kind], r.bw)
			}
		}
	}
	for _, l := range k.Lines {
		for _, m := range anyNode().FindAllStringSubmatch(l.Text, -1) {
			if kind, name := kindOf(m[1]), plain(m[1]); !slices.Contains(a.named[kind], name) {
				a.named[kind] = append(a.named[kind], name)
			}
		}
	}
	a.cpus()
	a.orphan()
	a.gpus()
	a.nets()
	a.nvlinks()
	a.inner()
	return a.out
}

// kindOf returns the kind of a node's name; a device is its GPU.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "/")
	if kind == "DEV" {
		return "GPU"
	}
	return kind
}

// plain returns the name of a node in the form of the paths.
func plain(name string) string {
	text := byHost(name)
	if rest, ok := strings.CutPrefix(text, "DEV/"); ok {
		return "GPU/" + rest
	}
	return text
}

func (a *adder) missing(kind string) []string {
	return slices.DeleteFunc(slices.Clone(a.named[kind]), func(n string) bool { return a.have[n] })
}

// put records the addition of a line in front of row i.
func (a *adder) put(i int, text string, sure bool) {
	near := a.tree[min(i, len(a.tree)-1)]
	line := ncclog.Text{Text: text, File: near.File, Line: near.Line}
	a.out = append(a.out, addition{slices.Insert(slices.Clone(a.tree), i, line), text, sure})
}

func link(col int, kind, bw, node string) string {
	return fmt.Sprintf("%*s+ %s[%s] - %s", col, "", kind, bw, node)
}

// width is the length of a link's text before its node, without the bandwidth.
const width = len("+ PCI[] - ")

// cpuKinds are the kinds of CPU that NCCL knows, as it prints them, where no other CPU
// of the print says it.
var cpuKinds = []string{"(1/1/3)", "(1/2/-1)", "(1/1/4)", "(1/1/2)", "(1/1/1)", "(3/-1/-1)", "(1/3/2)",
	"(1/3/1)", "(2/-1/-1)"}

// cpus adds a CPU that paths or other CPUs name, at each start of its links.
func (a *adder) cpus() {
	var kinds []string
	missing := a.missing("CPU")
	for _, r := range a.rows {
		if r.head && !slices.Contains(kinds, r.rest) {
			kinds = append(kinds, r.rest)
		}
		if name := plain(r.name); r.kind == "SYS" && !a.have[name] && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(kinds) == 0 {
		kinds = cpuKinds
	}
	if len(missing) == 0 && len(a.rows) > 0 && !a.rows[0].head {
		missing = []string{"CPU/0-0", "CPU/0-ffffffffffffffff"}
	}
	for _, name := range missing {
		for _, kind := range kinds {
			for i, r := range a.rows {
				if !r.head && r.col == 0 && (i == 0 || a.rows[0].head) {
					a.put(i, name+" "+kind, true)
				}
			}
		}
	}
}

// node is an open node of a print: links in its column are its own.
type node struct {
	col  int
	kind string
}

// open returns the open nodes before a row, a CPU first, and whether the row is a link of one of them.
func (a *adder) open(at int) (nodes []node, fits bool) {
	for i := 0; i < at; i++ {
		r := a.rows[i]
		for len(nodes) > 0 && nodes[len(nodes)-1].col > r.col {
			nodes = nodes[:len(nodes)-1]
		}
		switch {
		case r.head:
			nodes = []node{{0, "CPU"}}
		case r.kind == "PCI":
			nodes = append(nodes, node{r.inner, kindOf(r.name)})
		}
	}
	if at == len(a.rows) || a.rows[at].head {
		return nodes, true
	}
	r := a.rows[at]
	return nodes, slices.ContainsFunc(nodes, func(n node) bool {
		return n.col == r.col && (n.kind == r.of() || n.kind == "CPU" && r.kind != "NET" && r.kind != "LOC")
	})
}

// of returns the kind of node that a row's link belongs to: a GPU has NVLinks, a NIC has NETs.
func (r *row) of() string {
	switch r.kind {
	case "NVL", "C2C", "LOC":
		return "GPU"
	case "NET":
		return "NIC"
	}
	return "PCI"
}

// orphan adds the missing node above the first row whose link belongs to no node.
func (a *adder) orphan() {
	for i := range a.rows {
		nodes, fits := a.open(i)
		if fits {
			continue
		}
		a.parent(i, nodes, a.rows[i].of(), true)
		return
	}
}

// parent adds a node of a kind whose link a row is.
func (a *adder) parent(i int, nodes []node, kind string, sure bool) {
	for _, p := range nodes {
		if p.kind != "CPU" && p.kind != "PCI" {
			continue
		}
		digits := a.rows[i].col - p.col - width
		for _, bw := range a.bandwidths(kind) {
			if len(bw) != digits {
				continue
			}
			for _, node := range a.nodes(kind) {
				a.put(i, link(p.col, "PCI", bw, node), sure)
			}
		}
	}
}

// bandwidths lists the bandwidths of links to nodes of a kind, then those of others, as candidates.
func (a *adder) bandwidths(kind string) []string {
	out := slices.Clone(a.rates[kind])
	for _, other := range []string{"PCI", "GPU", "NIC"} {
		for _, bw := range a.rates[other] {
			if !slices.Contains(out, bw) {
				out = append(out, bw)
			}
		}
	}
	if kind == "NIC" && !slices.Contains(out, "5000.0") {
		out = append(out, "5000.0")
	}
	for _, usual := range []string{"24.0", "48.0", "12.0", "96.0", "6.0", "3.0"} {
		if !slices.Contains(out, usual) {
			out = append(out, usual)
		}
	}
	return out
}

// lostBus is the bus id of inserted devices; no real device has it.
const lostBus = "fffe000"

// nodes returns the texts that a lost node of a kind may have.
func (a *adder) nodes(kind string) []string {
	switch kind {
	case "GPU":
		return a.gpuTexts()
	case "NIC":
		return []string{"NIC/0-" + lostBus}
	}
	var out []string
	for _, r := range a.rows {
		if text := "PCI/0-" + lostBus + " " + r.rest; kindOf(r.name) == "PCI" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		out = []string{"PCI/0-" + lostBus + " (0)"}
	}
	return out
}

// gpuTexts returns the texts of GPUs that the paths name and the tree lacks, with their possible ranks or
// devices.
func (a *adder) gpuTexts() []string {
	device := ""
	ranks := map[int]bool{}
	lo, hi := 1<<30, -1
	for _, r := range a.rows {
		switch {
		case r.kind != "PCI" || kindOf(r.name) != "GPU":
		case strings.HasPrefix(r.name, "DEV/"):
			device = r.rest
		default:
			n := atoi(strings.Trim(r.rest, "()"))
			ranks[n] = true
			lo, hi = min(lo, n), max(hi, n)
		}
	}
	var out []string
	for _, name := range a.missing("GPU") {
		if device != "" {
			out = append(out, "DEV/"+strings.TrimPrefix(name, "GPU/")+" "+device)
			continue
		}
		var list []int
		for _, k := range a.c.Ranks {
			if k.Host() == a.k.Host() && strings.HasSuffix(name, "-"+strconv.FormatInt(k.BusID, 16)) {
				list = append(list, k.Rank)
			}
		}
		for n := lo; n <= hi; n++ {
			list = append(list, n)
		}
		for _, n := range append(list, a.k.Rank, hi+1, lo-1) {
			if text := fmt.Sprintf("%s (%d)", name, n); n >= 0 && !ranks[n] && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// gpus adds GPUs that the paths name: in front of links that may be theirs, or without
// links.
func (a *adder) gpus() {
	if len(a.missing("GPU")) == 0 {
		return
	}
	for i := range a.rows {
		if nodes, fits := a.open(i); fits && a.rows[i].of() == "GPU" && !a.rows[i].head {
			a.parent(i, nodes, "GPU", true)
		}
	}
	for i := 1; i <= len(a.rows); i++ {
		nodes, _ := a.open(i)
		for _, p := range nodes {
			if p.kind != "CPU" && p.kind != "PCI" || i < len(a.rows) && !a.rows[i].head &&
				a.rows[i].col > p.col {
				continue
			}
			for _, bw := range a.rates["GPU"] {
				for _, node := range a.gpuTexts() {
					a.put(i, link(p.col, "PCI", bw, node), true)
				}
			}
		}
	}
}

// nets inserts a NET that the paths name into a NIC, trying NICs without NETs first.
func (a *adder) nets() {
	for _, name := range a.missing("NET") {
		var sample *row
		for i := range a.rows {
			if a.rows[i].kind == "NET" {
				sample = &a.rows[i]
			}
		}
		bw, parts := "25.0", []string{"0", "", "1", "25.000000"}
		if sample != nil {
			bw, parts = sample.bw, strings.Split(strings.Trim(sample.rest, "()"), "/")
		}
		if len(parts) < 3 {
			continue
		}
		parts[len(parts)-3] = "fffe" // guid
		for _, bare := range []bool{true, false} {
			for i, r := range a.rows {
				if kindOf(r.name) != "NIC" || (i+1 == len(a.rows) || a.rows[i+1].kind != "NET") != bare {
					continue
				}
				shown := name
				if sample != nil && !strings.Contains(sample.name, "-") {
					shown = "NET/" + strings.ToUpper(name[strings.LastIndexByte(name, '-')+1:])
				}
				a.put(i+1, link(r.inner, "NET", bw, shown+" ("+strings.Join(parts, "/")+")"), true)
			}
		}
	}
}

// nvlinks adds links that a GPU must have: back to one that links to it, to the switch
// that others link to, or to the CPU that has a C2C link to it.
func (a *adder) nvlinks() {
	type end struct{ from, kind, to string }
	have := map[end]string{} // bandwidth
	owner, cpu := "", ""
	owners := make([]string, len(a.rows))
	for i, r := range a.rows {
		switch {
		case r.head:
			cpu = plain(r.name)
			owner = cpu
		case r.kind == "PCI":
			owner = plain(r.name)
		case r.kind == "C2C" && r.col == 0:
			owner = cpu
		}
		if owners[i] = owner; r.kind == "NVL" || r.kind == "C2C" {
			have[end{owner, r.kind, plain(r.name)}] = r.bw
		}
	}
	for i, r := range a.rows {
		if r.kind != "PCI" || kindOf(r.name) != "GPU" {
			continue
		}
		from := plain(r.name)
		for _, o := range a.rows {
			e := end{from, o.kind, plain(o.name)}
			if o.kind == "NVL" && kindOf(o.name) == "NVS" && have[e] == "" {
				a.side(i, r.inner, o.kind, o.bw, o.name)
				have[e] = o.bw
			}
		}
		for j, o := range a.rows {
			back := end{from, o.kind, owners[j]}
			if (o.kind == "NVL" || o.kind == "C2C") && plain(o.name) == from && have[back] == "" {
				a.side(i, r.inner, o.kind, o.bw, a.spelled(owners[j]))
			}
		}
	}
}

// side adds a link at each position among the links of the GPU in row gpu.
func (a *adder) side(gpu, col int, kind, bw, name string) {
	for i := gpu + 1; ; i++ {
		a.put(i, link(col, kind, bw, name), true)
		if i >= len(a.rows) || a.rows[i].head || a.rows[i].col != col {
			return
		}
	}
}

// spelled returns a name in the form of the print's links: of a device, or with its whole id.
func (a *adder) spelled(name string) string {
	for _, r := range a.rows {
		if (r.kind == "NVL" || r.kind == "C2C" || r.kind == "SYS") && plain(r.name) == name {
			return r.name
		}
	}
	return name
}

// inner adds switches and NICs between a node and its links, to which only the paths
// point.
func (a *adder) inner() {
	for i, r := range a.rows {
		if r.head || r.kind != "PCI" && r.kind != "NET" {
			continue
		}
		if nodes, fits := a.open(i); fits {
			a.parent(i, nodes, r.of(), false)
		}
	}
}
