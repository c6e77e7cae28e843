package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/builtin"
)

func small(op string, sizes ...string) Spec {
	return Spec{Workload: Workload{Op: op, Sizes: sizes}}
}

// TestSpecSurvivesItsFile: what is written is read again.
func TestSpecSurvivesItsFile(t *testing.T) {
	s := Spec{Format: FormatVersion, Name: "a name", Seed: 7,
		Machine: Machine{Nodes: []Nodes{{"a.xml", 4}, {"b.xml", 2}}, GPUs: 4, Multicast: "off",
			NVLinkDomain: 2, Class: "h200"},
		NCCL:    NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}},
		Network: Network{Fabric: "f.json", Faults: []string{"nic=node0/2:down"}},
		Workload: Workload{Op: "broadcast", Range: Range{Min: "8", Max: "1M", Factor: 2},
			Types: []string{"half"}, Root: -1, Cycles: 2},
		Engine: Engine{Fold: "near", Skip: "off", Jitter: "off", Launch: "graph", Processes: 2, Threads: 2,
			Rivals: true},
		Outputs: Outputs{Trace: "t.json.gz", Detail: "channel"},
		Grid:    []Axis{{Path: "machine.nodes[0].count", Values: []Value{Value("1"), Value("2")}}}}
	got, err := Parse(s.JSON(), "s.json")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, got, cmp.Transformer("json", func(v Value) string { return string(v) })); diff !=
		"" {
		t.Error(diff)
	}
}

