package page

import (
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/golden"
	"github.com/simccl/simccl/internal/nccltrace"
	"github.com/simccl/simccl/internal/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/topo"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

func sample() *Page {
	m := &trace.Memory{}
	rec := nccltrace.New(m, nccltrace.Options{Detail: nccltrace.DetailStep})
	rec.Steps(&nccltrace.Step{Rank: 0, Peer: 1, Bytes: 42, Transport: "SHM", Chunk: -1}, 0,
		nccltrace.Phase{Wait: nccltrace.SendWait, Start: 0, End: 3 * units.Microsecond})
	return &Page{Title: "all_reduce on <2> & more", Command: "simccl report", Host: "node0", Elapsed: 10 * units.Microsecond,
		Facts: []Fact{{Name: "ranks", Value: "2"}},
		Trees: []Tree{{0, []int32{-1, 0}}}, Measured: []Measured{{"h100.txt", []Sample{{1024, 2.5, 0.4}, {1 << 20, 11, 95}}}},
		Points: []Point{{Size: 1024, TimeUs: 2, BusBW: 0.5, ModelUs: 1, ModelBW: 1, Choice: "RING/LL", Best: "TREE/LL", BestUs: 1.6, BestBW: 0.6}, {Size: 1 << 20, TimeUs: 10, BusBW: 100, ModelUs: 9, ModelBW: 110, LimitBW: 180, Choice: "RING/LL128"}},
		Rivals: []Rival{{"Ring LL", []float64{1, 90}}, {"Ring LL128", []float64{2, 9}}, {"Tree LL", []float64{0, 30}}},
		Links:  []exec.LinkLoad{{Name: "node0 GPU0→NVSwitch", Capacity: 100, Bytes: 500000}, {Name: "idle", Capacity: 1}},
		Rings:  []Ring{{0, []int32{0, 1}}, {1, []int32{0, 1}}}, NodeOf: []int32{0, 1}, Matrix: "GPU0 <X>", Timeline: m,
		Settings: []Setting{{"NCCL_ALGO", "Ring", "--env", "honoured"}}, Warnings: []string{"dgx.xml:3:4: odd"}}
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, p); err != nil {
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
	for _, want := range []string{"all_reduce on &lt;2&gt; &amp; more", "GPU0 &lt;X&gt;", "prefers-color-scheme: dark", `name="viewport"`,
		"Ring LL at 1 MiB: 90.00 us, 10.00 of the best", "Tree LL at 1 KiB: off", "1 MiB, simulated: 100.00 GB/s, 10.00 us (RING/LL128)", "channel 0 and 1 more",
		"1 KiB, best of all choices: 0.60 GB/s, 1.60 us (TREE/LL)", "1 MiB, h100.txt: 95.00 GB/s, 11.00 us (measured)", "<td>95.00</td>", `class="root"`,
		"rank 0 → rank 1", "SendWait, 3.000 us from 0.000 us, Peer 1, bytes 42", "50.0 %", "dgx.xml:3:4: odd", "NCCL_ALGO"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
}

// Every drawing is well-formed.
func TestDrawingsAreWellFormed(t *testing.T) {
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(write(t, sample()), -1)
	if len(drawings) != 5 {
		t.Errorf("%d drawings, want curve, heat map, ring, tree, timeline", len(drawings))
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
	got := write(t, &Page{Title: "nothing"})
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
	got := write(t, &Page{Title: "x", System: sys, Graphs: graphs})
	wellFormed(t, regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(got, -1))
	for _, want := range []string{`<label for="r0-7">ring 7</label>`, `id="g-r1-0"`, "tree 0, hop 1: GPU0 ↔ GPU", "ring 0, hop 1: mlx5_0 → GPU0, 48 GB/s over PIX",
		"GPU0 → mlx5_3: PXN, 48 GB/s"} {
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
	got := string(circles([]Ring{{0, order}}, nil, nodeOf).Rings)
	if n := strings.Count(got, `<path class="hop`); n != ranks/perNode {
		t.Errorf("%d lines between %d nodes", n, ranks/perNode)
	}
	if !strings.Contains(got, "<title>node 63</title>") {
		t.Error("no node 63")
	}
}
