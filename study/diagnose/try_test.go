package diagnose

import (
	"math"
	"testing"
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
		{"oversubscription", "acs", 4, false, true},
		{"oversubscription", "acs", 4, true, false},
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
	got := h.sets([]tried{suspect("named", 2, 0, 0, 0.7, 0.7, 0.7, 0.7), suspect("first", 1, 0, 0, 0.7, 0.7,
		0.7, 0.7),
		suspect("other", 1, 0, 0.1, 0.8, 0.6, 0.7, 0.7), suspect("same", 3, 0, 0.01, 0.72, 0.69, 0.7, 0.71)},
		doubt{0.05, 0.02})
	text := ""
	for i := range got {
		if !got[i].same {
			text += " "
		}
		text += got[i].kind + "="
	}
	if text != " named= first=same= other=" {
		t.Errorf("ranks%s", text)
	}
	h.report(got)
	for i, s := range h.rep.Suspects {
		if s.same != (s.Kind == "same") {
			t.Errorf("%d: %s", i, s.Kind)
		}
	}
}
