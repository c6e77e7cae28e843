// Package lint checks a declared topology for errors that make NCCL decide badly: wrong NUMA nodes, links
// narrower than the hardware's, NVLinks declared on one side only, NICs that no GPU reaches. Every finding
// has a position and a remedy. It is pure: its input is a topo.Spec, and the System that topo.Build makes of
// it.
package lint

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/decl"
)

// Severity ranks findings: note, warning or error.
type Severity uint8

// Severities: an Error makes NCCL fail, a Warning makes it decide badly, a Note
// may be meant.
const (
	Note Severity = iota
	Warning
	Error
)

// String returns the severity's name in lower case.
func (s Severity) String() string { return [...]string{"note", "warning", "error"}[s] }

// Finding is one thing that is or may be wrong.
type Finding struct {
	Severity Severity
	Rule     string // short name: "numaid", "width", "nvlink-asymmetric", …
	Pos      topo.Origin
	Path     string // "system/cpu[0]/pci[1]"
	Problem  string
	Remedy   string
}

// String formats a finding on one line: position, severity, problem and remedy.
func (f Finding) String() string {
	var b strings.Builder
	if p := f.Pos.String(); p != "" {
		b.WriteString(p + ": ")
	}
	fmt.Fprintf(&b, "%s: ", f.Severity)
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	fmt.Fprintf(&b, "%s; %s [%s]", f.Problem, f.Remedy, f.Rule)
	return b.String()
}

