package page

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/report/chart"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

func sample() *page {
	m := &trace.Memory{}
	rec := nccl.New(m, nccl.Options{Detail: nccl.DetailStep})
	rec.Steps(&nccl.Step{Rank: 0, Peer: 1, Bytes: 42, Transport: "SHM", Chunk: -1}, 0,
		nccl.Phase{Wait: nccl.SendWait, Start: 0, End: 3 * units.Microsecond})
	return &page{Title: "all_reduce on <2> & more", Command: "simccl report", Host: "node0",
		Elapsed:  10 * units.Microsecond,
		Facts:    []Fact{{Name: "ranks", Value: "2"}},
		Trees:    []tree{{0, []int32{-1, 0}}},
		Measured: []Measured{{"h100.txt", []Sample{{1024, 2.5, 0.4}, {1 << 20, 11, 95}}, nil}},
		Points: []point{{Size: 1024, TimeUs: 2, BusBW: 0.5, ModelUs: 1, ModelBW: 1, Choice: "RING/LL",
			Best: "TREE/LL", BestUs: 1.6, BestBW: 0.6, Setting: "NCCL_ALGO=Tree NCCL_PROTO=LL"},
			{Size: 1 << 20, TimeUs: 10, BusBW: 100, ModelUs: 9, ModelBW: 110, LimitBW: 180,
				Choice: "RING/LL128"}},
		Rivals: []rival{{"Ring LL", []float64{1, 90}}, {"Ring LL128", []float64{2, 9}},
			{"Tree LL", []float64{0, 30}}},
		Links: []exec.LinkLoad{{Name: "node0 GPU0→NVSwitch", Capacity: 100, Bytes: 500000},
			{Name: "idle", Capacity: 1}},
		Rings: []ring{{0, []int32{0, 1}}, {1, []int32{0, 1}}}, NodeOf: []int32{0, 1}, Matrix: "GPU0 <X>",
		Timeline: m,
		Settings: []setting{{"NCCL_ALGO", "Ring", "--env", "honoured"}},
		Warnings: []string{"dgx.xml:3:4: odd"}}
}

func write(t *testing.T, p *page) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// One file: nothing is fetched, nothing runs, text is escaped, the same page
// is the same bytes.
func TestPageStandsAlone(t *testing.T) {
	got := write(t, sample())
	if got != write(t, sample()) {
		t.Error("two writes differ")
	}
	if m := regexp.MustCompile(`https?:|src=|@import|<script|url\(`).FindString(got); m != "" {
		t.Errorf("the page needs more than itself: %s", m)
	}
	for _, want := range []string{"all_reduce on &lt;2&gt; &amp; more", "GPU0 &lt;X&gt;",
		"prefers-color-scheme: dark", `name="viewport"`,
		`<td class="r6">×10.0<small>90.0 us</small></td>`, `<td class="off">off</td>`,
		`<td class="r0 won">best<small>1.00 us</small></td>`,
		"1 MiB, simulated: 100.00 GB/s, 10.00 us (RING/LL128)", "channels 0,1",
		"1 KiB, best of all choices: 0.60 GB/s, 1.60 us (TREE/LL)",
		"1 MiB, h100.txt: 95.00 GB/s, 11.00 us (measured)", "<td>95.00</td>", `class="rank root"`,
		"rank 0 → rank 1", "ch 00 → rank 1: on the wire, 0 to 3 us", "50.0 %", "dgx.xml:3:4: odd",
		"NCCL_ALGO"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
}

// Every drawing is well-formed.
func TestDrawingsAreWellFormed(t *testing.T) {
	drawings := regexp.MustCompile(`(?s)<svg[^>]*role="img".*?</svg>`).FindAllString(write(t, sample()), -1)
	if len(drawings) != 5 {
		t.Errorf("%d drawings, want bandwidth, time, ring, tree, timeline", len(drawings))
	}
	wellFormed(t, drawings)
}

func wellFormed(t *testing.T, drawings []string) {
	t.Helper()
	for _, d := range drawings {
		dec := xml.NewDecoder(strings.NewReader(d))
		for {
			if _, err := dec.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in %.300s", err, d)
			}
		}
	}
}

func TestEmptyPartsAreLeftOut(t *testing.T) {
	got := write(t, &page{Title: "nothing"})
	if strings.Contains(got, "<h2") || strings.Contains(got, "<svg") {
		t.Errorf("an empty page has parts:\n%s", got)
	}
}

