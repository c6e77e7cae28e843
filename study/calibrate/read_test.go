package calibrate

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/sim"
)

const table = `# 2026-11-21T08:45:30Z env NCCL_ALGO=Tree NCCL_DEBUG=INFO all_reduce_perf -g 2
# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 32 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 0 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid   2329 on         vm device  0 [0000:00:06] NVIDIA H200
#  Rank  1 Group  0 Pid   2329 on         vm device  1 [0000:00:07] NVIDIA H200
#
           8             2     float     sum      -1    11.70    0.00    0.00    N/A    12.42    0.00    0.00    N/A
          16             4     half      max      -1    11.03    0.00    0.00    N/A    12.05    0.00    0.00    N/A
`

const document = `{"version":3,"start_time":"2026-11-20 10:00:00","args":["build/all_gather_perf","-G","2"],"env":["NCCL_PROTO=LL","NCCL_DEBUG=WARN"],"nccl_version":22809,
"config":{"nthreads":1,"ngpus":1,"graph":2,"devices":[{"rank":0,"hostname":"a","device_info":"NVIDIA H200"},{"rank":1,"hostname":"b","device_info":"NVIDIA H200"}]},
"results":[{"size":1024,"count":128,"type":"float","redop":"none","root":"    -1","out_of_place":{"time":7.5,"alg_bw":0.1,"bus_bw":"nan","nwrong":null},"in_place":{"time":0.0,"alg_bw":0,"bus_bw":0,"nwrong":null}}]}`

// tables are files of every kind that Read takes or leaves out.
func tables() fstest.MapFS {
	return fstest.MapFS{
		"a/table.txt": {
			Data: []byte(strings.Replace(table, "#\n",
				"vm:7:9 [0] NCCL INFO Bootstrap: Using eth0\n****\n#\n", 1))},
		"a/doc.json":        {Data: []byte(document)},
		"a/ch4_LL_rs_4.txt": {Data: []byte("PB 4 rs 4096 9.1 8.25\nPB 4 rs 64 9.1 8.125\n")},
		"a/dt_f16_2.txt":    {Data: []byte("PB 2 ar 64 9.1 8.125\n")},
		"a/settings.txt": {
			Data: []byte("# all\n*.txt NCCL_NVLS_ENABLE=0 NCCL_ALGO=Ring # ring\ndt_* NCCL_PROTO=Simple\n")},
		"b/own.txt":    {Data: []byte("# simccl bench all_reduce --backend cuda\n" + table)},
		"b/notes.md":   {Data: []byte("PB 4 rs 64 1 1")},
		"b/more.txt":   {Data: []byte("nothing\n")},
		"b/other.json": {Data: []byte(`{"a":1}`)},
		"c/simulated.json": {
			Data: []byte(strings.Replace(document, `"in_place"`,
				`"simccl":{"algo":"RING","sim_us":7.5},"in_place"`, 1))},
		"c/cpus.json": {Data: []byte(strings.ReplaceAll(document, "NVIDIA H200", "host memory"))},
		"c/kernels.json": {
			Data: []byte(strings.Replace(document, `"in_place"`,
				`"simccl":{"shape":"push","predicted":{"sim_us":7}},"in_place"`, 1))},
		"c/wrong.json": {Data: []byte(strings.Replace(document, `"nwrong":null`, `"nwrong":3.0`,
			1))},
		"c/wrong.txt": {
			Data: []byte(strings.Replace(table, "0.00    N/A    12.42", "0.00      7    12.42", 1))},
		"c/nccl.json": {
			Data: []byte(strings.Replace(document, `"in_place"`,
				`"simccl":{"shape":"nccl","predicted":{"sim_us":7}},"in_place"`, 1))},
		"treech2_Simple_4.out":   {Data: []byte("PB 4 ar 64 9.1 8.125\n")},
		"p2pch8_4.log":           {Data: []byte("PB 4 sr 64 9.1 8.125\n")},
		"chan_4_4.txt":           {Data: []byte("PB 4 ar 64 9.1 8.125\n")},
		"shm_NVLSTree_LL128.txt": {Data: []byte("PB 4 ar 64 9.1 8.125\n")},
	}
}

