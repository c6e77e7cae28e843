package topo

import (
	"cmp"
	"errors"
	"fmt"
	"sort"

	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo/decl"
	"github.com/simccl/simccl/topo/internal/view"
	"github.com/simccl/simccl/units"
)

// Host is one machine, or one multi-node NVLink domain, as NCCL sees it: one
// System for every group of GPUs that P2P or SHM joins (usually one).
type Host struct {
	Spec    *Spec
	Systems []*System
	// SystemOf maps a local rank to its index in Systems.
	SystemOf []int
	// GPUs describes the GPU of each local rank and the node that it is.
	GPUs []GPUInfo
	// Nets lists the names of the nets by plugin index; MadeNets lists those that NIC fusion made.
	Nets, MadeNets []string
	// Fused is the tree the ranks agree on; Dump the one that
	// NCCL_TOPO_DUMP_FILE would hold, with physical NICs (topo.cc:1343).
	Fused, Dump *Element
	// Whole is the machine before the split, with the verdicts that caused it; nil if there is only one
	// System.
	Whole *System
}

// NRanks counts the local ranks.
func (h *Host) NRanks() int { return len(h.GPUs) }

// System returns the System that contains the GPU of a local rank.
func (h *Host) System(local int) *System { return h.Systems[h.SystemOf[local]] }

// SplitHostsError reports that a Spec of several hosts was asked to be taken as
// separate machines.
type SplitHostsError struct{ Hosts int }

// Error names the number of hosts and says to give each host's file separately.
func (e *SplitHostsError) Error() string {
	return fmt.Sprintf("the topology holds %d hosts of one NVLink domain and NCCL_MNNVL_ENABLE=0 takes "+
		"them apart; give each host's file by itself", e.Hosts)
}

// LibraryError reports that the rules are of one library (NCCL or RCCL) and the topology is for the other.
type LibraryError struct {
	Spec    string
	Library rules.Library // that it is for
	Rules   *rules.Ruleset
}

// Error says which version option to change.
func (e *LibraryError) Error() string {
	if e.Library == rules.RCCL {
		return fmt.Sprintf("%s is of a machine with GPUs of AMD, for which %s does not decide; leave the "+
			"version out "+
			"or name one of RCCL (--rccl-version)", e.Spec, e.Rules.Name())
	}
	return fmt.Sprintf("%s is a file of NCCL, and the rules are of %s: one communicator has one library; "+
		"leave the "+
		"version out or name one of NCCL", e.Spec, e.Rules.Name())
}

// Build applies NCCL's rules to a Spec: the tree that each local rank keeps, the fusion of these trees, NIC
// fusion, nodes, links and paths, and the split into groups that communicate without the network
// (topo.cc:1416, paths.cc:641, paths.cc:778). Errors in the Spec are Errors with positions.
func Build(spec *Spec, p Params) (*Host, error) {
	if err := p.Rules.Check("topo"); err != nil {
		return nil, err
	}
	if l := spec.Library(); spec != nil && l != p.Rules.Library {
		return nil, &LibraryError{Spec: spec.Name, Library: l, Rules: p.Rules}
	}
	if spec == nil || spec.Root == nil {
		return nil, decl.NoGPU(spec)
	}
	if err := examine(spec, &p); err != nil {
		return nil, err
	}
	views, err := hostViews(spec, &p, view.Settings{})
	if err != nil {
		return nil, placed(spec, err)
	}
	h := &Host{Spec: spec}
	for i, v := range views {
		h.MadeNets = append(h.MadeNets, v.Made...)
		if i == 0 {
			h.Nets = v.Nets
		}
	}
	physical, err := hostViews(spec, &p, view.Settings{Physical: true})
	if err != nil {
		return nil, err
	}
	if h.Dump, err = view.Join(physical, p.poll); err != nil {
		return nil, err
	}
	if h.Fused, err = view.Join(views, p.poll); err != nil {
		return nil, err
	}
	h.Fused.SetParents()
	d := assemble(h.Fused, &p)
	d.holdable()
	d.missingGPUs()
	if len(d.errs) > 0 {
		return nil, d.pathsIn(spec)
	}
	if len(d.of[CPU]) == 0 || len(d.of[GPU]) == 0 {
		return nil, decl.NoGPU(spec)
	}
	return h, h.split(d, &p)
}

// hostViews prepares every host of a Spec; Params give all settings of s but
// Physical.
func hostViews(spec *Spec, p *Params, s view.Settings) ([]*view.Host, error) {
	roots := decl.SplitHosts(spec.Root)
	if p.SplitHosts && len(roots) > 1 {
		return nil, &SplitHostsError{len(roots)}
	}
	local, err := CountGPUs(spec, p)
	if err != nil {
		return nil, err
	}
	s.Rules, s.GPUs, s.Keep, s.NeedNet = p.Rules, p.GPUs, p.Keep, p.NRanks > local
	s.ForceMerge, s.MergeNICsDisabled, s.IBHCA, s.SocketsOnly, s.CollNet = p.ForceMerge, p.MergeNICsDisabled,
		p.IBHCA, p.SocketsOnly, p.CollNet
	if p.MergeLevel.Set {
		s.MergeLevel = units.Some(rules.Level(p.MergeLevel.Value))
	}
	views := make([]*view.Host, len(roots))
	for i, r := range roots {
		here := len(r.All("gpu"))
		v, err := view.New(r, &s)
		if err != nil {
			return nil, err
		}
		s.GPUs.Value -= len(v.GPUs)
		s.Keep = after(s.Keep, here)
		views[i] = v
	}
	return views, nil
}