// The channels of every graph are drawn over the topology, each with its
// button, along the links of their paths; and the path matrix names both ends.
func TestChannelsOnTheTopology(t *testing.T) {
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, "dgx-h100.xml")
	if err != nil {
		t.Fatal(err)
	}
	host, err := topo.Build(spec, topo.Params{Rules: rules.Default(), NRanks: 16})
	if err != nil {
		t.Fatal(err)
	}
	sys := host.Systems[0]
	graphs, err := search.All(sys, search.Params{Rules: rules.Default()})
	if err != nil {
		t.Fatal(err)
	}
	got := write(t, &page{Title: "x", System: sys, Graphs: graphs})
	wellFormed(t, regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(got, -1))
	for _, want := range []string{`<label for="r0-7">ring 7</label>`, `id="g-r1-0"`,
		"tree 0, hop 1: GPU0 ↔ GPU", "ring 0, hop 1: mlx5_0 → GPU0, 48 GB/s over PIX",
		`">PXN<small>48</small>`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
	// A ring enters by a net, visits each of 8 GPUs and leaves by a net.
	if n := strings.Count(got, "<title>ring 3, hop"); n != 9 {
		t.Errorf("ring 3 has %d hops, want 9", n)
	}
}

// Of many ranks the circles show the nodes, each line once.
func TestCirclesOfNodes(t *testing.T) {
	const ranks, perNode = 512, 8
	nodeOf, order := make([]int32, ranks), make([]int32, ranks)
	for i := range nodeOf {
		nodeOf[i], order[i] = int32(i/perNode), int32(i)
	}
	got := string(circles([]ring{{0, order}}, nil, nodeOf).Rings)
	if n := strings.Count(got, `<path class="hop`); n != ranks/perNode ||
		strings.Count(got, `<path class="tip`) != n {
		t.Errorf("%d lines between %d nodes", n, ranks/perNode)
	}
	if !strings.Contains(got, "<title>node 63</title>") {
		t.Error("no node 63")
	}
}

// TestDrawing: a machine's drawing is a file of its own, well-formed, with every GPU.
func TestDrawing(t *testing.T) {
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", "dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := topoxml.Parse(data, "dgx-h100.xml")
	if err != nil {
		t.Fatal(err)
	}
	h, err := topo.Build(spec, topo.DefaultParams())
	if err != nil {
		t.Fatal(err)
	}
	s := h.Systems[0]
	text := Drawing(s)
	wellFormed(t, []string{text})
	for _, g := range s.Of(topo.GPU) {
		if !strings.Contains(text, chart.EscapeXML(s.Name(g))) {
			t.Errorf("the drawing lacks %s", s.Name(g))
		}
	}
	if !strings.HasPrefix(text, `<svg xmlns="http://www.w3.org/2000/svg" `) {
		t.Errorf("it begins with %.60s", text)
	}
}

// The summary answers what a reader asks first; its figures are those of the table.
func TestSummary(t *testing.T) {
	got := write(t, sample())
	head, _, _ := strings.Cut(strings.ReplaceAll(got, "\u00a0", " "), "<main>")
	for _, want := range []string{"busbw reaches 100.0 GB/s at 1 MiB; 2.00 us at 1 KiB",
		"<strong>node0 GPU0→<wbr>NVSwitch</strong>", "need 50 % of the time at 1 MiB",
		"<strong>×1.25 at 1 KiB</strong>", "RING/LL: 2.00 us; TREE/LL: 1.60 us",
		"<strong>25 % faster at 1 KiB</strong>", "<code>NCCL_ALGO=Tree NCCL_PROTO=LL</code>",
		`<a href="#curve">Bandwidth and latency</a>`, `<a href="#settings">`} {
		if !strings.Contains(head, want) {
			t.Errorf("no %q on top", want)
		}
	}
	for _, id := range regexp.MustCompile(`<a href="#(\w+)">`).FindAllStringSubmatch(head, -1) {
		if !strings.Contains(got, `<h2 id="`+id[1]+`">`) {
			t.Errorf("the contents lead to %s, which is not there", id[1])
		}
	}
	p := sample()
	p.Points[0].BestUs, p.Points[0].Best, p.Points[0].Setting = 2, "RING/LL", ""
	if got := write(t, p); !strings.Contains(got, "keep the defaults") ||
		strings.Contains(got, `id="advice"`) {
		t.Error("advice where nothing is faster")
	}
	p.NoBest, p.Points[0].Best, p.Points[0].BestUs = "above 64 ranks", "", 0
	if got := write(t, p); !strings.Contains(got, "not simulated") ||
		!strings.Contains(got, "above 64 ranks") {
		t.Error("a regret that was not simulated")
	}
}

// Runs of sizes with one better choice are one advice.
func TestGains(t *testing.T) {
	p := func(size units.Bytes, now, then float64, setting string) point {
		return point{Size: size, TimeUs: now, BestUs: then, Setting: setting}
	}
	got := gains([]point{p(1, 10, 10, ""), p(2, 12, 10, "a"), p(4, 11, 10, "a"), p(8, 11, 10, "b"),
		p(16, 10.1, 10, "b"), p(32, 11, 10, "b")})
	var text []string
	for i := range got {
		text = append(text, got[i].setting+" "+got[i].at()+" "+got[i].faster())
	}
	if s := strings.Join(text, "; "); s != "a 2 B to 4 B 10 to 20 %; b 8 B 10 %; b 32 B 10 %" {
		t.Error(s)
	}
}

