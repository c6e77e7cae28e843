// Package preset finds the graphs that RCCL has ready for a machine that it knows, before any search
// (graph/rome_models.cc, search.cc:1161 of RCCL 2.30.4).
//
// In: a System, and which host of how many it is. Out: the model that matched, its options, and a ring and a
// tree graph, which search.Params.Given takes; nothing where no model matches. Releases without presets
// (rules.Search.Presets) have none.
package preset

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
)

// Host says which host of a communicator a System is.
type Host struct {
	Index, Count int
	Ranks        int // of the communicator
	// Uneven: hosts have different numbers of ranks (rules.Search.PresetsEven).
	Uneven bool
	Settings
}

// Settings are the user's; the zero value is RCCL's defaults.
type Settings struct {
	Off      bool // RCCL_MODEL_MATCHING_DISABLE: nothing is known of any machine
	Forwards bool // RCCL_MODEL_REVERSAL_DISABLE: rings of odd hosts go forwards
	NoRails  bool // RCCL_DISABLE_RAIL_TREES
	OwnNets  bool // RCCL_DISABLE_NET_OVERRIDE: paths to nets stay
}

// Indices of Result.Model beside a place in the list of models.
const (
	None   = -1
	GigaIO = 1000000 // graph/topo.h:110
	Hives  = 1000001
)

// Result is what is known of a machine.
type Result struct {
	Model int // place in RCCL's list, or one of the indices above
	// Name is the model's in RCCL's source, "81" for rome_model_81, or Chordal. Matcher is the function that
	// found it, and Line that of the model; GPUs and NICs are the devices and the places of
	// nets that are the model's, in its order.
	Name, Matcher string
	Line          int
	GPUs, NICs    []int
	Kinds         topo.Kinds
	// Graphs are those that are ready, by their ids; one without channels says where a search begins.
	Graphs []*search.Graph
	// Tuning is the table of the model, -1 where it names none; BaseBW its bandwidth, 0 for none.
	Tuning                             int
	BaseBW                             float32
	LL128, PivotA2A, TreeDefined, Rail bool
	PivotRings                         int
	// Trees are those of GPUs by device that come with the graph of an id, "(4(2(3)(1))(6(5)))"
	// (treeBase in graph/rome_models.cc).
	Trees map[int][]string
	// Paired: GPUs whose neighbour by device is near a net are near to it, too (graph/rome_models.cc:2472).
	Paired bool

	find *finder // nil where nothing was tried
}

// finder matches one machine.
type finder struct {
	m   *machine
	h   Host
	res *Result
}

// Of finds what is known of a System.
func Of(sys *topo.System, h Host) *Result {
	res := &Result{Model: None, Kinds: sys.Kinds, Tuning: -1}
	if s := &sys.Rules.Search; s.Presets == 0 || s.PresetsEven && h.Uneven || h.Off ||
		len(sys.Of(topo.GPU)) == 0 ||
		len(sys.Of(topo.CPU)) == 0 {
		return res
	}
	f := &finder{m: newMachine(sys, h.Ranks), h: h, res: res}
	res.find = f
	for _, id := range []int{search.RingID, search.TreeID} {
		for _, match := range []struct {
			name  string
			graph func(id int) *search.Graph
		}{{"parseChordalRing", f.chordal}, {"parseA2a8P", f.allToAll}, {"parseRome4P2H", f.rome4P2H},
			{"parse1H16P", f.oneHost16}, {"parse4H4P", f.fourHives}, {"parseGIOTopos", f.gigaIO}} {
			g := match.graph(id)
			if g == nil {
				continue
			}
			res.Graphs = append(res.Graphs, g)
			if g.NChannels > 0 {
				res.Matcher = match.name
				break
			}
		}
	}
	return res
}

// known are the models of the release that are matched in turn.
func (f *finder) known() []*model { return models()[:f.m.sys.Rules.Search.Presets] }

// settle takes the options of a model (graph/rome_models.cc:2037).
func (f *finder) settle(ref *model) {
	r := f.res
	if v, ok := ref.options["tuning"]; ok {
		r.Tuning, _ = strconv.Atoi(v)
	}
	if v, ok := ref.options["baseBw"]; ok {
		bw, _ := strconv.ParseFloat(v, 32)
		r.BaseBW = float32(bw)
	}
	if v, ok := ref.options["pivotA2ANumBiRings"]; ok {
		r.PivotRings, _ = strconv.Atoi(v)
	}
	r.LL128 = r.LL128 || ref.on("ll128Enabled")
	r.PivotA2A = r.PivotA2A || ref.on("pivotA2AEnabled")
	r.TreeDefined = r.TreeDefined || ref.on("treeDefined")
}

