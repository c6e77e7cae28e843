package page

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccltrace"
	"github.com/simccl/simccl/units"
)

func sample() *Page {
	m := &trace.Memory{}
	rec := nccltrace.New(m, nccltrace.Options{Detail: nccltrace.DetailStep})
	rec.Steps(&nccltrace.Step{Rank: 0, Peer: 1, Bytes: 42, Transport: "SHM", Chunk: -1}, 0,
		nccltrace.Phase{Wait: nccltrace.SendWait, Start: 0, End: 3 * units.Microsecond})
	return &Page{Title: "all_reduce on <2> & more", Command: "simccl report", Host: "node0", Elapsed: 10 * units.Microsecond,
		Facts:  []Fact{{"ranks", "2"}},
		Points: []Point{{Size: 1024, TimeUs: 2, BusBW: 0.5, ModelUs: 1, ModelBW: 1, Choice: "RING/LL"}, {Size: 1 << 20, TimeUs: 10, BusBW: 100, ModelUs: 9, ModelBW: 110, LimitBW: 180, Choice: "RING/LL128"}},
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
		"Ring LL at 1 MiB: 90.00 us, 10.00 of the best", "Tree LL at 1 KiB: off", "1 MiB, simulated: 100.00 GB/s (RING/LL128)", "channel 0 and 1 like it",
		"rank 0 → rank 1", "SendWait, 3.000 us from 0.000 us, Peer 1, bytes 42", "50.0 %", "dgx.xml:3:4: odd", "NCCL_ALGO"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q", want)
		}
	}
}

// Every drawing is well-formed.
func TestDrawingsAreWellFormed(t *testing.T) {
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(write(t, sample()), -1)
	if len(drawings) != 4 {
		t.Errorf("%d drawings, want curve, heat map, ring, timeline", len(drawings))
	}
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
	if strings.Contains(got, "<h2>") || strings.Contains(got, "<svg") {
		t.Errorf("an empty page has parts:\n%s", got)
	}
}
