package page

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/job/timeline"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

func jobSample(t *testing.T) *JobPage {
	t.Helper()
	p, err := workload.Parse("workload 1\nranks 2\ncomm dp&1 *\nwork 1 gemm<float>\nlist a 0\n"+
		"  compute 0 1000000000 work=1\n  call 1 dp&1 all_reduce float sum 64\nlist b 1\n"+
		"  compute h0 2000000000\n  call 1 dp&1 all_reduce float sum 64 after=0\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(context.Background(),
		&streams.Input{Program: p, Costs: []streams.Cost{{Time: units.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	recorded := 2900.0
	rep := &replay.Report{Ranks: 2, IterationUs: 3000, RecordedUs: &recorded, BoundUs: 2000,
		Notes: []string{"a <note>"}, Groups: []replay.Group{{Name: "dp&1", ExposedUs: 1000}},
		Calls: []replay.Call{{Group: "dp&1", Func: "all_reduce", Bytes: 256, Us: 1000, AloneUs: 500,
			RecordedUs: &recorded}}, Path: []replay.Share{{What: "host", Us: 2000}}, Ideal: []replay.Ideal{
			{Group: "all", IterationUs: 2000, WonUs: 1000}},
		ByRank: []replay.Rank{{Rank: 0, ComputeUs: 1000, BubbleUs: 1000, MovingUs: 1000},
			{Rank: 1, HostUs: 2000, MovingUs: 1000}}}
	return &JobPage{Title: "a <job>", Command: "simccl replay", Report: rep,
		Timeline: timeline.Of(&session.Result{Result: r, Program: p, Calls: make([]session.Call, 1)}),
		Rank:     func(place int) string { return fmt.Sprintf("rank %d", place) }, Versus: []replay.Versus{
			{Options: "--gpu H100", Report: rep}}}
}

// testPageStandsAlone: one file: nothing is fetched, nothing runs, text is escaped, the
// same page is the same bytes.
func TestJobPageStandsAlone(t *testing.T) {
	var got [2]bytes.Buffer
	for i := range got {
		if err := jobSample(t).Write(&got[i]); err != nil {
			t.Fatal(err)
		}
	}
	text := got[0].String()
	if text != got[1].String() {
		t.Error("two writes differ")
	}
	if m := regexp.MustCompile(`https?:|src=|@import|<script|url\(|<job>|<note>|<float>|dp&1`).FindString(
		text); m != "" {
		t.Errorf("the page has %q", m)
	}
	for _, want := range []string{"Content-Security-Policy", "a &lt;job&gt;", "3.000 ms",
		"recorded 2.900 (&#43;3.4 %)", "gemm&lt;float&gt;, 1000.000 us", "waiting for ranks: ", "×2.00",
		"--gpu H100",
		"calls of all at no time", "host thread 0", "prefers-color-scheme: dark"} {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if n := strings.Count(text, "<rect"); n < 6 {
		t.Errorf("%d slices", n)
	}
}

// testHiddenCalls: a call beside which the GPU computes has another colour than one that is exposed, and the
// legend says which; what was recorded with another host, or elsewhere, is no error of the simulation.
func TestHiddenCalls(t *testing.T) {
	p, err := workload.Parse("workload 1\nranks 2\ncomm dp *\nlist a 0-1\n  compute 0 1500000000\n"+
		"  call 1 dp all_reduce float sum 64\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	r, err := streams.Run(context.Background(),
		&streams.Input{Program: p, Costs: []streams.Cost{{Time: 2 * units.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	recorded := 71793.0
	rep := &replay.Report{Ranks: 2, IterationUs: 2000, RecordedUs: &recorded,
		RecordedAs: "with the host that the profiler slowed", BoundUs: 1500}
	page := &JobPage{Report: rep, Timeline: timeline.Of(&session.Result{Result: r, Program: p,
		Calls: make([]session.Call, 1)}), Rank: func(int) string { return "rank" }}
	var b bytes.Buffer
	if err := page.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, `<rect class="kblue hid"`); n != 2 {
		t.Errorf("%d hidden calls, want one of each rank", n)
	}
	if n := strings.Count(text, `<rect class="kblue" `); n < 2 {
		t.Errorf("%d exposed ones", n)
	}
	for _, want := range []string{"communication that compute hides", "2.000 ms an iteration; at least " +
		"1.500. The recording took 71.793 with the host that the profiler slowed"} {
		if !strings.Contains(strings.ReplaceAll(text, "\u00a0", " "), want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(text, "-97.2 %") {
		t.Error("what was recorded with another host is an error of 97 %")
	}
}

// testManySlices: kernels that cannot be seen apart are one slice.
func TestManySlices(t *testing.T) {
	var list []timeline.Slice
	for i := range units.Time(1000) {
		list = append(list, timeline.Slice{From: 10 * i, To: 10*i + 9, Name: "k"})
	}
	list = append(list, timeline.Slice{From: 10000, To: 10001, Kind: timeline.Moves})
	if out := timeline.Join(list, 50); len(out) != 2 || out[0].To != 9999 || out[0].Name != "k, …" {
		t.Errorf("%d slices, %+v", len(out), out[0])
	}
	if out := timeline.Join(list, 0); len(out) != len(list) {
		t.Errorf("%d slices of %d", len(out), len(list))
	}
}

// TestFigures: the bars of an iteration are as long as its parts, beside other options where there are some,
// else by rank; calls are beside what was recorded of them.
func TestFigures(t *testing.T) {
	p := jobSample(t)
	for _, rows := range [][]string{{"as given", "--gpu H100"}, {"rank 0", "rank 1"}} {
		all := p.Figures()
		if len(all) != 2 || !slices.Equal(all[0].Cats, rows) {
			t.Fatalf("%d figures, rows %q, want %q", len(all), all[0].Cats, rows)
		}
		for i := range rows {
			sum := 0.0
			for _, s := range all[0].Series {
				sum += s.Points[i].Y
			}
			if sum != 3 {
				t.Errorf("%s: parts of %g ms, want 3", rows[i], sum)
			}
		}
		if s := all[1].Series; len(s) != 2 || s[0].Points[0].Y != 1000 || s[1].Points[0].Y != 2900 {
			t.Errorf("calls %+v", s)
		}
		for _, f := range all {
			if svg := f.Figure().SVG(); !strings.Contains(svg, "(ms)") && !strings.Contains(svg, "(µs)") {
				t.Errorf("%s has no unit", f.File)
			}
		}
		p.Versus = nil
	}
}
