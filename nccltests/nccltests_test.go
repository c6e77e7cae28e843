package nccltests

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func reprint(t *testing.T, p *Parsed) string {
	t.Helper()
	var out bytes.Buffer
	tab := NewTable(&out)
	for _, l := range p.Preface {
		tab.Preface(l)
	}
	tab.Start(&p.Config, p.Devices)
	for i := range p.Rows {
		p.Rows[i].Extra = nil
		tab.Row(&p.Rows[i])
	}
	if err := tab.Finish(&p.Config, &p.Summary); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Tables of nccl-tests 2.19.6 measured on 4 x H200, read and printed again,
// are the same to the byte. The numbers were rounded by nccl-tests, so this
// proves layout and widths; TestFloat proves the rounding.
func TestReprintMeasuredTables(t *testing.T) {
	files, _ := filepath.Glob("../testdata/measured/h200x4/nccl-tests/*.txt")
	more, _ := filepath.Glob("../../shared/measured/h200x4/nccl-tests/*.txt")
	if files = append(files, more...); len(files) == 0 {
		t.Skip("no measured tables in testdata/measured or ../shared")
	}
	for _, f := range files {
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		p, err := one(want)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if got := reprint(t, p); got != string(want) {
			t.Errorf("%s: differs:\n%s", f, firstDifference(got, string(want)))
		}
	}
	t.Logf("%d tables", len(files))
}

func firstDifference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "want " + w[i]
		}
	}
	return "one is longer"
}

// Values on both sides of every change of format (util.cu:487), as C prints
// them.
func TestFloat(t *testing.T) {
	for _, c := range []struct {
		v     float64
		width int
		want  string
	}{
		{0, 7, "   0.00"}, {33.631, 7, "  33.63"}, {9999.994, 7, "9999.99"}, {9999.996, 7, "10000.0"},
		{99999.94, 7, "99999.9"}, {99999.96, 7, " 100000"}, {9999999.4, 7, "9999999"},
		{9999999.6, 7, "1.0e+07"},
		{123456789, 7, "1.2e+08"}, {999.994, 6, "999.99"}, {999.996, 6, "1000.0"}, {9999.96, 6, " 10000"},
		{999999.6, 6, " 1e+06"}, {0.125, 6, "  0.12"}, {0.375, 6, "  0.38"}, {115.797, 6, "115.80"},
	} {
		if got := Float(c.v, c.width); got != c.want {
			t.Errorf("Float(%v, %d) = %q, want %q", c.v, c.width, got, c.want)
		}
	}
}