// draw makes a graph of a model's rings for GPUs by the devices of the mapping.
func (f *finder) draw(id int, rings []string, to mapping, reverse bool) *search.Graph {
	d := drawing{m: f.m, id: id, nics: to.nics, reverse: reverse}
	for _, g := range to.gpus {
		d.gpus = append(d.gpus, f.m.devs[g])
	}
	return d.graph(rings)
}

// take draws the graph of a pattern from a model: rings of odd hosts backwards, and where the number of
// hosts is odd those of the last two as the model has them (graph/rome_models.cc:2640).
func (f *finder) take(id, index int, ref *model, to mapping, rails bool) *search.Graph {
	f.settle(ref)
	h := &f.h
	if id == search.RingID {
		rings, reverse := ref.rings, h.Index%2 == 1 && !h.Forwards
		if h.Count%2 == 1 && h.Count > 1 && ref.tail1 != nil && ref.tail2 != nil {
			switch h.Index {
			case h.Count - 1:
				rings, reverse = ref.tail1, false
			case h.Count - 2:
				rings, reverse = ref.tail2, false
			}
		}
		return f.marked(index, ref, to, f.draw(id, rings, to, reverse))
	}
	var g *search.Graph
	if f.res.Rail = false; rails && ref.rails != nil && !f.h.NoRails {
		d := drawing{m: f.m, id: id, gpus: to.gpus, nics: to.nics}
		g = d.graph(ref.rails)
		f.res.Rail = g.NChannels > 0
	}
	if g == nil || g.NChannels == 0 {
		f.named(id, ref, func(g int) int {
			if !rails { // RCCL takes the place for the device there
				return to.gpus[g]
			}
			return f.m.devs[to.gpus[g]]
		})
		g = f.draw(id, ref.rings, to, false)
	}
	f.res.Paired = ref.on("netOverride") && !f.h.OwnNets &&
		!(f.res.Rail && f.m.sys.Rules.Search.RailsKeepPaths)
	return f.marked(index, ref, to, g)
}

func (f *finder) marked(index int, ref *model, to mapping, g *search.Graph) *search.Graph {
	if r := f.res; g.NChannels > 0 {
		r.Model, r.Name, r.Line, r.NICs, r.GPUs = index, ref.name, ref.line, to.nics, nil
		for _, i := range to.gpus {
			r.GPUs = append(r.GPUs, f.m.devs[i])
		}
	}
	return g
}

// Rival is a model of RCCL's, of as many GPUs, that the machine is not.
type Rival struct {
	Name string `json:"name"` // in RCCL's source
	Line int    `json:"line"` // of graph/rome_models.cc
	Why  string `json:"why"`
}

// Rivals are those, in the order in which RCCL tries them, and how many more models have other numbers of
// GPUs.
func (r *Result) Rivals() (list []Rival, others int) {
	if r.find == nil {
		return nil, 0
	}
	m := r.find.m
	for i, ref := range r.find.known() {
		if i == r.Model {
			continue
		}
		if len(ref.gpus) != len(m.gpus) {
			others++
			continue
		}
		why := m.misfit(ref, true)
		if len(m.gpus) <= 8 {
			_, why = m.fit(ref)
		} else if _, ok := m.fitByNUMA(ref); !ok && why == "" {
			why = gpusDiffer
		}
		why = cmp.Or(why, "fits as well, after the model that is taken")
		list = append(list, Rival{ref.name, ref.line, why})
	}
	return list, others
}

// allToAll matches eight GPUs on two CPUs, each joined with each (graph/rome_models.cc:2500).
func (f *finder) allToAll(id int) *search.Graph {
	m := f.m
	if len(m.gpus) != 8 || m.cpus != 2 || m.width() == 0 {
		return nil
	}
	for i, ref := range f.known() {
		if ref.width() == 0 {
			continue
		}
		to, ok := m.fitByNUMA(ref)
		if !ok {
			continue
		}
		f.res.Kinds |= topo.Rome4P2H
		return f.take(id, i, ref, to, true)
	}
	return nil
}

