package logcheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/ncclog"
)

// guess is an assumption about what the log does not state of a communicator's machine: for each question the
// index of one possible answer.
type guess [numQuestions]int

// Questions, in the order in which they are asked.
const (
	qRelease = iota // where the log names no version
	qSM             // compute capability
	qDirect         // GPUDirect RDMA of NETs without a line about it
	qLatency        // of the network's plugin
	qNodes          // number of nodes, where no line has the number of ranks
	numQuestions

	qPrint = numQuestions // a line that is lost of a system print
)

// fit is a machine with how well it explains a communicator's lines.
type fit struct {
	site  *scenario.Site
	of    *machine // nil where a topology file is given
	notes []string

	equal, differing, absent int
}

// better reports whether a fit explains more than another. Lines that are missing
// distinguish compute capabilities (of NVLS, of C2C): of other questions, parts of a log
// that were left out would decide.
func (f *fit) better(than *fit, q int) bool {
	switch {
	case than == nil:
		return true
	case f.equal != than.equal:
		return f.equal > than.equal
	case f.differing != than.differing:
		return f.differing < than.differing
	}
	return q == qSM && f.absent < than.absent
}

// whole: every line is explained, and no more are missing than were added.
func (f *fit) whole(added int) bool { return f.differing == 0 && f.absent <= added }

// finder searches for the machine of a communicator that explains the log best.
type finder struct {
	in       *Input
	c        *ncclog.Communicator
	nranks   int // 0 where no line says it
	releases []*rules.Ruleset
	sms      []int
	direct   []bool
	latency  []int
	nodes    []int
	tree     map[*ncclog.Rank][]ncclog.Text // of system prints
	added    []string                       // lines that were lost of one
	trials   int
	err      error // of the first trial
}

// maxTrials bounds the machines that are tried for a communicator, by its ranks: the
// search of a large one takes long.
func maxTrials(nranks int) int { return min(max(3200/max(nranks, 1), 16), 200) }

// explain builds the communicator with each possible answer, question by question, and keeps the answer with
// which most lines agree. If the fit is nil, the string is the reason why the communicator is left out.
func (in *Input) explain(c *ncclog.Communicator, r *rules.Ruleset) (*fit, string, error) {
	f := &finder{in: in, c: c, nranks: c.NRanks, releases: []*rules.Ruleset{r}, sms: []int{0},
		direct: []bool{false}, latency: []int{0}, nodes: []int{1}}
	if why, err := f.questions(); why != "" || err != nil {
		return nil, why, err
	}
	sizes := [numQuestions]int{qRelease: len(f.releases), qSM: len(f.sms), qDirect: len(f.direct),
		qLatency: len(f.latency), qNodes: len(f.nodes)}
	var at guess
	best := f.trial(at)
	if f.in.Topo == nil {
		best = f.repair(at, best, true)
	}
	tied := [numQuestions]bool{}
	for pass := range 2 {
		before := best
		for q, n := range sizes {
			tied[q] = false
			for v := range n {
				if best != nil && best.whole(len(f.added)) || f.trials >= maxTrials(f.nranks) {
					break
				}
				next := at
				if next[q] = v; v == at[q] {
					continue
				}
				t := f.trial(next)
				if t == nil {
					continue
				}
				tied[q] = tied[q] || best != nil && !t.better(best, q) && !best.better(t, q)
				if t.better(best, q) {
					best, at = t, next
				}
			}
		}
		if best == before && pass == 0 {
			break
		}
	}
	if f.in.Topo == nil && best != nil && best.differing > 0 {
		best = f.repair(at, best, false)
	}
	var ranks *RanksError
	var nothing *NothingError
	switch {
	case best != nil:
	case errors.As(f.err, &ranks):
		return nil, ranks.Error(), nil
	case errors.As(f.err, &nothing):
		return nil, nothing.Why, nil
	default:
		return nil, "", f.err
	}
	best.notes = append(best.notes, f.said(at, tied)...)
	if best.differing > 0 {
		best.notes = append(best.notes, f.suspect(at, best))
	}
	return best, "", nil
}

