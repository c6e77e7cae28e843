package diagnose

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/units"
)

// curve is a hunt on a table of sizes from 1 KiB by a factor of 4, with ln of measured to expected times.
func curve(measured ...float64) *hunt {
	h := &hunt{work: &work{Request: &Request{}, m: &material{}, rep: &Report{}}, b: &bench{table: &table{}},
		measured: measured, rows: all(len(measured)), es: make([]expected, len(measured))}
	for i := range measured {
		h.b.table.rows = append(h.b.table.rows, row{bytes: 1024 << (2 * i)})
	}
	return h
}

func suspect(kind string, assumes float64, of ...float64) tried {
	t := tried{candidate: candidate{kind: kind, assumes: assumes}, factor: 1}
	for _, v := range of {
		t.ratio = append(t.ratio, math.Exp(v))
	}
	return t
}

// TestCurveThatFitsOutranksOneThatAssumesLess: where one curve fits to the scatter of runs, another that is
// off by more is far behind, whatever it assumes. On a machine that is not quite the simulated one, where
// none fits so well, what is assumed decides between curves that are close.
func TestCurveThatFitsOutranksOneThatAssumesLess(t *testing.T) {
	exact := suspect("exact", 3, 0, 0, 0, 0.3, 0.7, 0.7, 0.7, 0.7)
	near := suspect("near", 1, 0, 0, 0, 0.1, 0.85, 0.85, 0.85, 0.85)
	h := curve(0.02, -0.03, 0.01, 0.32, 0.68, 0.73, 0.69, 0.71)
	got := h.judged([]tried{near, exact})
	if len(got) != 2 || got[0].kind != "exact" || got[1].score-got[0].score < 3 {
		t.Errorf("of a curve that fits: %+v", got)
	}
	h = curve(-0.2, -0.22, -0.1, 0.1, 0.95, 1, 0.98, 0.9)
	got = h.judged([]tried{near, exact})
	if len(got) == 0 || got[0].kind != "near" {
		t.Errorf("of a machine that is off: %+v", got)
	}
}

// TestSlowerMachineHasSuspects: what is slower for no reason that fits has the likeliest named; what is as
// expected has none.
func TestSlowerMachineHasSuspects(t *testing.T) {
	part := suspect("part", 1, 0, 0, 0, 0.2, 0.3, 0.5, 0.7, 0.7)
	for verdict, want := range map[Verdict]int{Slower: 1, AsExpected: 0} {
		h := curve(0.9, 0.5, 1.2, 0.7, 1.1, 1.3, 1.2, 1)
		h.slower = verdict == Slower
		if got := h.judged([]tried{part}); len(got) != want {
			t.Errorf("%s: %d suspects, want %d", verdict, len(got), want)
		}
	}
}