// after drops the first n local ranks of keep and renumbers the others from 0; nil (all ranks) stays nil.
func after(keep []int, n int) []int {
	if keep == nil {
		return nil
	}
	out := []int{}
	for _, k := range keep {
		if k >= n {
			out = append(out, k-n)
		}
	}
	return out
}

// split lays the paths, and makes a System of each group of GPUs that P2P or
// SHM joins (paths.cc:778).
func (h *Host) split(d *draft, p *Params) error {
	whole := d.freeze(p)
	h.GPUs = make([]GPUInfo, len(whole.of[GPU]))
	h.SystemOf = make([]int, len(h.GPUs))
	for _, n := range whole.of[GPU] {
		g := whole.Nodes[n].GPU
		h.GPUs[g.Rank] = *g
	}
	nRanks := cmp.Or(p.NRanks, len(h.GPUs))
	systems, err := complete(whole, p, nRanks)
	if err != nil {
		return d.locate(err)
	}
	h.Systems = systems
	sort.SliceStable(h.Systems, func(i, j int) bool {
		return h.Systems[i].lowestRank() < h.Systems[j].lowestRank()
	})
	for i, s := range h.Systems {
		for _, n := range s.of[GPU] {
			h.SystemOf[s.Nodes[n].GPU.Rank] = i
		}
	}
	if len(systems) > 1 {
		h.Whole = whole
	}
	return nil
}

// pathsIn returns the errors with element paths of the file, where the errors have those of the fused tree.
func (d *draft) pathsIn(spec *Spec) Errors {
	nameIn(spec, d.errs, d.errAt)
	return d.errs
}

// placed rewrites the element paths of an error to those of the file.
func placed(spec *Spec, err error) error {
	var errs Errors
	if errors.As(err, &errs) {
		at := make([]Origin, len(errs))
		for i, e := range errs {
			at[i] = e.Pos
		}
		nameIn(spec, errs, at)
	}
	return err
}

// missingGPUs records an error for each rank whose <gpu> is at a place of the tree that NCCL does not read.
func (d *draft) missingGPUs() {
	seen := map[*Element]bool{}
	for _, v := range d.of[GPU] {
		seen[v.from] = true
	}
	for _, g := range d.root.All("gpu") {
		if r, _ := g.Get("rank"); r == "" || seen[g] {
			continue
		}
		problem, hint := noGPUHere, whereToPut
		for up := g.Parent(); up != nil; up = up.Parent() {
			switch {
			case up == g.Parent() && up.Name == "pci" && up.Child("gpu") != g:
				problem, hint = "a second GPU in one <pci>: NCCL "+d.rules.Version()+" sees the first only",
					"give it a <pci> of its own"
				if d.rules.Topo.DevNodes { // graph/topo.cc:664 of v2.30.7
					problem = "a second GPU in one <pci>, which is not modelled"
				}
			case up != g.Parent() && up.Name == "pci" && up.Child("nic") != nil:
				problem = "below a <pci> that also holds a <nic>, which NCCL takes for the NIC alone"
				hint = "put the <nic> into a <pci> of its own beside this one"
			case up != g.Parent() && up.Name == "pci" && up.Child("gpu") != nil:
				problem, hint = "below another GPU's <pci>, where NCCL does not look",
					"put it beside that one"
			}
		}
		d.complain(g, "", problem, hint)
	}
}

// locate adds to a PathError the file position at which its node is declared.
func (d *draft) locate(err error) error {
	var p *PathError
	if !errors.As(err, &p) {
		return err
	}
	n := p.At
	for k := range d.of {
		if int(n) < len(d.of[k]) {
			e := d.of[k][n].from
			return Errors{{Pos: e.Origin, Path: decl.PathOf(e, above(e)), Problem: p.Node + ": " + p.Problem,
				Hint: p.Hint, Err: err}}
		}
		n -= NodeID(len(d.of[k]))
	}
	return err
}

func (s *System) lowestRank() int {
	low := s.Nodes[s.of[GPU][0]].GPU.Rank
	for _, n := range s.of[GPU] {
		low = min(low, s.Nodes[n].GPU.Rank)
	}
	return low
}

// CountGPUs counts the ranks that Build would give a Spec.
func CountGPUs(spec *Spec, p *Params) (int, error) {
	if spec == nil || spec.Root == nil {
		return 0, decl.NoGPU(spec)
	}
	total := len(spec.Root.All("gpu"))
	if total == 0 {
		return 0, decl.NoGPU(spec)
	}
	if p.Keep != nil {
		for i, k := range p.Keep {
			if k < 0 || k >= total || i > 0 && k <= p.Keep[i-1] {
				return 0, &TooManyGPUsError{Asked: k + 1, Found: total}
			}
		}
		if len(p.Keep) == 0 {
			return 0, &TooManyGPUsError{Asked: 0, Found: total}
		}
		return len(p.Keep), nil
	}
	if k := p.GPUs; k.Set {
		if k.Value < 1 || k.Value > total {
			return 0, &TooManyGPUsError{Asked: k.Value, Found: total}
		}
		total = k.Value
	}
	return total, nil
}

// TooManyGPUsError reports that more GPUs were asked for than the host has.
type TooManyGPUsError struct{ Asked, Found int }

// Error states the number of GPUs asked for and the number that the topology has.
func (e *TooManyGPUsError) Error() string {
	return fmt.Sprintf("%d GPUs a node asked for, the topology has %d", e.Asked, e.Found)
}