// said returns notes about the answers that were found by trial.
func (f *finder) said(at guess, tied [numQuestions]bool) []string {
	var out []string
	if len(f.direct) > 1 {
		word := map[bool]string{true: "can", false: "cannot"}[f.direct[at[qDirect]]]
		if tied[qDirect] {
			out = append(out, fmt.Sprintf("no line says whether NETs can do GPU Direct RDMA; the log is "+
				"the same either way, and that they %s is assumed", word))
		} else {
			out = append(out,
				fmt.Sprintf("no line says whether NETs can do GPU Direct RDMA; that they %s explains the log",
					word))
		}
	}
	if len(f.added) > 0 {
		out = append(out, fmt.Sprintf("the system print lacks lines; with %q the log is explained", f.added))
	}
	if at[qLatency] > 0 {
		out = append(out,
			fmt.Sprintf("no line says the latency of NETs; %d us, as aws-ofi-nccl reports it, explain the "+
				"log", f.latency[at[qLatency]]))
	}
	if len(f.nodes) > 1 {
		out = append(out, fmt.Sprintf("no line says how many nodes there are; %d %s", f.nodes[at[qNodes]],
			map[bool]string{true: "explain no less than others, and are assumed",
				false: "explain the log"}[tied[qNodes]]))
	}
	return out
}

// questions collects the questions that the log leaves open, with their possible answers.
func (f *finder) questions() (why string, err error) {
	if f.in.version() == "" {
		f.releases = f.releases[:0]
		library, first := rules.NCCL, []string{""} // the default
		if f.in.Log.RCCL {
			library, first = rules.RCCL, nil
		}
		known := rules.KnownOf(library)
		slices.Reverse(known)
		for _, text := range append(first, known...) {
			r, _, err := release.Select(text)
			if err != nil {
				return "", err
			}
			if len(f.releases) == 0 || r.Version() != f.releases[0].Version() {
				f.releases = append(f.releases, r)
			}
		}
	}
	if f.in.Topo != nil {
		if f.nranks == 0 {
			f.nodes = []int{1, 2, 4, 8, 3, 16, 6, 32, 12, 64}
		}
		return "", nil
	}
	f.trees()
	k := f.longest()
	if k == nil {
		return fmt.Sprintf("communicator %s: no rank printed its system", f.c.ID), nil
	}
	nodes, err := f.printsOf(f.releases[0], guess{})
	if len(nodes) == 0 { // of what is left of it with a line more
		have := f.tree[k]
		for _, a := range additions(k, f.c, have) {
			f.tree[k] = a.tree
			if nodes, _ = f.printsOf(f.releases[0], guess{}); len(nodes) > 0 {
				break
			}
		}
		if f.tree[k] = have; len(nodes) == 0 {
			return fmt.Sprintf("communicator %s: no rank printed its system", f.c.ID), err
		}
	}
	f.sms = candidates(f.in.Log, nodes, &f.releases[0].Topo)
	if slices.ContainsFunc(nodes, func(p *printed) bool { return p.open }) {
		f.direct = []bool{true, false}
		if f.in.Log.Network == "Socket" {
			f.direct = []bool{false}
		}
	}
	switch network := f.in.Log.Network; {
	case strings.Contains(network, "Libfabric"):
		f.latency = []int{efaLatency, efaLatencyP6}
	case network == "":
		f.latency = []int{0, efaLatency, efaLatencyP6}
	}
	if f.nranks == 0 {
		f.nodes = []int{1, 2}
	}
	return "", nil
}

// trial builds the machine of a guess and counts agreeing lines; nil if no such machine can be built.
func (f *finder) trial(g guess) *fit { return f.trialBy(f.releases[g[qRelease]], g) }

// trialBy is trial under given rules.
func (f *finder) trialBy(r *rules.Ruleset, g guess) *fit {
	f.trials++
	t, err := f.make(r, g)
	if err != nil {
		if f.err == nil {
			f.err = err
		}
		return nil
	}
	rep := newReport(f.in.Log)
	rep.compare(f.c, t.site)
	for _, s := range rep.Sections {
		t.equal += s.Equal
		t.differing += s.Compared - s.Equal
	}
	for _, n := range rep.absent {
		t.absent += n
	}
	return t
}