// TestSlowPlateauIsSlower: a table whose last two sizes are slower lacks bandwidth, also where most sizes are
// as expected; one size, or sizes before the plateau, say nothing of the kind.
func TestSlowPlateauIsSlower(t *testing.T) {
	for _, c := range []struct {
		first int64 // bytes of four rows, doubling
		us    [4]float64
		want  bool
	}{
		{128 << 20, [4]float64{1, 1, 2, 2}, true},
		{128 << 20, [4]float64{1, 1, 1, 2}, false},
		{128 << 20, [4]float64{1, 1, 2, 1}, false},
		{32 << 20, [4]float64{1, 1, 2, 2}, false},
	} {
		b := &bench{table: &table{}}
		for i, us := range c.us {
			b.table.rows = append(b.table.rows, row{bytes: c.first << i, us: us})
		}
		if got := b.endsSlower(slices.Repeat([]expected{{0.8, 1, 1.3, ""}}, 4)); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestEqualCurvesAreSimulatedOnce: causes that leave NICs the same part of their rate share a curve, as far
// as nothing describes the network.
func TestEqualCurvesAreSimulatedOnce(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		nodes  int
		fabric bool
		same   bool
	}{
		{"acs", "congestion", 4, true, true},
		{"slow-node", "congestion", 2, false, true},
		{"slow-node", "congestion", 4, false, false},
		{"hash-collision", "nic-slow", 4, false, true},
		{"link-slow", "nic-slow", 4, false, true},
		{"link-slow", "nic-slow", 4, true, false},
	} {
		p := &place{nodes: c.nodes, fabric: c.fabric}
		a, b := p.curve(&candidate{kind: c.a, fitted: true}), p.curve(&candidate{kind: c.b, fitted: true})
		if same := a != "" && a == b; same != c.same {
			t.Errorf("%+v: %q and %q", c, a, b)
		}
	}
}

// TestEqualCurvesShareARank: suspects whose curves differ by less than two runs do are of one rank, in the
// order of what they assume; another curve is a rank of its own, and so is a suspect that a file names.
func TestEqualCurvesShareARank(t *testing.T) {
	h := curve(0, 0, 0.7, 0.7, 0.7, 0.7)
	h.before = doubt{0.08, 0.1}
	h.m.facts = []fact{{"named", "said", hint}}
	got := []tried{suspect("named", 2, 0, 0, 0.7, 0.7, 0.7, 0.7),
		suspect("first", 1, 0, 0, 0.7, 0.7, 0.7, 0.7),
		suspect("other", 1, 0, 0.1, 0.8, 0.6, 0.7, 0.7), suspect("same", 3, 0, 0.01, 0.72, 0.69, 0.7, 0.71)}
	h.sets(got, doubt{0.05, 0.02})
	h.report(got)
	h.rank()
	text := ""
	for _, s := range h.rep.Suspects {
		text += fmt.Sprintf(" %s %d", s.Kind, s.Rank)
	}
	if text != " named 1 first 2 other 3 same 2" {
		t.Errorf("ranks%s", text)
	}
}

// TestFactorThatIsFoundCountsAgainstASuspect: of two curves that are the same, the one whose factor was found
// from the times is behind the one without.
func TestFactorThatIsFoundCountsAgainstASuspect(t *testing.T) {
	h := curve(0.02, -0.03, 0.01, 0.32, 0.68, 0.73, 0.69, 0.71)
	found := suspect("found", 0, 0, 0, 0, 0.3, 0.7, 0.7, 0.7, 0.7)
	found.fitted, found.factor = true, 2.7
	got := h.judged([]tried{found, suspect("given", 1, 0, 0, 0, 0.3, 0.7, 0.7, 0.7, 0.7)})
	if len(got) != 2 || got[0].kind != "given" || got[0].set != got[1].set {
		t.Errorf("%+v", got)
	}
}

// TestFactorsThatCanBeDecideBetweenEqualCurves: an unlucky hash leaves no less than a part; a smaller part
// says that it is others' traffic.
func TestFactorsThatCanBeDecideBetweenEqualCurves(t *testing.T) {
	for factor, want := range map[float64]string{5.2: "congestion", 1.8: "hash-collision"} {
		ln := math.Log(factor)
		h := curve(0.01, -0.01, 0.01, ln+0.01, ln-0.01, ln+0.01, ln-0.01, ln)
		var tries []tried
		for _, kind := range []string{"congestion", "hash-collision"} {
			c := suspect(kind, 0, 0, 0, 0, ln, ln, ln, ln, ln)
			c.fitted, c.factor = true, factor
			tries = append(tries, c)
		}
		if got := h.judged(tries); len(got) == 0 || got[0].kind != want {
			t.Errorf("factor %g: %+v, want %s first", factor, got, want)
		}
	}
}

// made diagnoses a table that the simulator makes of H100s, of which less is known.
func made(t *testing.T, s, known scenario.Spec, opt scenario.Options, ranks int) *Report {
	t.Helper()
	res, err := scenario.Run(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, row := range res.Rows {
		rows = append(rows, fmt.Sprintf(`{"bytes": %d, "time_us": %g}`, row.Bytes, row.Out.Time.Micros()))
	}
	return diagnosed(t, known, File{"t.json", fmt.Appendf(nil, `{"name": "own", "collective": %q, "system": {"gpu":
		"H100 80GB HBM3", "nodes": %d, "gpus_per_node": %d}, "rows": [%s]}`, s.Workload.Op,
		s.Machine.Nodes[0].Count, ranks, strings.Join(rows, ", "))})
}

// TestUnseenNetworkIsSimulatedWhereItIsOversubscribed: a network that no file describes is, oversubscribed,
// one of leaves with fewer uplinks, whose flows share them, not one of slow NICs.
func TestUnseenNetworkIsSimulatedWhereItIsOversubscribed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a network of three hosts is simulated flow by flow, 16 s of a processor")
	}
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 3, Nets: 8, PerLeaf: 1, Gbit: 400,
		Oversub: 2, Routing: fabric.Adaptive})
	if err != nil {
		t.Fatal(err)
	}
	s := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: 3}}}}
	over, opt := s.Clone(), options()
	over.Network.Fabric, opt.Files = "n.json", fstest.MapFS{"n.json": {Data: n.Format()}}
	over.Workload = scenario.Workload{Op: "all_reduce", Sizes: []string{"16M", "64M"}}
	r := made(t, over, s, opt, 8)
	if len(r.Suspects) == 0 || r.Suspects[0].Kind != "oversubscription" ||
		!strings.Contains(r.Suspects[0].What, "2 times") {
		t.Error(r.Text())
	}
}