func TestSummaryAndWrongColumn(t *testing.T) {
	var out bytes.Buffer
	c := Config{Program: "all_reduce_perf", Threads: 1, GPUs: 2, MinBytes: 8, MaxBytes: 8, StepFactor: 2,
		Warmup: 1, Iters: 20, AggIters: 1, Check: 1}
	tab := NewTable(&out, Column{"algo", "", 8})
	tab.Start(&c, nil)
	tab.Row(&Row{Size: 8, Count: 2, Type: "float", RedOp: "sum", Root: -1,
		Out: Measure{TimeUs: 1, Checked: true}, In: Measure{TimeUs: 2, Wrong: 12345678, Checked: true},
		Extra: []string{"RING"}})
	s := Summary{OutOfBounds: 1, AvgBusBW: 1234567.8, MinBW: 2e6}
	if err := tab.Finish(&c, &s); err != nil {
		t.Fatal(err)
	}
	if !s.Failed() {
		t.Error("wrong values and too low a bandwidth pass")
	}
	for _, want := range []string{
		"     1.00    0.00    0.00       0     2.00    0.00    0.00  1.23457e+07      RING\n",
		"# Out of bounds values : 1 FAILED\n# Avg bus bandwidth    : 1.23457e+06 FAILED\n",
		"#wrong       algo\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestJSONLayout(t *testing.T) {
	r := Report{Start: "2026-01-02 03:04:05", End: "2026-01-02 03:04:06", Args: []string{"./all_reduce_perf",
		"-b", "8"},
		Env: []string{"NCCL_DEBUG=INFO", "X=a\"b\\\t\n→cut"},
		Config: Config{NCCLLibrary: 22809, Threads: 1, GPUs: 1, MinBytes: 8, MaxBytes: 8, StepFactor: 2,
			Warmup: 1, Iters: 20, AggIters: 1},
		Devices: []Device{{Rank: 0, PID: 7, Host: "vm", BusID: "0000:00:06", Name: "NVIDIA H200"}},
		Rows: []Row{{Size: 8, Count: 2, Type: "float", RedOp: "sum", Root: -1,
			Out: Measure{TimeUs: 33.63, AlgBW: 0.25, BusBW: 0.375},
			In:  Measure{TimeUs: 1, Checked: true}}},
		Own: []string{`{"algo":"RING"}`}, Summary: Summary{AvgBusBW: 0.1875, MinBW: -1}}
	var out bytes.Buffer
	if err := WriteJSON(&out, &r); err != nil {
		t.Fatal(err)
	}
	want := `{"version":3,"start_time":"2026-01-02 03:04:05","args":[".\/all_reduce_perf","-b","8"],"env":["NCCL_DEBUG=INFO","X=a\"b\\\t\n"],` +
		`"nccl_version":22809,"config":{"nthreads":1,"ngpus":1,"minimum_bytes":8,"maximum_bytes":8,"step_factor":2,"warmup_iters":1,` +
		`"iterations":20,"aggregated_iterations":1,"validation":0,"graph":0,"blocking_collectives":"false","per_iter_timing":"false",` +
		`"per_iter_skip":0,"parallel_init":"false","devices":[{"rank":0,"group":0,"pid":7,"hostname":"vm","device":0,` +
		`"device_hex":"0000:00:06","device_info":"NVIDIA H200"}]},"results":[{"size":8,"count":2,"type":"float","redop":"sum",` +
		`"root":"    -1","out_of_place":{"time":33.630000,"alg_bw":0.250000,"bus_bw":0.375000,"nwrong":null},` +
		`"in_place":{"time":1.000000,"alg_bw":0.000000,"bus_bw":0.000000,"nwrong":0.000000},"simccl":{"algo":"RING"},` +
		`"actual_iterations":20,"experiment_name":""}],"out_of_bounds":{"count":0,"okay":"true"},` +
		`"average_bus_bandwidth":{"bandwidth":0.187500,"okay":"unchecked"},"errors":[""],"end_time":"2026-01-02 03:04:06"}`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
	if !json.Valid(out.Bytes()) {
		t.Error("not valid JSON")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n" +
		"8 2 float sum -1 33.63 0.00 0.00 N/A 33.39 0.00 0.00 N/A\n")
	f.Add("[1,0]<stdout>:" + head + "[1,0]<stdout>:" + row1)
	f.Add(head + row1[:52] + "nodez:91:120 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0]\n" + row1[52:84] +
		"nodez:91:120 [0] NCCL INFO x\n" + row1[84:])
	f.Add(head + "nodez:91:120 [0] NCCL INFO x " + row1)
	f.Add("#      bytes             N    type    root     time  algbw  busbw      res\n" +
		" 2097152 524288 float 0 0.051 41.04 41.04 0e+00\n")
	f.Add("# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: " +
		"1\n# Avg bus bandwidth : nan\n#  Rank 0 Pid 1 on n device 0 [0x07] V100\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse([]byte(text), "")
		if (p == nil) == (err == nil) {
			t.Fatal("want either a table or an error")
		}
		for _, x := range p {
			for _, r := range x.Rows {
				if r.Size < 0 || r.Count < 0 || !(r.Out.TimeUs >= 0 && r.In.TimeUs >= 0) {
					t.Fatalf("%+v", r)
				}
			}
			if x.Left(); x.Cut > 0 && (x.FirstCut == nil || x.FirstCut.Line < 1 || x.FirstCut.Column < 1) {
				t.Fatalf("%d rows cut, the first %v", x.Cut, x.FirstCut)
			}
		}
	})
}