// No line leaves its plot: every point of every curve lies inside; a bound above the curves is a mark at the
// edge.
func TestCurvesStayInside(t *testing.T) {
	points := []point{{Size: 8, TimeUs: 5, BusBW: 0.001, LimitBW: 40}, {Size: 4096, TimeUs: 9, BusBW: 0.8,
		ModelUs: 1e4, ModelBW: 0.01, LimitBW: 608}, {Size: 1 << 30, TimeUs: 7e3, BusBW: 150, LimitBW: 3000}}
	bw, times := curves(points, []Measured{{"m", []Sample{{1, 1, 1e6}, {4096, 0.5, 900}, {1 << 31, 1, 1}},
		nil}})
	for _, m := range regexp.MustCompile(
		`[ML]([\d.-]+) ([\d.-]+)|c[xy]="([\d.]+)"|translate\(([\d.]+) ([\d.]+)\)`).FindAllStringSubmatch(
		strings.Join(regexp.MustCompile(`class="(?:line|dot)[^>]*>`).FindAllString(string(bw+times), -1),
			"\n"), -1) {
		for i, v := range m[1:] {
			f, err := strconv.ParseFloat(v, 64)
			if hi := []float64{plotW - plotRight, plotH - plotLow, plotW, plotW - plotRight,
				plotH - plotLow}[i]; err == nil && f > hi+0.1 {
				t.Errorf("%v of %q is beyond %v", f, m[0], hi)
			}
		}
	}
	if n := strings.Count(string(bw), "dot measured"); n != 1 {
		t.Errorf("%d measured points, want that of the sizes which ran", n)
	}
	if !strings.Contains(string(bw), ">↑ bound: 3000 GB/s</text>") || strings.Contains(string(bw),
		">3000</text>") {
		t.Error("the axis of bandwidths is for the bound, which is no mark at its edge")
	}
	for _, want := range []string{">0.1</text>", ">10000</text>"} {
		if !strings.Contains(string(times), want) {
			t.Errorf("the axis of times lacks %s", want)
		}
	}
}

// Equal links are one line, named with the ranges of their numbers.
func TestEqualLinksAreOneRow(t *testing.T) {
	var links []exec.LinkLoad
	add := func(bytes units.Bytes, names ...string) {
		for _, n := range names {
			links = append(links, exec.LinkLoad{Name: n, Capacity: 100, Bytes: bytes})
		}
	}
	for node := range 2 {
		for g := range 8 {
			add(1000, fmt.Sprintf("node%d GPU%d→NVSwitch", node, g))
			add(500, fmt.Sprintf("node%d GPU%d→PCI%d", node, g, g+8))
		}
	}
	add(300, "node0 GPU1→GPU2", "node0 GPU2→GPU1", "node0 GPU5→GPU7", "node1 GPU1→GPU3")
	add(200, "node0 NIC0→mlx5_0")
	out, _ := loads(links, units.Microsecond)
	var got []string
	for _, l := range out {
		got = append(got, fmt.Sprintf("%d × %s", l.Count, l.Name))
	}
	want := "16 × node0,1 GPU0–7→NVSwitch; 16 × node0,1 GPU0–7→PCI8–15; 4 × node0 GPU1→GPU2, node0 " +
		"GPU2→GPU1, node0 GPU5→GPU7 and 1 more; 1 × node0 NIC0→mlx5_0"
	if s := strings.Join(got, "; "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// A link to a trace is a path: nothing in a name is a scheme, a query or markup.
func TestTraceLink(t *testing.T) {
	p := sample()
	p.Trace = `javascript:alert("1")?<x>.json`
	if got := write(t, p); !strings.Contains(got,
		`href="./javascript%3Aalert%28%221%22%29%3F%3Cx%3E.json"`) || strings.Contains(got, "<x>") {
		t.Error("the link is not a path")
	}
}

// TestTilesSayWhatTheyAre: a large message's time is no latency; what was not
// simulated names the command that does; a file called measured is not so twice.
func TestTilesSayWhatTheyAre(t *testing.T) {
	p := sample()
	p.Points[0].Size, p.Measured = 1<<20, []Measured{{"measured", []Sample{{1 << 20, 11, 95}}, nil}}
	p.NoBest, p.Points[0].Best, p.Points[0].BestUs = "run does it", "", 0
	got := write(t, p)
	for _, want := range []string{"Time of the least size", "What NCCL's choice costs", "run does it"} {
		if !strings.Contains(html.UnescapeString(got), want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{">Latency<", "measured: measured", "Regret of"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is there", not)
		}
	}
	if got := write(t, sample()); !strings.Contains(got, ">Latency<") {
		t.Error("1 KiB has no latency")
	}
}
