package topo

import (
	"errors"
	"fmt"
	"sort"
)

// Host is one machine, or one multi-node NVLink domain, as NCCL sees it: one
// System for every group of GPUs that P2P or SHM joins (usually one).
type Host struct {
	Spec    *Spec
	Systems []*System
	// SystemOf gives, by local rank, the index into Systems.
	SystemOf []int
	// GPUs lists, by local rank, where the GPU is and what it is.
	GPUs []GPUInfo
	// Nets lists the names of the nets by plugin index; MadeNets those of them
	// that NIC fusion made.
	Nets, MadeNets []string
	// Fused is the tree the ranks agree on; Dump the one that
	// NCCL_TOPO_DUMP_FILE would hold, with physical NICs (topo.cc:1343).
	Fused, Dump *Element
	// Whole is the machine before it was split, with the verdicts that split it;
	// nil where there is only one System.
	Whole *System
}

// NRanks counts the local ranks.
func (h *Host) NRanks() int { return len(h.GPUs) }

// System returns the System of a local rank.
func (h *Host) System(local int) *System { return h.Systems[h.SystemOf[local]] }

// ErrNoGPU marks a topology that has no GPU to run on.
var ErrNoGPU = errors.New("no GPU")

// noGPU says so with the place of the topology.
func noGPU(spec *Spec) error {
	e := &Error{Problem: "no <gpu>: the file names PCI places only, or nothing", Err: ErrNoGPU,
		Hint: `run NCCL with NCCL_TOPO_DUMP_FILE on the machine, or write <gpu dev="0" sm="90" gdr="1"/> into the <pci> of each GPU`}
	if spec != nil && spec.Root != nil {
		e.Pos, e.Path = spec.Root.Origin, spec.Root.Name
	}
	return Errors{e}
}

// SplitHostsError reports that a Spec of several hosts was asked to be taken as
// separate machines.
type SplitHostsError struct{ Hosts int }

// Error says what to do instead.
func (e *SplitHostsError) Error() string {
	return fmt.Sprintf("the topology holds %d hosts of one NVLink domain and NCCL_MNNVL_ENABLE=0 takes them apart; give each host's file by itself", e.Hosts)
}

// Build applies NCCL's rules to a Spec: what each local rank keeps of it, how
// those trees are fused, NIC fusion, nodes, links and paths, and the split into
// groups that can communicate without the network (topo.cc:1416, paths.cc:641,
// paths.cc:778). Errors are Errors with positions where the Spec is at fault.
func Build(spec *Spec, p Params) (*Host, error) {
	if err := p.Rules.Check("topo"); err != nil {
		return nil, err
	}
	if spec == nil || spec.Root == nil {
		return nil, noGPU(spec)
	}
	if err := examine(spec, &p); err != nil {
		return nil, err
	}
	views, err := hostViews(spec, &p, true)
	if err != nil {
		return nil, err
	}
	h := &Host{Spec: spec}
	for i, v := range views {
		h.MadeNets = append(h.MadeNets, v.made...)
		if i == 0 {
			h.Nets = v.nets
		}
	}
	physical, err := hostViews(spec, &p, false)
	if err != nil {
		return nil, err
	}
	if h.Dump, err = fuseHosts(physical, &p); err != nil {
		return nil, err
	}
	if h.Fused, err = fuseHosts(views, &p); err != nil {
		return nil, err
	}
	adopt(h.Fused)
	d := assemble(h.Fused, p.Rules)
	d.holdable()
	d.missingGPUs()
	if len(d.errs) > 0 {
		return nil, d.pathsIn(spec)
	}
	if len(d.of[CPU]) == 0 || len(d.of[GPU]) == 0 {
		return nil, noGPU(spec)
	}
	return h, h.split(d, &p)
}

// hostViews prepares every host of a Spec.
func hostViews(spec *Spec, p *Params, fuse bool) ([]*hostView, error) {
	roots := splitHosts(spec.Root)
	if p.SplitHosts && len(roots) > 1 {
		return nil, &SplitHostsError{len(roots)}
	}
	local, err := CountGPUs(spec, p)
	if err != nil {
		return nil, err
	}
	needNet := p.NRanks > local
	views := make([]*hostView, len(roots))
	left := p.GPUs
	for i, r := range roots {
		own := *p
		own.GPUs = left
		v, err := newHostView(r, &own, needNet, fuse)
		if err != nil {
			return nil, err
		}
		left.Value -= len(v.gpus)
		views[i] = v
	}
	return views, nil
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
	nRanks := p.NRanks
	if nRanks == 0 {
		nRanks = len(h.GPUs)
	}
	systems, err := complete(whole, p, nRanks)
	if err != nil {
		return d.locate(err)
	}
	h.Systems = systems
	sort.SliceStable(h.Systems, func(i, j int) bool { return h.Systems[i].lowestRank() < h.Systems[j].lowestRank() })
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

// pathsIn gives the problems with paths as in the file, not as in the fused
// tree.
func (d *draft) pathsIn(spec *Spec) Errors {
	nameIn(spec, d.errs, d.errAt)
	return d.errs
}

// missingGPUs reports ranks whose GPU is where NCCL does not look.
func (d *draft) missingGPUs() {
	seen := map[*Element]bool{}
	for _, v := range d.of[GPU] {
		seen[v.from] = true
	}
	for _, g := range collect(d.root, "gpu", nil) {
		if r, _ := g.Get("rank"); r == "" || seen[g] {
			continue
		}
		problem, hint := noGPUHere, whereToPut
		for up := g.up; up != nil; up = up.up {
			switch {
			case up == g.up && up.Name == "pci" && up.Child("gpu") != g:
				problem, hint = "a second GPU in one <pci>: NCCL "+d.rules.Version()+" sees the first only", "give it a <pci> of its own"
			case up != g.up && up.Name == "pci" && up.Child("nic") != nil:
				problem = "below a <pci> that also holds a <nic>, which NCCL takes for the NIC alone"
				hint = "put the <nic> into a <pci> of its own beside this one"
			case up != g.up && up.Name == "pci" && up.Child("gpu") != nil:
				problem, hint = "below another GPU's <pci>, where NCCL does not look", "put it beside that one"
			}
		}
		d.complain(g, "", problem, hint)
	}
}

// locate gives an error about a node the place of its declaration.
func (d *draft) locate(err error) error {
	var p *PathError
	if !errors.As(err, &p) {
		return err
	}
	n := p.At
	for k := range d.of {
		if int(n) < len(d.of[k]) {
			e := d.of[k][n].from
			return Errors{{Pos: e.Origin, Path: PathOf(e, aboveOf(e)), Problem: p.Node + ": " + p.Problem, Hint: p.Hint, Err: err}}
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
		return 0, noGPU(spec)
	}
	total := len(collect(spec.Root, "gpu", nil))
	if total == 0 {
		return 0, noGPU(spec)
	}
	if k := p.GPUs; k.Set {
		if k.Value < 1 || k.Value > total {
			return 0, &TooManyGPUsError{Asked: k.Value, Found: total}
		}
		total = k.Value
	}
	return total, nil
}
