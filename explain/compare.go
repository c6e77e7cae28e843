package explain

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Side is one of two communicators to compare.
type Side struct {
	Comm   *comm.Comm
	Access topo.Access
}

// Difference is what two sides decide and do differently, and why. An empty
// list means that nothing of its kind differs.
type Difference struct {
	Inputs  []Figure       `json:"inputs"`  // what was given: settings, files, faults
	Figures []Figure       `json:"figures"` // the communicator: ranks, graphs, channels
	Paths   []PathChange   `json:"paths"`
	Refused []OneSided     `json:"refused"`
	Choices []ChoiceChange `json:"choices"`
	Times   []TimeChange   `json:"times"` // of every size that was timed, changed or not
}

// Figure is one thing that is different on both sides.
type Figure struct {
	What string   `json:"what"` // "NVLS graph", "NCCL_ALGO"
	A    string   `json:"a"`
	B    string   `json:"b"`
	Why  []string `json:"why,omitempty"`
	// Timing is set for inputs that no decision depends on, only times: the
	// network between nodes, faults, how it is launched.
	Timing bool `json:"timing,omitempty"`
}

// PathChange is a run of pairs whose path changed in the same way.
type PathChange struct {
	A     string   `json:"a"` // "NVL 370.8 GB/s"
	B     string   `json:"b"`
	Pairs []string `json:"pairs"` // "GPU 0 -> GPU 4", in the topology's order
}

// OneSided is a rule that refuses paths on one side only.
type OneSided struct {
	In string `json:"in"` // "A" or "B"
	Refusal
}

// ChoiceChange is a range of sizes with another winner.
type ChoiceChange struct {
	Op   string      `json:"op"`
	From units.Bytes `json:"from"`
	To   units.Bytes `json:"to"`
	A    string      `json:"a"` // "Ring LL128"
	B    string      `json:"b"`
	Why  []string    `json:"why"`
}

// Timing is one operation as it ran on one side.
type Timing struct {
	Choice   string  `json:"choice"` // as ChoiceChange has it; "P2P" of sends and receives
	Channels int     `json:"channels"`
	ModelUs  float64 `json:"modelUs,omitempty"` // NCCL's cost model's, 0 where it has none
	Us       float64 `json:"us"`
	BusBW    float64 `json:"busbw"`
	Link     string  `json:"limitingLink,omitempty"`
	LinkUs   float64 `json:"limitingLinkUs,omitempty"` // what its bytes need at least
	// Draws are the times of draws of hashed routes, of which Us is the median; nil where the draw
	// does not matter, or is given.
	Draws []DrawTime `json:"draws,omitempty"`
}

// DrawTime is a time that so many draws have.
type DrawTime struct {
	Us  float64 `json:"us"`
	For int     `json:"for"`
}

// TimeChange is one size on both sides.
type TimeChange struct {
	Op    string      `json:"op"`
	Size  units.Bytes `json:"size"` // as it was asked for
	A     Timing      `json:"a"`
	B     Timing      `json:"b"`
	Ratio float64     `json:"ratio"` // B's time over A's; 0 where A has none
	Why   []string    `json:"why,omitempty"`
	// Faster is in which part of all pairs of draws of hashed routes B takes less time than A, Slower
	// more; nil without draws. By them it is said which side is faster, not by Ratio.
	Faster *float64 `json:"faster,omitempty"`
	Slower *float64 `json:"slower,omitempty"`
}

// Same reports whether nothing differs but what was given.
func (d *Difference) Same() bool {
	return len(d.Figures)+len(d.Paths)+len(d.Refused)+len(d.Choices) == 0 &&
		!slices.ContainsFunc(d.Times, func(t TimeChange) bool { return t.changed() })
}

// changed reports whether two times differ by more than the last digit shown.
func (t *TimeChange) changed() bool {
	return t.A.Choice != t.B.Choice || math.Abs(t.A.Us-t.B.Us) >= 0.005
}

// Compare compares the decisions of two sides for the given operations, of
// float sums. Times are added by AddTime.
func Compare(a, b Side, ops []coll.Func) (*Difference, error) {
	d := &Difference{Inputs: []Figure{}, Figures: []Figure{}, Paths: []PathChange{}, Refused: []OneSided{},
		Choices: []ChoiceChange{}, Times: []TimeChange{}}
	d.figures(a.Comm, b.Comm)
	d.paths(a.Comm, b.Comm)
	d.refused(a, b)
	for _, f := range ops {
		if f.IsP2P() {
			continue
		}
		if err := d.choices(a.Comm, b.Comm, tuning.Op{Func: f, Type: coll.Float32, RedOp: coll.Sum}); err !=
			nil {
			return nil, err
		}
	}
	return d, nil
}

// figures compares what the communicators are.
func (d *Difference) figures(a, b *comm.Comm) {
	add := func(what string, x, y string, why ...string) {
		if x != y {
			d.Figures = append(d.Figures, Figure{What: what, A: x, B: y, Why: why})
		}
	}
	number := func(what string, x, y int) { add(what, fmt.Sprint(x), fmt.Sprint(y)) }
	number("ranks", a.NRanks, b.NRanks)
	number("nodes", a.NNodes, b.NNodes)
	add("GPUs", gpuText(a), gpuText(b))
	add("CPUs", cpuText(a), cpuText(b))
	add("NVLink multicast", onOff(a.Multicast), onOff(b.Multicast))
	for id, g := range a.Final {
		if what := graphNames[id]; what != "" {
			x, y := graphText(g), graphText(b.Final[id])
			if x != y {
				add(what+" graph", x, y, graphWhy(a, b, id)...)
			}
		}
	}
	number("channels", a.NChannels, b.NChannels)
	number("channels of collectives", a.CollChannels, b.CollChannels)
	number("channels of NVLS", a.NVLSChannels, b.NVLSChannels)
	number("channels of send and receive", a.P2PChannels, b.P2PChannels)
	number("of them for one peer", a.P2PChannelsPerPeer, b.P2PChannelsPerPeer)
	number("chunk of send and receive, B", int(a.P2PChunkSize), int(b.P2PChunkSize))
	for _, p := range coll.Protocols() {
		number("buffer of "+p.String()+", B", int(a.BuffSizes[p]), int(b.BuffSizes[p]))
	}
	d.orders(a, b)
}

