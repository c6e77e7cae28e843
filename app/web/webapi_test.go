package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/scenario"
)

// ask makes a call and returns its answer and parts.
func ask[T any](t *testing.T, s *Service, method string, query any) (answer T, parts []any) {
	t.Helper()
	text, err := json.Marshal(query)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Call(context.Background(), method, text, func(p any) { parts = append(parts, p) })
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if _, err := json.Marshal(out); err != nil {
		t.Fatalf("%s: the answer is no JSON: %v", method, err)
	}
	answer, ok := out.(T)
	if !ok {
		t.Fatalf("%s answered with a %T", method, out)
	}
	return answer, parts
}

func spec(topo string, nodes int, op string, sizes ...string) scenario.Spec {
	return scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: topo, Count: nodes}}},
		Workload: scenario.Workload{Op: op, Sizes: sizes}}
}

// Rows of the page are those of scenario.Run, and the texts are those of its table.
func TestRowsAreTheRuns(t *testing.T) {
	s := New("test")
	for _, x := range []scenario.Spec{spec("dgx-h100", 2, "all_reduce", "1K", "4M"),
		spec("hgx-a100-4", 1, "alltoall", "64K"), spec("dgx-h100", 4, "all_reduce", "4M")} {
		want, err := scenario.Run(context.Background(), x, scenario.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ran, parts := ask[*Ran](t, s, "run", Query{Spec: x})
		var rows []*Row
		for _, p := range parts {
			if r, ok := p.(*Row); ok {
				rows = append(rows, r)
			}
		}
		if len(rows) != len(want.Rows) {
			t.Fatalf("%d rows, want %d", len(rows), len(want.Rows))
		}
		for i, r := range rows {
			w := &want.Rows[i]
			if r.Us != w.Out.Time.Micros() || r.BusBW != w.Out.BusBW ||
				r.Time != strings.TrimSpace(nccltests.Float(w.Out.Time.Micros(), 7)) ||
				!strings.Contains(ran.Table, r.Time) {
				t.Errorf("%d B: %+v, want %+v", r.Bytes, r, w)
			}
			if r.Merged != (r.Facts.Simulated == "folded") {
				t.Errorf("%d B, %s: merged is %v", r.Bytes, r.Facts.Simulated, r.Merged)
			}
			known := 0
			for _, u := range r.Use {
				if u >= 0 {
					known++
				}
			}
			if known == 0 || len(r.Loads) == 0 || r.Loads[0].Use < r.Loads[len(r.Loads)-1].Use {
				t.Errorf("%d B: loads %+v of %d known links", r.Bytes, r.Loads, known)
			}
		}
	}
}

// What is drawn at once agrees with what is simulated: ranks, channels, choices.
func TestMachineAndModel(t *testing.T) {
	s := New("test")
	x := spec("dgx-h100", 2, "all_reduce", "64K", "64M")
	m, _ := ask[*Machine](t, s, "machine", Query{Spec: x})
	if m.Ranks != 16 || m.Hosts != 2 || len(m.Rings) != m.Channels || len(m.Rings[0]) != 16 ||
		len(m.Trees[0]) != 16 || len(m.NICs) != 8 || len(m.Paths.Ends) != 16 {
		t.Errorf("ranks %d, hosts %d, rings %d of %d channels, NICs %v, ends %v", m.Ranks, m.Hosts,
			len(m.Rings), m.Channels, m.NICs, m.Paths.Ends)
	}
	for _, l := range m.Links {
		if l.From < 0 || l.To < 0 || l.From >= len(m.Devices) || l.To >= len(m.Devices) {
			t.Fatalf("link %+v of %d devices", l, len(m.Devices))
		}
	}
	model, _ := ask[*Model](t, s, "model", Query{Spec: x})
	for i, size := range []string{"64K", "64M"} {
		e, _ := ask[Explained](t, s, "explain", Query{Spec: x, Size: size})
		if e.Choice == nil || model.Choice[i] != e.Choice.Algo+" "+e.Choice.Proto ||
			float32(model.Us[i]) != e.Choice.TimeUs {
			t.Errorf("%s: model %s %g us, explain %+v", size, model.Choice[i], model.Us[i], e.Choice)
		}
	}
	other := spec("dgx-h100", 2, "all_reduce", "64M")
	other.NCCL.Env = map[string]string{"NCCL_ALGO": "Ring"}
	c, _ := ask[Compared](t, s, "compare", Query{Spec: x, Other: &other})
	if len(c.Choices) == 0 || !strings.Contains(c.Text, "NCCL_ALGO") {
		t.Errorf("comparison: %s", c.Text)
	}
}

// A topology in which every NIC has another speed differs in nothing else.
func TestNICs(t *testing.T) {
	s := New("test")
	c, _ := ask[Changed](t, s, "nics", Query{Spec: spec("dgx-h100", 2, "all_reduce", "8"), Gbps: 200})
	if c.NICs != 8 {
		t.Errorf("%d NICs", c.NICs)
	}
	was, _ := ask[*File](t, s, "topology", Query{Spec: spec("dgx-h100", 2, "all_reduce")})
	is, err := s.read(c.Name)
	if err != nil || !bytes.Equal(bytes.ReplaceAll(was.Data, []byte(`speed="400000"`),
		[]byte(`speed="200000"`)), is) {
		t.Errorf("%s: %v\n%s", c.Name, err, is)
	}
	m, _ := ask[*Machine](t, s, "machine", Query{Spec: spec(c.Name, 2, "all_reduce")})
	if m.NICGbps != 200 {
		t.Errorf("%g Gb/s", m.NICGbps)
	}
}

// Files are recognised by content; what is none of ours is refused with its name.
func TestRecognise(t *testing.T) {
	s := New("test")
	read := func(parts ...string) []byte {
		data, err := os.ReadFile(golden.Root(t, parts...))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	zip := func(data []byte) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(data) //nolint:errcheck // into memory
		z.Close()
		return b.Bytes()
	}
	chrome := []byte(`{"traceEvents":[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"KernelCh"}]}`)
	for _, c := range []struct {
		kind string
		data []byte
	}{
		{"topology", read("testdata", "topos", "gh200.xml")},
		{"topology", zip(read("testdata", "topos", "gh200.xml"))},
		{"scenario", []byte(`{"scenario":1,"workload":{"op":"all_reduce"}}`)},
		{"fabric", []byte(`{"name":"f","routing":"ecmp","switches":[{"name":"a"}],"cables":[]}`)},
		{"trace", chrome}, {"trace", zip(chrome)},
		{"workload",
			[]byte("workload 1\nranks 2\ncomm w *\nlist a 0-1\n  call 0 w all_reduce float sum 8\n")},
		{"log", read("testdata", "measured", "h200x4", "logs", "info_2.log.gz")},
		{"workload", read("testdata", "measured", "h200x2", "jobs", "infer", "trace_rank0.json.gz")},
		{"measured", read("testdata", "measured", "h200x4", "nccl-tests", "perf_all_reduce_4.txt")},
		{"", []byte("<html><img src=x onerror=alert(1)>")}, {"", nil}, {"", []byte{0x1f, 0x8b, 1}},
		{"", zip(nil)}, {"", []byte(`{"scenario":1,"workload":{"op":"<img>"}}`)},
	} {
		const name = "<img src=x onerror=alert(1)>"
		if err := s.Put(name, c.data); err != nil {
			t.Fatal(err)
		}
		query, _ := json.Marshal(Query{Spec: spec("dgx-h100", 2, "all_reduce"), Name: name})
		out, err := s.Call(context.Background(), "recognise", query, func(any) {})
		switch r, ok := out.(*Recognised); {
		case c.kind == "" && (err == nil || !strings.Contains(err.Error(), name)):
			t.Errorf("%.40q: %+v, %v", c.data, out, err)
		case c.kind != "" && (!ok || err != nil || r.Kind != c.kind):
			t.Errorf("%.40q: %+v, %v; want %s", c.data, out, err, c.kind)
		case c.kind == "log" && !r.Report.Equal:
			t.Errorf("the log differs: %s", r.Detail)
		}
	}
}

// Timelines are those of traces and jobs, within their bounds.
func TestTimelines(t *testing.T) {
	s := New("test")
	x := spec("dgx-h100", 1, "all_reduce", "64K")
	x.Machine.GPUs = 2
	drawn, _ := ask[*Timeline](t, s, "timeline", Query{Spec: x, Size: "64K"})
	file, _ := ask[*File](t, s, "trace", Query{Spec: x, Size: "64K"})
	if err := s.Put("t", file.Data); err != nil {
		t.Fatal(err)
	}
	opened, _ := ask[*Timeline](t, s, "open", Query{Spec: x, Name: "t"})
	for _, l := range []*Timeline{drawn, opened} {
		if len(l.Start) == 0 || len(l.Start) != len(l.Track) || len(l.Start) != len(l.Kind) || l.EndNs <= 0 {
			t.Fatalf("%s: %d slices, tracks %v", l.Title, len(l.Start), l.Tracks)
		}
		for _, k := range l.Track {
			if int(k) >= len(l.Tracks) {
				t.Fatalf("track %d of %d", k, len(l.Tracks))
			}
		}
	}
	// of both ranks; the trace has their calls, too, which are shorter
	operation := func(l *Timeline) (ns []int64) {
		for i, n := range l.Name {
			if l.Names[n] == "AllReduce" {
				ns = append(ns, l.Dur[i])
			}
		}
		slices.Sort(ns)
		return ns[max(0, len(ns)-2):]
	}
	if a, b := operation(drawn), operation(opened); len(a) != 2 || !slices.Equal(a, b) {
		t.Errorf("the operation lasts %d ns in the timeline, %d ns in the trace", a, b)
	}
	if err := s.Put("j",
		[]byte("workload 1\nranks 2\ncomm w *\nlist a 0-1\n  call 0 w all_reduce float sum 8\n")); err !=
		nil {
		t.Fatal(err)
	}
	x.Machine.GPUs = 0
	j, _ := ask[*Job](t, s, "job", Query{Spec: x, Names: []string{"j"}})
	if j.Ranks != 2 || j.Report.IterationUs <= 0 || len(j.Timeline.Start) == 0 {
		t.Errorf("job: %+v", j)
	}
}

// A cancelled call ends as cancelled, and the next one works; what is not a call, or no
// Spec, is refused.
func TestCancelledAndRefused(t *testing.T) {
	s := New("test")
	ctx, stop := context.WithCancel(context.Background())
	query, _ := json.Marshal(Query{Spec: spec("dgx-h100", 2, "all_reduce", "1M", "2M", "4M")})
	_, err := s.Call(ctx, "run", query, func(p any) {
		if _, ok := p.(*Row); ok {
			stop()
		}
	})
	if !errors.Is(err, context.Canceled) || !Failed(err).Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	ask[*Ran](t, s, "run", Query{Spec: spec("dgx-h100", 2, "all_reduce", "8")})
	for _, c := range [][3]string{{"nothing", "{}", "no call"}, {"run", `{"spec":{"machine":{"node":[]}}}`,
		"node"}, {"run", "{", "EOF"},
		{"run", `{"spec":{"workload":{"op":"all_reduce"},"machine":{"nodes":[{"topo":"nowhere"}]}}}`,
			"nowhere"},
		{"run", `{"spec":{"workload":{"op":"<b>"}}}`, "<b>"}, {"recognise", `{"spec":{},"name":"absent"}`,
			"absent"}, {"nics", `{"spec":{"workload":{"op":"all_reduce"}},"gbps":-1}`, "-1"},
		{"compare", `{"spec":{"workload":{"op":"all_reduce"}}}`, "two"}} {
		if _, err := s.Call(context.Background(), c[0], []byte(c[1]), func(any) {}); err == nil ||
			!strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s %s: %v", c[0], c[1], err)
		}
	}
}