// Check returns the findings about a Spec and about the System that topo.Build makes of it, ordered by
// position.
func Check(spec *topo.Spec, p topo.Params) []Finding {
	c := &checker{spec: spec}
	for _, w := range spec.Warnings {
		c.found = append(c.found, Finding{Warning, "parser", w.Pos, w.Path, join(w.Attr, w.Problem), w.Hint})
	}
	if c.amd = spec.Library() == rules.RCCL; c.amd && p.Rules.Library != rules.RCCL {
		ranks := p.NRanks
		p = topo.ParamsOf(rules.DefaultRCCL())
		p.NRanks = ranks
	}
	if spec.Root != nil {
		c.gather()
		c.cpus()
		c.busIDs()
		c.links()
		c.uplinks()
		c.gpuAttributes()
		c.nvlinks()
		c.nets()
		c.places()
		c.built(p)
	}
	if c.amd {
		for i := range c.found {
			c.found[i].forAMD()
		}
	}
	sort.SliceStable(c.found, func(i, j int) bool {
		a, b := c.found[i].Pos, c.found[j].Pos
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	return counted(c.found)
}

// shownRepeated is the number of equal findings that are listed, shownOfRule that of findings of one rule.
const (
	shownRepeated = 10
	shownOfRule   = 1000
)

// counted omits repeated findings beyond shownRepeated, and a rule's findings beyond shownOfRule. The last
// one listed states the number omitted.
func counted(all []Finding) []Finding {
	type key struct {
		s               Severity
		rule            string
		problem, remedy string
	}
	n, last := map[key]int{}, map[key]int{}
	more := map[int]int{} // by place in out
	out := all[:0]
	for _, f := range all {
		same, rule := key{f.Severity, f.Rule, f.Problem, f.Remedy}, key{s: f.Severity, rule: f.Rule}
		switch {
		case n[same] == shownRepeated:
			more[last[same]]++
			continue
		case n[rule] == shownOfRule:
			more[last[rule]]++
			continue
		}
		n[same]++
		n[rule]++
		last[same], last[rule] = len(out), len(out)
		out = append(out, f)
	}
	for i, n := range more { //lint:sorted each changes its own finding
		out[i].Problem += fmt.Sprintf(" (and %d more of this kind)", n)
	}
	return out
}

func join(attr, problem string) string {
	if attr == "" {
		return problem
	}
	return attr + ": " + problem
}

// item is an element with its position in the tree.
type item struct {
	e    *topo.Element
	path string
	host string // host_hash of its CPU
	bus  string // bus id of the nearest pci
	pci  *topo.Element
	up   *topo.Element // pci above that one
}

// amdWords are words of RCCL, of AMD's GPUs and of its tools in place of NCCL's.
var amdWords = strings.NewReplacer("NCCL ", "RCCL ", "NVLinks", "XGMI links", "<nvlink>", "<xgmi>",
	"nvidia-smi nvlink -s", "amd-smi xgmi", "and switches NVLS off", "and has no model of RCCL's",
	"as CUDA does", "as HIP does", "mlx5_0", "bnxt_re0")

// forAMD puts a finding about a file of AMD's GPUs into RCCL's terms. What the checks say of the file holds
// for both libraries: RCCL reads it by NCCL's code (graph/xml.cc, topo.cc).
func (f *Finding) forAMD() {
	f.Problem, f.Remedy = amdWords.Replace(f.Problem), amdWords.Replace(f.Remedy)
	f.Rule = strings.Replace(f.Rule, "nvlink", "xgmi", 1)
}

type checker struct {
	amd   bool // a file of AMD's GPUs
	spec  *topo.Spec
	found []Finding
	all   map[string][]item // by element name
}

func (c *checker) say(s Severity, rule string, it item, attr, problem, remedy string) {
	c.found = append(c.found, Finding{s, rule, it.e.AttrOrigin(attr), it.path, problem, remedy})
}

// gather indexes the elements by name, with their paths.
func (c *checker) gather() {
	c.all = map[string][]item{}
	c.gatherAt(decl.RootPlace(c.spec.Root), item{})
}

func (c *checker) gatherAt(p *decl.Place, it item) {
	it.e, it.path = p.Elem, p.String()
	switch p.Elem.Name {
	case "cpu":
		it.host, _ = p.Elem.Get("host_hash")
	case "pci":
		it.bus, _ = p.Elem.Get("busid")
		it.up, it.pci = it.pci, p.Elem
	}
	c.all[p.Elem.Name] = append(c.all[p.Elem.Name], it)
	for child := range p.Children() {
		c.gatherAt(child, it)
	}
}

// built checks the built System: nets that no GPU reaches or owns, GPUs that NCCL puts into separate systems,
// and errors of Build.
func (c *checker) built(p topo.Params) {
	if len(c.all["gpu"]) == 0 {
		return
	}
	h, err := topo.Build(c.spec, p)
	if err != nil {
		var e *topo.Error
		f := Finding{Severity: Error, Rule: "build", Pos: c.spec.Root.Origin, Problem: err.Error(),
			Remedy: "NCCL fails on this topology"}
		if errors.As(err, &e) {
			f.Pos, f.Path, f.Problem, f.Remedy = e.Pos, e.Path, join(e.Attr, e.Problem), e.Hint
		}
		c.found = append(c.found, f)
		return
	}
	if n := count(h.Dump); n > ncclElements {
		c.found = append(c.found, Finding{Warning, "size", c.spec.Root.Origin, "system",
			fmt.Sprintf("%d elements once the local ranks' trees are fused, NCCL %s fails above %d", n,
				p.Rules.Version(), ncclElements), "leave out what no rank uses"})
	}
	c.split(h, p)
	c.reach(h)
}

// split reports GPUs that NCCL treats as separate nodes, and the setting that would join them, if there is
// one.
func (c *checker) split(h *topo.Host, p topo.Params) {
	if len(h.Systems) < 2 {
		return
	}
	remedy := "no setting joins them: NVLink, or PCIe of one host, has to; simccl explain lists the paths"
	p.NetDisableIntra = true
	if again, err := topo.Build(c.spec, p); err == nil && len(again.Systems) < len(h.Systems) {
		remedy = fmt.Sprintf("NCCL_NET_DISABLE_INTRA=1 makes %s of them; see explain",
			numbered(len(again.Systems), "node"))
	}
	var groups []string
	for i, s := range h.Systems {
		if i == shownRepeated {
			groups = append(groups, fmt.Sprintf("%d more", len(h.Systems)-i))
			break
		}
		groups = append(groups, "GPUs "+ranksOf(s))
	}
	c.found = append(c.found, Finding{Note, "split", c.spec.Root.Origin, "system",
		fmt.Sprintf("NCCL takes the GPUs for %d nodes, because neither P2P nor SHM joins them: %s",
			len(h.Systems), strings.Join(groups, "; ")), remedy})
}

// ranksOf formats the local ranks of a System: "0-3,6".
func ranksOf(s *topo.System) string {
	var ranks []int
	for _, g := range s.Of(topo.GPU) {
		ranks = append(ranks, s.Nodes[g].GPU.Rank)
	}
	sort.Ints(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		from := i
		for i++; i < len(ranks) && ranks[i] == ranks[i-1]+1; {
			i++
		}
		if part := fmt.Sprint(ranks[from]); i-from > 1 {
			parts = append(parts, fmt.Sprintf("%s-%d", part, ranks[i-1]))
		} else {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ",")
}

// ncclElements is the number of elements that NCCL's XML tree can have (topo.h:226).
const ncclElements = 256

func count(e *topo.Element) int {
	if e == nil {
		return 0
	}
	n := 1
	for _, s := range e.Children {
		n += count(s)
	}
	return n
}

// reach names nets that are no GPU's and GPUs without a close net. Where NCCL splits the GPUs,
// each group sees the nets of all.
func (c *checker) reach(h *topo.Host) {
	type place struct {
		net  *topo.NetInfo
		best topo.PathKind
		used bool
	}
	var order []uint64
	nets := map[uint64]*place{}
	for _, s := range h.Systems {
		for _, n := range s.Of(topo.NET) {
			id := s.Nodes[n].Ident
			if nets[id] == nil {
				order = append(order, id)
				nets[id] = &place{net: s.Nodes[n].Net, best: topo.PathDIS}
			}
			at := nets[id]
			at.used = at.used || s.Nodes[n].Net.LocalGPU >= 0
			for _, g := range s.Of(topo.GPU) {
				at.best = min(at.best, s.Path(g, n).Kind)
			}
		}
	}
	for _, id := range order {
		at := nets[id]
		it := c.netItem(at.net.Name, int(id>>56))
		switch name := at.net.Name; {
		case at.best == topo.PathDIS:
			c.say(Error, "net-unreached", it, "", fmt.Sprintf("no GPU reaches net %s", name),
				"put its <nic> below the <cpu> or <pci> it hangs on")
		case at.best >= topo.PathSYS:
			c.say(Warning, "net-far", it, "", fmt.Sprintf("net %s is nearest to a GPU by %s", name, at.best),
				"check numaid and the switch above it")
		case !at.used:
			c.say(Note, "net-idle", it, "",
				fmt.Sprintf("no GPU prefers net %s: others are as near and faster, or come first", name),
				"NCCL_NETDEVS_POLICY=ALL uses all near nets")
		}
	}
}

// netItem returns the element of a net of a host.
func (c *checker) netItem(name string, host int) item {
	first := strings.Split(name, "+")[0]
	var hosts []string
	for _, it := range c.all["cpu"] {
		if !slices.Contains(hosts, it.host) {
			hosts = append(hosts, it.host)
		}
	}
	for _, it := range c.all["net"] {
		if n, _ := it.e.Get("name"); (n == name || n == first) &&
			(host >= len(hosts) || it.host == hosts[host]) {
			return it
		}
	}
	return item{e: c.spec.Root, path: "system"}
}