// TestComplaintsHavePlaces: each mistake is named at its place, all at once.
func TestComplaintsHavePlaces(t *testing.T) {
	_, err := Parse([]byte(`{"scenario": 1,
 "machine": {"multicast": "maybe", "gpus": -1},
 "network": {"faults": ["rank=0:slow=2",
   "nic=:down"]},
 "workload": {"op": "all_reduce", "sizes": ["8", "1Q"]},
 "engine": {"fidelity": "step"},
 "outputs": {"trace": "t.txt"}}`), "s.json")
	if err == nil {
		t.Fatal("accepted")
	}
	var lines []string
	for line := range strings.Lines(err.Error()) {
		text, _, _ := strings.Cut(line, ";")
		lines = append(lines, strings.TrimSpace(text))
	}
	want := []string{
		"s.json:2:44: machine.gpus -1: must be at least 0",
		"s.json:2:27: machine.multicast maybe: not known",
	}
	for i, w := range want {
		if i >= len(lines) || lines[i] != w {
			t.Errorf("line %d of\n%v\nwant %s", i, err, w)
		}
	}
	for _, w := range []string{"s.json:5:50: workload.sizes[1] 1Q:",
		"s.json:4:4: network.faults[1] nic=:down:",
		"s.json:7:23: outputs.trace t.txt: the name must end in .json, .json.gz, .json.zst, .pftrace, " +
			".pftrace.gz or .pftrace.zst"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nlacks %s", err, w)
		}
	}
	var placed *fail.FileError
	if !errors.As(err, &placed) {
		t.Errorf("%T", err)
	}
	for text, want := range map[string]string{
		`{"scenario": 2}`:                     `s.json:1:14: scenario format 2 is not known; write "scenario": 1`,
		`{}`:                                  `s.json:1:1: scenario format 0 is not known; write "scenario": 1`,
		"{\"scenario\": 1,\n\"workloda\":{}}": `s.json:2:1: unknown member "workloda"; write one of scenario, name, machine, nccl, network, workload, engine, seed, outputs, grid`,
	} {
		if _, err := Parse([]byte(text), "s.json"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestGridExpandsInOrder: all combinations, the last axis changing fastest.
func TestGridExpandsInOrder(t *testing.T) {
	s := small("all_reduce", "8")
	s.Grid = []Axis{{"machine.nodes[0].count", []Value{Value("1"), Value("2")}},
		{"nccl.env.NCCL_ALGO", []Value{Value(`"Ring"`), Value(`"Tree"`)}}}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := s.Expand(func(_ int, p Spec) bool {
		if len(p.Grid) > 0 {
			t.Error("a point has a grid")
		}
		b, _ := json.Marshal(p.Machine.Nodes[0].Count)
		got = append(got, string(b)+p.NCCL.Env["NCCL_ALGO"])
		return true
	})
	if want := []string{"1Ring", "1Tree", "2Ring", "2Tree"}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if s.NCCL.Env != nil || s.Machine.Nodes != nil {
		t.Error("expanding changed the Spec")
	}
	for _, x := range []struct{ path, value, want string }{
		{"machine.nodez", "1", `a scenario has no member "nodez"`},
		{"machine.gpus", `"x"`, "cannot unmarshal string"},
		{"machine.nodes[2].count", "1", `index "2" of a list of 0`},
		{"grid", "[]", `no member "grid"`},
		{"workload.op.x", "1", `nothing lies below "x"`},
		{"engine.fold", `"sometimes"`, "engine.fold sometimes: not known"},
	} {
		s.Grid = []Axis{{x.path, []Value{Value(x.value)}}}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s = %s: %v", x.path, x.value, err)
		}
	}
	huge := Axis{Path: "seed", Values: make([]Value, 10_000)}
	for i := range huge.Values {
		huge.Values[i] = Value("1")
	}
	s.Grid = []Axis{huge, huge}
	if _, err := s.Points(); !errors.Is(err, ErrTooManyPoints) {
		t.Error(err)
	}
}

// TestDigestIsOfContents: a renamed file changes nothing, a changed one does.
func TestDigestIsOfContents(t *testing.T) {
	files := fstest.MapFS{"a.xml": {Data: builtin.DGXH100()}, "b.xml": {Data: builtin.DGXH100()},
		"c.xml": {Data: append([]byte("<!-- -->"), builtin.DGXH100()...)}}
	digest := func(change func(*Spec)) string {
		s := small("all_reduce", "8")
		s.Machine.Nodes = []Nodes{{"a.xml", 2}}
		change(&s)
		d, err := Digest(&s, Options{Files: files})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	base := digest(func(*Spec) {})
	for name, change := range map[string]func(*Spec){
		"file name": func(s *Spec) { s.Machine.Nodes[0].Topo = "b.xml" }, "name": func(s *Spec) {
			s.Name = "x"
		},
		"output": func(s *Spec) { s.Outputs.Trace = "t.json" }, "seed 1": func(s *Spec) { s.Seed = 1 },
		"the same file as a setting": func(s *Spec) {
			s.Machine.Nodes[0].Topo, s.NCCL.Env = "", map[string]string{"NCCL_TOPO_FILE": "b.xml"}
		},
	} {
		if digest(change) != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	for name, change := range map[string]func(*Spec){
		"contents": func(s *Spec) { s.Machine.Nodes[0].Topo = "c.xml" }, "nodes": func(s *Spec) {
			s.Machine.Nodes[0].Count = 3
		},
		"seed": func(s *Spec) { s.Seed = 2 }, "setting": func(s *Spec) {
			s.NCCL.Env = map[string]string{"NCCL_ALGO": "Ring"}
		},
		"fault": func(s *Spec) { s.Network.Faults = []string{"rank=0:slow=2"} }, "class": func(s *Spec) {
			s.Machine.Class = "pcie-sm80"
		},
	} {
		if digest(change) == base {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

// TestRun: a run gives rows, the same whatever the number of workers, and shards
// of a grid merge to the whole.
func TestRun(t *testing.T) {
	s := small("all_reduce", "8", "64K")
	s.Machine.Nodes = []Nodes{{Count: 1}}
	s.Grid = []Axis{{"workload.op", []Value{Value(`"all_reduce"`), Value(`"all_gather"`),
		Value(`"sendrecv"`)}}}
	run := func(i, workers int) *Result {
		p, err := s.Point(i)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(context.Background(), p, Options{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	text := func(r *Result) string {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for i := range 3 {
		if one, many := text(run(i, 1)), text(run(i, 3)); one != many {
			t.Errorf("point %d: one worker\n%s\nthree\n%s", i, one, many)
		}
	}
	row := run(0, 1).Rows[1]
	if row.Out.Time <= 0 || row.Facts.Algo == "-" || row.Facts.Limit == "-" || !row.Out.Checked ||
		row.Bytes != 64<<10 {
		t.Errorf("%+v", row)
	}
	if _, err := Run(context.Background(), s, Options{}); !errors.Is(err, ErrGrid) {
		t.Error(err)
	}
}

// TestErrorsSayWhatIsWrong: of files, settings and members.
func TestErrorsSayWhatIsWrong(t *testing.T) {
	files := fstest.MapFS{"bad.xml": {Data: []byte("<system><")}, "a.xml": {Data: builtin.DGXH100()}}
	for _, x := range []struct {
		change func(*Spec)
		input  bool
		want   string
	}{
		{func(s *Spec) { s.Machine.Nodes = []Nodes{{Topo: "none.xml"}} }, true, "none.xml"},
		{func(s *Spec) { s.Machine.Nodes = []Nodes{{Topo: "bad.xml"}} }, true, "bad.xml:1:"},
		{func(s *Spec) { s.Machine.GPUs = 9 }, false, "machine.gpus 9: dgx-h100.xml has only 8 GPUs"},
		{func(s *Spec) { s.Machine.Class = "h900" }, false, "machine.class"},
		{func(s *Spec) { s.Engine.Processes = 3 }, false, "8 GPUs of a node cannot be divided evenly"},
		{func(s *Spec) { s.Network.Faults = []string{"link=a~b:down"} }, false, "without a fabric"},
		{func(s *Spec) { s.Workload.Op, s.Workload.Root = "broadcast", 16 }, false,
			"must be a rank from 0 to 15"},
		{func(s *Spec) { s.NCCL.Env = map[string]string{"NCCL_ALGO": "Rign"} }, false, "NCCL_ALGO=Rign"},
	} {
		s := small("all_reduce", "8")
		x.change(&s)
		_, err := Run(context.Background(), s, Options{Files: files})
		var in *InputError
		if err == nil || !strings.Contains(err.Error(), x.want) || errors.As(err, &in) != x.input {
			t.Errorf("%v, want %s", err, x.want)
		}
	}
}

// FuzzParse: every file is a scenario or an error with a place, and a scenario
// written again is the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"scenario": 1, "workload": {"op": "all_reduce", "sizes": ["1M"]}}`))
	f.Add([]byte(
		`{"scenario": 1, "machine": {"nodes": [{"topo": "a.xml", "count": 2}]}, "workload": {"op": "sendrecv"}, "grid": [{"path": "seed", "values": [1, 2]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, "s.json")
		if err != nil {
			return
		}
		again, err := Parse(s.JSON(), "s.json")
		if err != nil || string(again.JSON()) != string(s.JSON()) {
			t.Fatalf("%s\n%v", s.JSON(), err)
		}
	})
}

// TestDomainBesideAHostWithoutFabric: an NVLink domain is kept where every host
// has a fabric, else taken apart with a warning.
func TestDomainBesideAHostWithoutFabric(t *testing.T) {
	tray := func(host int) string {
		return fmt.Sprintf(
			`<cpu numaid="0" host_hash="0x%d" arch="arm64"><pci busid="0009:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="100" gdr="1"><nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/></gpu></pci></cpu>`, host)
	}
	files := fstest.MapFS{
		"one.xml": {Data: []byte(`<system version="1">` + tray(1) + `</system>`)},
		"two.xml": {Data: []byte(`<system version="1">` + tray(1) + tray(2) + `</system>`)},
	}
	for domain, hosts := range map[int]int{0: 3, 1: 2} {
		var warned []string
		s := small("all_reduce", "8")
		s.Machine = Machine{Nodes: []Nodes{{"two.xml", 1}, {"one.xml", 1}}, NVLinkDomain: domain}
		site, err := Layout(&s, Options{Files: files, Warn: func(w error) {
			warned = append(warned, w.Error())
		}})
		if err != nil {
			t.Fatal(err)
		}
		if site.Cluster.NHosts() != hosts || strings.Contains(strings.Join(warned, "\n"),
			"one.xml is one host") != (domain == 0) {
			t.Errorf("nvlinkDomain %d: %d hosts, warnings %q", domain, site.Cluster.NHosts(), warned)
		}
	}
}