func TestRead(t *testing.T) {
	runs, left, err := Read(tables())
	if err != nil {
		t.Fatal(err)
	}
	wantLeft := []string{"b/more.txt: no table in it", "b/notes.md: not a table by its ending",
		"b/other.json: no JSON of nccl-tests",
		"b/own.txt: our own algorithms, not NCCL", "c/cpus.json: host memory, not GPUs",
		"c/kernels.json: our own algorithms, not NCCL",
		"c/simulated.json: simulated, not measured", "c/wrong.json: wrong values in 1 of 1 rows",
		"c/wrong.txt: wrong values in 1 of 2 rows"}
	if !slices.Equal(left, wantLeft) {
		t.Errorf("left out: %q, want %q", left, wantLeft)
	}
	env := map[string]string{}
	by := map[string]*Run{}
	for _, r := range runs {
		env[r.File], by[r.File] = strings.Join(r.Env, " "), r
	}
	for file, want := range map[string]string{
		"a/table.txt":            "NCCL_ALGO=Tree NCCL_NVLS_ENABLE=0",
		"a/doc.json":             "NCCL_PROTO=LL",
		"a/ch4_LL_rs_4.txt":      "NCCL_ALGO=Ring NCCL_MAX_NCHANNELS=4 NCCL_NVLS_ENABLE=0 NCCL_PROTO=LL",
		"a/dt_f16_2.txt":         "NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0 NCCL_PROTO=Simple",
		"treech2_Simple_4.out":   "NCCL_ALGO=Tree NCCL_MAX_NCHANNELS=2 NCCL_PROTO=Simple",
		"p2pch8_4.log":           "NCCL_MAX_P2P_NCHANNELS=8 NCCL_MIN_P2P_NCHANNELS=8",
		"chan_4_4.txt":           "NCCL_ALGO=Ring NCCL_MAX_NCHANNELS=4",
		"shm_NVLSTree_LL128.txt": "NCCL_ALGO=NVLSTree NCCL_P2P_DISABLE=1 NCCL_PROTO=LL128",
	} {
		if env[file] != want {
			t.Errorf("%s: settings %q, want %q", file, env[file], want)
		}
	}
	r := by["a/table.txt"]
	if r.Ranks != 2 || r.Nodes != 1 || r.PerThread != 2 || r.Launch != sim.Eager || r.Date != "2026-11-21" ||
		r.GPU != "NVIDIA H200" || r.NCCL != 22809 || len(r.Samples) != 4 {
		t.Errorf("table: %+v", r)
	}
	i := slices.IndexFunc(r.Samples, func(s Sample) bool { return s.Op.InPlace && s.Op.Type == coll.Float16 })
	if s := r.Samples[i]; s.Us != 12.05 || s.Op.RedOp != coll.Max || s.Op.Count != 4 {
		t.Errorf("second line in place: %+v", s)
	}
	if r := by["a/doc.json"]; r.Nodes != 2 || r.Launch != sim.Graph || len(r.Samples) != 1 ||
		r.Samples[0].Op.Func != coll.AllGather || r.Date != "2026-11-20" {
		t.Errorf("JSON: %+v", r)
	}
	if r := by["a/ch4_LL_rs_4.txt"]; r.Samples[0].Us != 8.125 || r.Samples[0].Place != 0 ||
		!r.Samples[1].Held(2) || r.Samples[1].Op.Count != 256 {
		t.Errorf("list: %+v", r.Samples)
	}
	if by["a/dt_f16_2.txt"].Samples[0].Op.Type != coll.Float16 {
		t.Error("dt_f16 is not of half")
	}
}

func TestReadRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, text, want string }{
		"short line":    {"a.txt", "PB 4 ar 64 1 2\nPB 4 ar x 1 2\n", "a.txt:2: a PB line is"},
		"operation":     {"a.txt", "PB 4 zz 64 1 2\n", `a.txt:1: no operation "zz"`},
		"two sizes":     {"a.txt", "PB 4 ar 64 1 2\nPB 2 ar 64 1 2\n", "a.txt:2: 2 ranks after 4"},
		"no devices":    {"a.txt", strings.ReplaceAll(table, "#  Rank", "#  rank"), "does not list its GPUs"},
		"broken json":   {"a.json", "{\n\n]", "a.json:3: the JSON ends too early"},
		"pattern":       {"settings.txt", "[ NCCL_ALGO=Ring\n", "settings.txt:1:"},
		"setting":       {"settings.txt", "\n* ALGO=Ring\n", "settings.txt:2:"},
		"nothing there": {"b.md", "", "no measured times found"},
	} {
		files := fstest.MapFS{c.file: {Data: []byte(c.text)}}
		if c.file == "settings.txt" {
			files["a.txt"] = &fstest.MapFile{Data: []byte("PB 4 ar 64 1 2\n")}
		}
		_, _, err := Read(files)
		var bad *FileError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a FileError with %q", name, err, c.want)
		}
	}
}

