package compare

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
)

const us = units.Microsecond

// record writes ten steps on each of two ranks; step late takes slow longer.
func record(t *testing.T, late int, slow units.Time) string {
	t.Helper()
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{Meta: chrome.Meta{Source: "sim"}})
	rec := nccl.New(w, nccl.Options{Detail: nccl.DetailStep})
	link := rec.Link("GPU0→NVS", 450)
	at := units.Time(0)
	for i := range 10 {
		dur := 2 * us
		if i == late {
			dur += slow
		}
		flow := rec.Flow()
		rec.Rate(link, at, 50)
		rec.Steps(&nccl.Step{Rank: 0, Dir: nccl.Send, Peer: 1, Step: int64(i), Bytes: 1000,
			Transport: "NET/IB", Chunk: -1}, flow,
			nccl.Phase{Wait: nccl.SendWait, Start: at, End: at + dur})
		rec.Steps(&nccl.Step{Rank: 1, Dir: nccl.Recv, Peer: 0, Step: int64(i), Bytes: 1000,
			Transport: "NET/IB", Chunk: -1}, flow,
			nccl.Phase{Wait: nccl.RecvWait, Start: at + us/2, End: at + dur})
		at += dur
		rec.Rate(link, at, 0)
		at += us
	}
	rec.Finish(at)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStatsAddUp(t *testing.T) {
	s, err := Count(strings.NewReader(record(t, -1, 0)), new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Kinds) != 2 || s.Kinds[0].Name != "SendWait" || s.Kinds[0].Count != 10 ||
		s.Kinds[0].Total != 20 || s.Kinds[0].Bytes != 10000 || s.Kinds[1].Mean != 1.5 {
		t.Errorf("%+v", s.Kinds)
	}
	if l := s.Links; len(l) != 2 || l[0].Peak != 50 || l[0].Name != "GPU0→NVS GB/s" || l[1].Peak != 11.11 ||
		l[1].Name != "GPU0→NVS util %" || l[0].Busy < 68.9 || l[0].Busy > 69 {
		t.Errorf("%+v", l)
	}
	var out strings.Builder
	if err := s.Text(&out); err != nil || !strings.Contains(out.String(), "SendWait") {
		t.Error(err, out.String())
	}
}

func TestDiffFindsTheFirstDeparture(t *testing.T) {
	same, err := Diff(strings.NewReader(record(t, -1, 0)), strings.NewReader(record(t, -1, 0)), 0,
		new(trace.Budget))
	if err != nil || !same.Equal() || same.Matched != 20 {
		t.Fatalf("a trace differs from itself: %v %+v", err, same)
	}
	d, err := Diff(strings.NewReader(record(t, -1, 0)), strings.NewReader(record(t, 4, 3*us)), us/100,
		new(trace.Budget))
	if err != nil {
		t.Fatal(err)
	}
	if d.First == nil || d.First.Number != 4 || d.First.Name != "SendWait" || d.First.DurUs != [2]float64{
		2, 5} || d.Equal() {
		t.Errorf("first departure %+v", d.First)
	}
	if d.Largest[0].Number != 4 || d.Kinds[0].TotalUs[1]-d.Kinds[0].TotalUs[0] != 3 {
		t.Errorf("largest %+v, kinds %+v", d.Largest[0], d.Kinds)
	}
	var out strings.Builder
	if err := d.Text(&out, [2]string{"sim.json", "real.json"}); err != nil || !strings.Contains(out.String(),
		"first departure: rank 0 · ch 00 send: NET SendWait #4: A 12.000 +2.000 us") {
		t.Error(err, out.String())
	}
}

// Two traces in one file still pass every rule, with all arrows of both.
func TestMergedTracePasses(t *testing.T) {
	var out bytes.Buffer
	w := chrome.New(&out, chrome.Options{Meta: chrome.Meta{Source: "merged"}})
	left, err := Merge(w, []string{"sim", "real"}, []io.Reader{strings.NewReader(record(t, -1, 0)),
		strings.NewReader(record(t, 4, 3*us))}, new(trace.Budget))
	if err != nil || left != 0 {
		t.Fatal(left, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := validate.Check(bytes.NewReader(out.Bytes()))
	if err != nil || len(rep.Problems) != 0 || rep.Flows != 20 || rep.Slices != 40 {
		t.Fatalf("%v %+v", err, rep)
	}
	if !strings.Contains(out.String(), `"name":"[real] rank 1"`) || !strings.Contains(out.String(),
		`"pid":11000001`) {
		t.Error("the second trace is not identified")
	}
}

// NCCL's own profiler writes asynchronous pairs; they count as slices.
func TestStatsOfNCCLProfiler(t *testing.T) {
	s, err := Count(
		strings.NewReader(
			`[{"name":"AllReduce","cat":"COLL","ph":"b","id":3,"pid":8,"tid":1,"ts":10.25,"args":{"datatype": ncclFloat32}},
{"name":"AllReduce","cat":"COLL","ph":"e","id":3,"pid":8,"tid":1,"ts":12.5},{}]`), new(trace.Budget))
	if err != nil || len(s.Kinds) != 1 || s.Kinds[0].Total != 2.25 {
		t.Errorf("%v %+v", err, s)
	}
	if _, err := Merge(trace.Discard, []string{"a"}, []io.Reader{strings.NewReader("[")},
		new(trace.Budget)); err != nil {
		t.Error(err)
	}
}

// TestLaunchIsUntilTheFirstKernel: an operation waits for its kernel from its begin to that of the first one
// of its rank, unless the trace says how long, or no kernel begins while it runs.
func TestLaunchIsUntilTheFirstKernel(t *testing.T) {
	at := func(start, end units.Time) *slice { return &slice{start: start, end: end} }
	said := at(2, 30)
	said.reported, said.terms[nccl.Launch] = true, 3
	early, at0, atEnd, p2p, step := at(1, 30), at(7, 30), at(2, 7), at(4, 9), at(2, 30)
	s := &side{slices: map[series][]*slice{
		{pid: 1, cat: "GPU", thread: "b"}:  {at(9, 10)},
		{pid: 1, cat: "GPU", thread: "a"}:  {at(7, 8), at(8, 9)},
		{pid: 1, cat: "COLL"}:              {early, said, at0, atEnd},
		{pid: 1, cat: "P2P"}:               {p2p},
		{pid: 1, cat: "NET"}:               {step},
		{pid: 2, cat: "COLL", name: "far"}: {at(1, 30)},
	}}
	s.launches()
	for i, c := range []struct {
		x    *slice
		want units.Time
		ok   bool
	}{{early, 6, true}, {said, 3, true}, {at0, 0, true}, {atEnd, 0, false}, {p2p, 3, true}, {step, 0, false},
		{s.slices[series{pid: 2, cat: "COLL", name: "far"}][0], 0, false}} {
		if c.x.terms[nccl.Launch] != c.want || c.x.reported != c.ok {
			t.Errorf("operation %d: %v, %t, want %v, %t", i, c.x.terms[nccl.Launch], c.x.reported, c.want,
				c.ok)
		}
	}
}