func gpuText(c *comm.Comm) string {
	if c.MinSM == c.MaxSM {
		return fmt.Sprintf("sm_%d", c.MinSM)
	}
	return fmt.Sprintf("sm_%d to sm_%d", c.MinSM, c.MaxSM)
}

// cpuText names the CPU by vendor and architecture, as the topology's XML does.
func cpuText(c *comm.Comm) string {
	return strings.TrimSpace(vendorNames[c.CPUVendor] + " " + archNames[c.CPUArch])
}

var archNames = map[topo.CPUArch]string{topo.ArchX86: "x86_64", topo.ArchPower: "ppc64",
	topo.ArchARM: "arm64", topo.ArchMixed: "mixed"}

var vendorNames = map[topo.CPUVendor]string{topo.VendorIntel: "GenuineIntel", topo.VendorAMD: "AuthenticAMD",
	topo.VendorZhaoxin: "Zhaoxin", topo.VendorMixed: "mixed"}

func onOff(v bool) string {
	if v {
		return "on"
	}
	return "off"
}

func graphText(g *search.Graph) string {
	if g == nil || g.NChannels == 0 {
		return "none"
	}
	return fmt.Sprintf("%s of %g GB/s within, %g between nodes, %s/%s, crossNic %d",
		plural(g.NChannels, "channel"), g.BWIntra, g.BWInter, g.TypeIntra, g.TypeInter, g.CrossNIC)
}

// graphWhy names for each side's graph the link that bounds it and what the
// search found at the next higher speed.
func graphWhy(a, b *comm.Comm, id int) []string {
	var out []string
	for i, c := range []*comm.Comm{a, b} {
		u := graphUse(c, id)
		if u == nil || len(u.Links) == 0 {
			continue
		}
		text := fmt.Sprintf("bottleneck in %c: %s", 'A'+i, u.Links[0].text())
		if u.Faster != "" {
			text += "; " + u.Faster
		}
		out = append(out, text)
	}
	return out
}

// orders compares the rings' order of ranks and the nets between hosts.
func (d *Difference) orders(a, b *comm.Comm) {
	if a.NRanks != b.NRanks {
		return
	}
	rings, first := 0, -1
	for c := range min(len(a.Channels), len(b.Channels)) {
		if !slices.Equal(a.Channels[c].Order, b.Channels[c].Order) {
			if rings++; first < 0 {
				first = c
			}
		}
	}
	if rings > 0 {
		d.Figures = append(d.Figures, Figure{What: fmt.Sprintf("order of %s, ring %d", plural(rings, "ring"),
			first),
			A: orderText(a.Channels[first].Order), B: orderText(b.Channels[first].Order)})
	}
}

const shownRanks = 16

func orderText(order []int32) string {
	words := []string{}
	for _, r := range order[:min(len(order), shownRanks)] {
		words = append(words, fmt.Sprint(r))
	}
	if len(order) > shownRanks {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// paths compares the first node's paths among GPUs and to nets.
func (d *Difference) paths(a, b *comm.Comm) {
	s, t := a.Domains[0].System, b.Domains[0].System
	number := func(k topo.NodeKind, what string) bool {
		x, y := len(s.Of(k)), len(t.Of(k))
		if x != y {
			d.Figures = append(d.Figures, Figure{What: what + " of a node", A: fmt.Sprint(x),
				B: fmt.Sprint(y)})
		}
		return x == y
	}
	gpus := number(topo.GPU, "GPUs")
	nets := number(topo.NET, "nets")
	at := map[[2]string]int{}
	compare := func(kx, ky topo.NodeKind) {
		for i, x := range s.Of(kx) {
			for j, y := range s.Of(ky) {
				p, q := pathText(s.Path(x, y)), pathText(t.Path(t.Of(kx)[i], t.Of(ky)[j]))
				if p == q {
					continue
				}
				n, ok := at[[2]string{p, q}]
				if !ok {
					n = len(d.Paths)
					at[[2]string{p, q}] = n
					d.Paths = append(d.Paths, PathChange{A: p, B: q})
				}
				d.Paths[n].Pairs = append(d.Paths[n].Pairs, nodeName(s, x)+" -> "+nodeName(s, y))
			}
		}
	}
	if gpus {
		compare(topo.GPU, topo.GPU)
	}
	if gpus && nets && s.Inter && t.Inter {
		compare(topo.GPU, topo.NET)
		compare(topo.NET, topo.GPU)
	}
}

func pathText(p topo.Path) string { return fmt.Sprintf("%s %.4g GB/s", p.Kind, p.BW) }

// refused lists the rules that refuse pairs on one side only.
func (d *Difference) refused(a, b Side) {
	x, y := refusals(a.Comm, a.Access), refusals(b.Comm, b.Access)
	only := func(in string, these, those []Refusal) {
		for _, r := range these {
			if !slices.ContainsFunc(those, func(o Refusal) bool {
				return o.What == r.What && o.Rule == r.Rule && slices.Equal(o.Pairs, r.Pairs)
			}) {
				d.Refused = append(d.Refused, OneSided{in, r})
			}
		}
	}
	only("A", x, y)
	only("B", y, x)
}