// Errors name the part of the Spec at which the page shows them.
func TestFailuresHaveAPlace(t *testing.T) {
	s := New("test")
	bad := spec("dgx-h100", 2, "all_reduce", "1M")
	bad.NCCL.Env = map[string]string{"NCCL_ALGO": "Rign"}
	for path, x := range map[string]scenario.Spec{"nccl.env": bad, "workload.op": spec("dgx-h100", 2,
		"all_reduc", "1M"), "machine": spec("nowhere", 2, "all_reduce", "1M")} {
		query, _ := json.Marshal(Query{Spec: x})
		_, err := s.Call(context.Background(), "machine", query, func(any) {})
		if f := Failed(err); err == nil || !strings.HasPrefix(f.Path, path) {
			t.Errorf("%v: path %q, want %s", err, f.Path, path)
		}
	}
}

// The command line of a Spec names what is not as it is by default, and quotes what a
// shell would read.
func TestCommand(t *testing.T) {
	x := spec("dgx-h100", 4, "all_reduce")
	x.Workload.Range = scenario.Range{Min: "1K", Max: "4M", Factor: 4}
	x.NCCL.Env = map[string]string{"NCCL_PROTO": "Simple", "NCCL_ALGO": "Ring; rm -rf '~'"}
	x.Network = scenario.Network{Fabric: "spectrum-x", Model: "packet", CC: "swift",
		Faults: []string{"nic=mlx5_3:absent"}}
	want := `simccl run all_reduce --topo dgx-h100 --nodes 4 --fabric spectrum-x --network packet --cc swift --fault nic=mlx5_3:absent -b 1K -e 4M -f 4 --env 'NCCL_ALGO=Ring; rm -rf '\''~'\''' --env NCCL_PROTO=Simple`
	if got := Command(&x); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestNetwork: a run frame by frame says what frames met, and congestion what would help;
// what is refused has its place.
func TestNetwork(t *testing.T) {
	s := New("test")
	h, _ := ask[Hello](t, s, "hello", Query{})
	if n := h.Networks; len(n.Fabrics) < 5 || n.Models[0] != "flow" || !slices.Contains(n.Controls,
		"swift") || len(n.Classes) == 0 {
		t.Errorf("%+v", n)
	}
	x := spec("dgx-h100", 4, "alltoall", "1M")
	x.Network.Fabric, x.Network.Model = "meta", "packet"
	query, _ := json.Marshal(Query{Spec: x})
	var row *Row
	if _, err := s.Call(context.Background(), "run", query, func(p any) {
		if r, ok := p.(*Row); ok {
			row = r
		}
	}); err != nil || row == nil || len(row.Network) < 2 || !strings.Contains(row.Network[0],
		"pause frames") {
		t.Fatalf("%v: %+v", err, row)
	}
	c, _ := ask[Congestion](t, s, "congestion", Query{Spec: x, Size: "1M"})
	if c.Us != row.Us || !strings.Contains(c.Text, "Network, frame by frame") ||
		!strings.Contains(c.Text, "tried --network flow") {
		t.Errorf("%.3f us for %.3f: %s", c.Us, row.Us, c.Text)
	}
	x.Network.Model = ""
	fault := spec("dgx-h100", 2, "all_reduce", "1M")
	fault.Network.Faults = []string{"nic=node0/99:slow=2"}
	for path, x := range map[string]scenario.Spec{"network.faults": fault, "network.model": x,
		"network.cc":      func() scenario.Spec { y := x; y.Network.CC = "swift"; return y }(),
		"network.balance": func() scenario.Spec { y := x; y.Network.Balance = "packet"; return y }()} {
		call := "run"
		if path == "network.model" {
			call = "congestion"
		}
		query, _ := json.Marshal(Query{Spec: x, Size: "1M"})
		if _, err := s.Call(context.Background(), call, query, func(any) {}); err == nil ||
			Failed(err).Path != path {
			t.Errorf("%s: %v, path %q", path, err, Failed(err).Path)
		}
	}
}

// A call that ends, or is cancelled, cancels no other call on its machine.
func TestCallsOverlap(t *testing.T) {
	s := New("test")
	x := spec("dgx-h100", 2, "all_reduce", "64K", "4M")
	query, _ := json.Marshal(Query{Spec: x, Size: "64K"})
	others := 0
	_, err := s.Call(context.Background(), "run", query, func(p any) {
		ctx, stop := context.WithCancel(context.Background())
		if _, err := s.Call(ctx, "explain", query, func(any) {}); err == nil {
			others++
		}
		stop()
	})
	if err != nil || others != 5 {
		t.Errorf("run: %v; %d other calls answered", err, others)
	}
}