// TestRightSuspectLeavesNothing: a suspect is simulated as the machine is, so that a table that the simulator
// made of it leaves nothing.
func TestRightSuspectLeavesNothing(t *testing.T) {
	s := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h100", Count: 1}}}}
	off := s.Clone()
	off.NCCL.Env = map[string]string{"NCCL_NVLS_ENABLE": "0"}
	off.Workload = scenario.Workload{Op: "all_reduce", Sizes: []string{"16M", "64M", "256M", "1G"}}
	r := made(t, off, s, options(), 8)
	if len(r.Suspects) == 0 || r.Suspects[0].Kind != "nvls-off" {
		t.Fatal(r.Text())
	}
	for i, p := range r.Suspects[0].Curve {
		if got := p.Us / r.Sizes[i].Measured; math.Abs(got-1) > 0.005 {
			t.Errorf("%d B: %.3f times the measured time", p.Bytes, got)
		}
	}
}

// TestNICsThatNamesShareBoundThePlateauAlone: names of half as many NICs leave small sizes as they are, where
// half of the NICs alone do not; all ways to use wrong HCAs are together as likely as another kind.
func TestNICsThatNamesShareBoundThePlateauAlone(t *testing.T) {
	p := place{nodes: 2, nics: []string{"a", "b", "c", "d", "e", "f", "g", "h"}}
	sum, shared := 0.0, 0
	for _, c := range p.wrong() {
		sum += math.Exp(-c.assumes)
		if strings.Contains(c.what, "share") {
			shared++
			tr := &trial{}
			if err := c.change(tr, 1); err != nil || len(tr.spec.Network.Faults) != 16 {
				t.Errorf("%s: %v %v", c.what, tr.spec.Network.Faults, err)
			}
		}
	}
	if shared != 3 || math.Abs(sum-1) > 1e-9 {
		t.Errorf("%d ways to share, shares %g", shared, sum)
	}
	p.nics = p.nics[:6] // of six a half, and no quarter
	for _, c := range p.wrong() {
		if strings.Contains(c.what, "functions of 1 ") {
			t.Errorf("six names: %s", c.what)
		}
	}
}