// make builds the machine of a guess and lays out its communicator.
func (f *finder) make(r *rules.Ruleset, g guess) (*fit, error) {
	env, _ := settings(f.in.Log)
	env = append(env, f.in.Env...)
	cast := ncclog.Unknown
	for _, k := range f.c.Ranks {
		cast = max(cast, k.Multicast)
	}
	if f.in.Topo != nil {
		return f.given(r, env, cast, f.nodes[g[qNodes]])
	}
	nodes, err := f.printsOf(r, g)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &NothingError{fmt.Sprintf("communicator %s: no rank printed its system", f.c.ID)}
	}
	c := *f.c
	if f.nranks == 0 {
		last := nodes[len(nodes)-1]
		c.NRanks = max(last.first()+f.nodes[g[qNodes]]*len(last.gpus), f.highest(len(last.gpus)))
	}
	m, err := fromLog(&c, nodes, r, f.sms[g[qSM]])
	if err != nil {
		return nil, err
	}
	t := &fit{of: m}
	for _, n := range nodes {
		if notes := strings.Join(n.notes, "; "); notes != "" {
			t.notes = append(t.notes, notes)
		}
	}
	m.sm = f.sms[g[qSM]]
	t.site, err = m.load(r, env, cast)
	return t, err
}

// highest returns the number of ranks that the highest rank in rings and trees implies, in whole nodes of a
// size.
func (f *finder) highest(size int) int {
	n := 0
	for _, k := range f.c.Ranks {
		for _, l := range k.Lines {
			if sectionOf(l.Text) == "trees" || strings.HasPrefix(l.Text, "Ring ") {
				_, rest, _ := strings.Cut(l.Text, " ")
				for _, v := range rankNumber().FindAllString(rest, -1) {
					n = max(n, atoi(strings.TrimLeft(v, ">:/ "))+1)
				}
			}
		}
	}
	return (n + size - 1) / size * size
}

// rankNumber is a number of a ring or tree line that is a rank: not the index of a
// channel in brackets or in front of a colon.
var rankNumber = ncclog.Pattern(`(?:->|-> |/|: )\d+`)

// given loads the topology file that replaces the log's print.
func (f *finder) given(r *rules.Ruleset, env []string, cast ncclog.Known, nodes int) (*fit, error) {
	m := &machine{files: memory{f.in.Topo.Name: f.in.Topo.Data}}
	for _, k := range f.c.Ranks {
		if k.NNodes > 0 {
			nodes = k.NNodes
		}
		m.spec.GPUs = max(m.spec.GPUs, k.LocalRanks)
	}
	m.spec.Nodes = []scenario.Nodes{{Topo: f.in.Topo.Name, Count: nodes}}
	site, err := m.load(r, env, cast)
	if err != nil {
		return nil, err
	}
	if f.nranks > 0 && site.Comm.NRanks != f.nranks && nodes == 1 && f.nranks%site.Comm.NRanks == 0 {
		// No line states the number of nodes.
		nodes = f.nranks / site.Comm.NRanks
		m.spec.Nodes[0].Count = nodes
		if site, err = m.load(r, env, cast); err != nil {
			return nil, err
		}
	}
	if f.nranks > 0 && site.Comm.NRanks != f.nranks {
		return nil, &RanksError{f.c.ID, f.nranks, f.in.Topo.Name, nodes, site.Comm.NRanks}
	}
	return &fit{site: site}, nil
}

// RanksError reports that a topology file lacks ranks of a communicator.
type RanksError struct {
	Comm          string
	Ranks         int
	Topo          string
	Nodes, Having int
}

func (e *RanksError) Error() string {
	return fmt.Sprintf("communicator %s has %d ranks, %s with %d nodes %d", e.Comm, e.Ranks, e.Topo, e.Nodes,
		e.Having)
}
