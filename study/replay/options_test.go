package replay_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	session "github.com/simccl/simccl/job"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/load"
)

// h200 is a machine of four H200.
func h200(t testing.TB) *session.Machine {
	t.Helper()
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4", Count: 1}},
		Multicast: "off"}}
	site, err := scenario.Load(&spec, scenario.Options{Files: osFS{}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := site.Session(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func program(t testing.TB, text string) *workload.Program {
	t.Helper()
	p, err := workload.Parse(text, "p")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// replayed runs a program on a machine.
func replayed(t testing.TB, m *session.Machine, p *workload.Program, o replay.Options) *replay.Report {
	t.Helper()
	r, _, err := replay.Run(t.Context(), &load.Job{Program: p}, p, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestBounds: what random jobs take is between their bounds and everything one after
// the other, also where calls share links; without the calls of a group they are no
// faster than an ideal network is.
func TestBounds(t *testing.T) {
	m := h200(t)
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 1))
		var lists [4]strings.Builder
		groups := [][]int{{0, 1, 2, 3}, {0, 1}, {2, 3}}
		for range 2 + r.IntN(8) {
			if g := r.IntN(4); g < 3 {
				call := fmt.Sprintf("g%d all_reduce half sum %d", g, 1<<(16+r.IntN(3)*2))
				for _, rank := range groups[g] {
					fmt.Fprintf(&lists[rank], "  call %d %s\n", 1+g, call)
				}
				continue
			}
			fmt.Fprintf(&lists[r.IntN(4)], "  compute 0 %d000000\n", 1+r.IntN(200))
		}
		text := "workload 1\nranks 4\ncomm g0 *\ncomm g1 0-1 kind=TP\ncomm g2 2-3 kind=TP\n"
		for rank := range lists {
			text += fmt.Sprintf("list r%d %d\n%s", rank, rank, lists[rank].String())
		}
		p := program(t, text)
		x := replayed(t, m, p, replay.Options{Host: 1})
		serial := 0.0
		for i := range p.Lists {
			for _, s := range p.Lists[i].Steps {
				serial += 1.19 * s.Time.Micros()
			}
		}
		for _, c := range x.Calls {
			serial += c.AloneUs * float64(c.Times) * 1.6 // beside compute
		}
		const tick = 0.002 // microseconds: times are rounded to nanoseconds
		if x.IterationUs < x.BoundUs-tick || x.IterationUs > serial+tick {
			t.Errorf("%.3f us, at least %.3f (%+v), one after the other %.3f\n%s", x.IterationUs, x.BoundUs,
				x.Bounds, serial, text)
		}
		if len(p.Calls) == 0 {
			continue
		}
		if err := x.Free(t.Context(), p, m, replay.Options{Host: 1}, []string{"all"}); err != nil {
			t.Fatal(err)
		}
		if f := x.Ideal[0]; f.IterationUs < x.Bounds.PathUs-tick || f.WonUs < -tick {
			t.Errorf("without calls %+v, path %.3f", f, x.Bounds.PathUs)
		}
	}
}

// TestIdealGroup: of two groups, the one whose call is longer wins more; names that are
// not there are refused.
func TestIdealGroup(t *testing.T) {
	p := program(t, `workload 1
ranks 4
comm tp0 0-1 kind=TP
comm tp1 2-3 kind=TP
comm dp * kind=DP
list a 0-1
  call 0 tp0 all_reduce half sum 65536
  compute 0 100000000
  call 0 dp all_reduce half sum 33554432
list b 2-3
  call 0 tp1 all_reduce half sum 65536
  compute 0 100000000
  call 0 dp all_reduce half sum 33554432
`)
	m := h200(t)
	x := replayed(t, m, p, replay.Options{Host: 1})
	if err := x.Free(t.Context(), p, m, replay.Options{Host: 1}, []string{"tp", "dp", "all"}); err != nil {
		t.Fatal(err)
	}
	tp, dp, all := x.Ideal[0].WonUs, x.Ideal[1].WonUs, x.Ideal[2]
	if tp <= 0 || dp <= 10*tp || math.Abs(all.WonUs-tp-dp) > 1 || math.Abs(all.IterationUs-100) > 0.1 {
		t.Errorf("%+v", x.Ideal)
	}
	if err := x.Free(t.Context(), p, m, replay.Options{Host: 1}, []string{"cp"}); err == nil ||
		!strings.Contains(err.Error(), "tp0, tp1, dp") {
		t.Error(err)
	}
	if err := x.Free(t.Context(), p, m, replay.Options{Host: 1, Fidelity: session.Step},
		[]string{"dp"}); err == nil {
		t.Error("fidelity step has calls of no time")
	}
}

// TestPlace: on equal GPUs a job takes the same wherever its ranks are, and is reported
// by its own ranks. Two nodes are no such machine: TP groups that cross them take
// longer.
func TestPlace(t *testing.T) {
	j := readJob(t, golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer"), "trace_rank", "meta")
	slow := replay.Options{Host: 1, Slow: map[int]float64{1: 1.3}}
	p, err := replay.Change(j.Program, slow)
	if err != nil {
		t.Fatal(err)
	}
	q, at, err := replay.Place(p, "1,0")
	if err != nil {
		t.Fatal(err)
	}
	m := h200(t)
	a := replayed(t, m, p, slow)
	slow.At = at
	b := replayed(t, m, q, slow)
	if math.Abs(a.IterationUs-b.IterationUs) > 0.01 || a.WorstRank != 1 || b.WorstRank != 1 ||
		math.Abs(a.ByRank[0].BubbleUs-b.ByRank[0].BubbleUs) > 1 {
		t.Errorf("%.3f and %.3f us, worst ranks %d and %d, %+v and %+v", a.IterationUs, b.IterationUs,
			a.WorstRank, b.WorstRank, a.ByRank[0], b.ByRank[0])
	}
	grid := program(t, "workload 1\nranks 4\ncomm tp0 0,2 kind=TP\ncomm tp1 1,3 kind=TP\n"+
		"comm dp0 0-1 kind=DP\ncomm dp1 2-3 kind=DP\nlist a 0,2\n  call 0 tp0 all_reduce half sum 8\n"+
		"list b 1,3\n  call 0 tp1 all_reduce half sum 8\n")
	for text, want := range map[string]string{"tp,dp": "[0 2 1 3]", "dp,tp": "[0 1 2 3]",
		"3,2,1,0": "[3 2 1 0]", "tp": "[0 2 1 3]"} {
		q, at, err := replay.Place(grid, text)
		if err != nil || fmt.Sprint(at) != want || q.Lint() != nil {
			t.Errorf("%s: %v, want %s (%v)", text, at, want, err)
		}
	}
	for _, text := range []string{"0,1,2", "0,1,2,2", "0,1,2,4", "ep", "0,tp", "tp,0", "x", ""} {
		if _, _, err := replay.Place(grid, text); err == nil {
			t.Errorf("%q is a placement", text)
		}
	}
}

// TestVersus: a table has a column for each set of options.
func TestVersus(t *testing.T) {
	j := readJob(t, golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer"), "trace_rank", "meta")
	m := h200(t)
	a := replayed(t, m, j.Program, replay.Options{Host: 1})
	v := a.Versus("--host 0.5", replayed(t, m, j.Program, replay.Options{Host: 0.5}))
	var b bytes.Buffer
	if err := a.WriteVersus(&b, []replay.Versus{v}); err != nil || v.Ratio != v.IterationUs/a.IterationUs {
		t.Error(err)
	}
	for _, want := range []string{"as given", "--host 0.5", "+0.0 %", "exposed, pg0"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s is not in\n%s", want, &b)
		}
	}
}

// TestFolded: groups that do the same are one row.
func TestFolded(t *testing.T) {
	r := replay.Report{Groups: []replay.Group{{Name: "tp0", Kind: "TP", Ranks: 2, Calls: 4, ExposedUs: 100},
		{Name: "tp1", Kind: "TP", Ranks: 2, Calls: 4, ExposedUs: 100.5}, {Name: "tp2", Kind: "TP", Ranks: 2,
			Calls: 4, ExposedUs: 150}, {Name: "dp", Kind: "DP", Ranks: 2, Calls: 4, ExposedUs: 100}}}
	var names []string
	for _, g := range r.Folded() {
		names = append(names, g.Name)
	}
	if got := strings.Join(names, ", "); got != "tp0 and 1 more, tp2, dp" || r.Groups[0].Name != "tp0" {
		t.Error(got)
	}
}