// TestKindsAreAsLikelyAsTheyWereFound: all kinds together are as likely as if each were the mean of them, and
// of equal curves the kind that maintainers find is first.
func TestKindsAreAsLikelyAsTheyWereFound(t *testing.T) {
	sum, never := 0.0, 0.0
	for kind := range found { //lint:sorted a sum
		sum += math.Exp(common(kind))
		never++
	}
	kinds := float64(numKinds())
	if sum += (kinds - never) * math.Exp(common("qp")); math.Abs(sum-kinds) > 1e-9 {
		t.Errorf("%g kinds are as likely as %g", kinds, sum)
	}
	of := []float64{0, 0, 0, 0.3, 0.7, 0.7, 0.7, 0.7}
	h := curve(0.02, -0.03, 0.01, 0.32, 0.68, 0.73, 0.69, 0.71)
	got := h.judged([]tried{suspect("qp", 1, of...), suspect("wrong-hca", 1, of...)})
	if len(got) != 2 || got[0].kind != "wrong-hca" {
		t.Errorf("%+v", got)
	}
}

// hunting is a hunt for what makes an all_reduce of 16 MiB slower on nodes of a kind.
func hunting(t *testing.T, topo string, nodes int) *hunt {
	t.Helper()
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
		Workload: scenario.Workload{Op: "all_reduce"}}
	b := &bench{table: &table{fn: coll.AllReduce}, spec: spec, opt: options()}
	if err := b.prepare(); err != nil {
		t.Fatal(err)
	}
	b.table.rows = []row{{bytes: 16 << 20, op: scenario.Operation{Type: coll.Float32,
		Count: 4 << 20}}}
	h := &hunt{work: &work{Request: &Request{}, m: &material{}, rep: &Report{}}, b: b, rows: []int{0},
		known: map[string]float64{}}
	if err := h.bench(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSuspectThatCostsTooMuchIsLeftOut: a suspect whose simulation would take more of a processor than a
// suspect may is not tried, and a note names it; another one is.
func TestSuspectThatCostsTooMuchIsLeftOut(t *testing.T) {
	for budget, costly := range map[units.Time]bool{0: false, units.FromMicros(1): true} {
		h := hunting(t, "dgx-h100", 2)
		h.on.opt.Budget = budget
		c := &tried{candidate: candidate{kind: "channels", change: func(t *trial, _ float64) error {
			t.env("NCCL_MAX_NCHANNELS=2")
			return nil
		}}, factor: 1}
		got := h.ratiosOf(t.Context(), c, []int{0})
		note := strings.Contains(strings.Join(h.rep.Notes, "\n"),
			"takes too long or is not possible: channels")
		if (got == nil) != costly || note != costly {
			t.Errorf("budget %v: ratios %v, notes %q", budget, got, h.rep.Notes)
		}
	}
}

// TestSuspectsAreTriedOnFewerNodes: of many ranks two nodes have at least 32 for suspects to be tried on, and
// a node is a whole NVLink domain, whose trays stay together; a note says so.
func TestSuspectsAreTriedOnFewerNodes(t *testing.T) {
	for _, c := range []struct {
		topo               string
		hosts, nodes, want int // nodes as NCCL counts them, and those that suspects are tried on
	}{{"dgx-h100", 8, 8, 4}, {"dgx-h100", 3, 3, 3}, {"gb200-nvl72", 72, 4, 2}} {
		h := hunting(t, c.topo, c.hosts)
		from, to := h.b.run.Site.Comm, h.on.run.Site.Comm
		note := fmt.Sprintf("suspects were tried on %d of the %d nodes", c.want, c.nodes)
		if from.NNodes != c.nodes || to.NNodes != c.want || to.NRanks/to.NNodes != from.NRanks/from.NNodes ||
			strings.Contains(strings.Join(h.rep.Notes, "\n"), note) != (c.want < c.nodes) {
			t.Errorf("%s: tried on %d of %d nodes, %d of %d ranks, notes %q", c.topo, to.NNodes, from.NNodes,
				to.NRanks, from.NRanks, h.rep.Notes)
		}
	}
}