// rome4P2H matches up to eight GPUs (graph/rome_models.cc:2690).
func (f *finder) rome4P2H(id int) *search.Graph {
	m := f.m
	if len(m.gpus) > 8 {
		return nil
	}
	if len(m.gpus) > 4 && m.links > 0 {
		f.res.Kinds |= topo.Rome4P2H
	}
	for i, ref := range f.known() {
		to, why := m.fit(ref)
		switch {
		case why == nicsDiffer && m.several(): // RCCL looks no further
			return nil
		case why != "":
			continue
		}
		return f.take(id, i, ref, to, false)
	}
	return nil
}

// oneHost16 matches sixteen GPUs on four CPUs (graph/rome_models.cc:2858).
func (f *finder) oneHost16(id int) *search.Graph {
	m := f.m
	if !m.rome() || len(m.gpus) != 16 || m.cpus != 4 {
		return nil
	}
	for i, ref := range f.known() {
		to, ok := m.fitByNUMA(ref)
		if !ok {
			continue
		}
		f.res.Kinds |= topo.OneHost16
		f.settle(ref)
		f.named(id, ref, func(g int) int { return f.m.devs[to.gpus[g]] })
		return f.marked(i, ref, to, f.draw(id, ref.rings, to, false))
	}
	return nil
}

// fourHives matches four groups of four GPUs with a NIC beside each (graph/rome_models.cc:3038).
func (f *finder) fourHives(id int) *search.Graph {
	m := f.m
	const n = 16
	if !m.rome() || len(m.gpus) != n || len(m.nics) != n {
		return nil
	}
	to := mapping{gpus: m.hivesOf(4), nics: make([]int, n)}
	if to.gpus == nil {
		return nil
	}
	for i := range to.nics {
		to.nics[i] = -1
	}
	for i := range n {
		beside := -1
		for j, g := range to.gpus {
			if m.near[i*n+g] == topo.PathPIX {
				beside = j
				break
			}
		}
		if beside < 0 {
			return nil
		}
		to.nics[beside] = i
	}
	for _, v := range to.nics {
		if v < 0 {
			return nil
		}
	}
	f.res.Kinds |= topo.Rome4P2H
	ref := named(hives) // which has no options
	return f.marked(Hives, ref, to, f.draw(id, ref.rings, to, false))
}

// gigaIO matches two groups of eight GPUs without NICs (graph/rome_models.cc:3158).
func (f *finder) gigaIO(id int) *search.Graph {
	m := f.m
	if len(m.gpus) != 16 || m.cpus > 2 || len(m.nics) != 0 {
		return nil
	}
	to := mapping{gpus: m.hivesOf(8)}
	if to.gpus == nil {
		return nil
	}
	f.res.Kinds |= topo.Rome4P2H
	ref := named(gigaIO)
	return f.marked(GigaIO, ref, to, f.draw(id, ref.rings, to, false))
}

// System is the System after the model: with the paths to nets that it overrides (graph/rome_models.cc:2472).
func (r *Result) System(sys *topo.System) *topo.System {
	if r.Kinds != sys.Kinds {
		sys = sys.WithKinds(r.Kinds)
	}
	if !r.Paired {
		return sys
	}
	gpus := sys.Of(topo.GPU)
	return sys.WithNetKinds(func(g, net topo.NodeID) topo.PathKind {
		kind := sys.Path(g, net).Kind
		for i, o := range gpus {
			if sys.Path(o, net).Kind != topo.PathPXB {
				continue
			}
			pair := sys.Nodes[o].GPU.Dev / 2
			for k, p := range gpus { // the first beside it
				if k != i && sys.Nodes[p].GPU.Dev/2 == pair {
					if p == g {
						kind = topo.PathPXB
					}
					break
				}
			}
		}
		return kind
	})
}

// Params are those of a search that goes on from what is known.
func (r *Result) Params(sys *topo.System, p search.Params) search.Params {
	p.Given = append(p.Given[:len(p.Given):len(p.Given)], r.Graphs...)
	ready := slices.ContainsFunc(r.Graphs, func(g *search.Graph) bool {
		return g.ID == search.RingID && g.NChannels > 0
	})
	if most := sys.Rules.Search.RomeRings; most > 0 && r.Kinds&topo.Rome4P2H != 0 && !sys.Inter && !ready {
		p.RingChannels = most
	}
	return p
}