// TestUnusableFiles: what is too large, or has a line without end, is named; what
// is no file is left out.
func TestUnusableFiles(t *testing.T) {
	for name, c := range map[string]struct {
		file *fstest.MapFile
		want string
	}{
		"large.txt": {&fstest.MapFile{Data: make([]byte, maxFile+1)},
			"large.txt: more than the 16777216 bytes"},
		"line.txt": {&fstest.MapFile{Data: []byte("PB 2 ar 8 1 2\n" + strings.Repeat("x", 1<<17))},
			"line.txt: a line of more than 65536 bytes"},
	} {
		_, _, err := Read(fstest.MapFS{name: c.file})
		var bad *FileError
		if !errors.As(err, &bad) || len(err.Error()) > 1000 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.300v, want %q", name, err, c.want)
		}
	}
	number := "8 2 float sum -1 " + strings.Repeat("9", 50_000) + " 0 0 N/A 1 0 0 N/A\n"
	for text, want := range map[string]string{"   8 2 float\n": "the row ends after 3 of 13 columns",
		number: "a number is expected"} {
		runs, left, err := Read(fstest.MapFS{"a.txt": {Data: []byte(table + text)}})
		if err != nil || len(runs) != 1 || len(left) != 1 || !strings.Contains(left[0], want) ||
			len(left[0]) > 300 {
			t.Errorf("a row that is not whole: %d runs, %q, %v", len(runs), left, err)
		}
	}
	second := strings.ReplaceAll(strings.ReplaceAll(table, "all_reduce", "all_gather"), "11.70", "21.70")
	runs, _, err := Read(fstest.MapFS{"a.txt": {Data: []byte(table + second)}})
	if err != nil || len(runs) != 2 || runs[0].File == runs[1].File || runs[1].Samples[0].Op.Func !=
		coll.AllGather {
		t.Errorf("two tables in a file: %v, %v", runs, err)
	}
	pipe := &fstest.MapFile{Mode: fs.ModeNamedPipe}
	_, left, err := Read(fstest.MapFS{"a.txt": {Data: []byte("PB 2 ar 8 1 2\n")}, "b.txt": pipe})
	if err != nil || len(left) != 1 || !strings.Contains(left[0], "not a file but a pipe") {
		t.Errorf("%v, %v", left, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a.txt", table)
	f.Add("a.json", document)
	f.Add("ch4_LL.txt", "PB 4 rs 4096 9.1 8.25\n")
	f.Add("settings.txt", "* NCCL_ALGO=Ring\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if name == "" || strings.ContainsAny(name, "/\\\x00") || name[0] == '.' {
			t.Skip()
		}
		runs, _,
			err := Read(fstest.MapFS{name: {Data: []byte(text)},
			"ch1.txt": {Data: []byte("PB 2 ar 8 1 2\n")}})
		if err == nil && len(runs) == 0 {
			t.Error("neither runs nor an error")
		}
	})
}

// TestPrefixInBracketsIsNoJSON: lines of mpirun --tag-output and the like begin with a bracket.
func TestPrefixInBracketsIsNoJSON(t *testing.T) {
	for _, prefix := range []string{"[1,0]<stdout>:", "[host:0]: ", "[Mon Nov  3 10:22:33 2025] "} {
		text := prefix + strings.ReplaceAll(table, "\n", "\n"+prefix)
		if runs, left, err := Parse("a.txt", []byte(text)); err != nil || len(runs) != 1 {
			t.Errorf("%s: %d runs, %q, %v", prefix, len(runs), left, err)
		}
	}
}

// TestOperationByColumns: a table that no line names has the operation of its columns and of the ratio of its
// bandwidths; of several its file's name decides, or what to add is said.
func TestOperationByColumns(t *testing.T) {
	// A row of 1 GiB at 100 GB/s, with the bus bandwidth of an operation.
	table := func(ranks int, redop string, root int, bus float64) []byte {
		text := "# nThread 1 nGpus 1 minBytes 8 maxBytes 8\n"
		for i := range ranks {
			text += fmt.Sprintf("#  Rank  %d Group  0 Pid 7 on host device  %d [0000:18:00] NVIDIA H100\n",
				i, i)
		}
		return []byte(text + fmt.Sprintf("# size count type redop root time algbw busbw #wrong time algbw "+
			"busbw #wrong\n 1073741824 268435456 float %s %d 10737.4 100.00 %.2f 0 10737.4 100.00 %.2f 0\n",
			redop, root, bus, bus))
	}
	for _, c := range []struct {
		file  string
		table []byte
		want  string // the operation, or why it is none
	}{
		{"a.txt", table(8, "sum", -1, 175), "all_reduce"},
		{"a.txt", table(8, "sum", -1, 87.5), "reduce_scatter"},
		{"a.txt", table(8, "sum", -1, 100), "sendrecv"}, {"a.txt", table(8, "sum", 0, 100), "reduce"},
		{"a.txt", table(8, "none", 0, 100), "broadcast"},
		{"a.txt", table(8, "none", -1, 87.5), "it looks like all_gather or alltoall; add a line"},
		{"AllGather-2n.log", table(8, "none", -1, 87.5), "all_gather"},
		{"alltoall.txt", table(8, "none", -1, 87.5), "alltoall"},
		{"a.txt", table(8, "none", 0, 87.5), "it looks like gather or scatter; add a line"},
		{"scatter.txt", table(8, "none", 0, 87.5), "scatter"},
		{"a.txt", table(2, "sum", -1, 100), "it looks like all_reduce or sendrecv; add a line"},
		{"all_gather.txt", table(8, "sum", -1, 175), "all_reduce"}, // the columns go first
		{"a.txt", table(8, "sum", -1, 120), "neither the table nor a line before it"},
	} {
		runs, left, err := Parse(c.file, c.table)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) == 1 {
			if got := runs[0].Samples[0].Op.Func.TestName(); got != c.want || !runs[0].Unnamed {
				t.Errorf("%s: %s, want %s", c.file, got, c.want)
			}
		} else if len(left) != 1 || !strings.Contains(left[0], c.want) {
			t.Errorf("%s: %d runs, %q, want %q", c.file, len(runs), left, c.want)
		}
	}
}
