package sweep

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"path"
	"slices"
	"strconv"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/study/sweep/table"
)

// Formats lists the simulators of requests whose files of communication times are written.
func Formats() []string { return []string{"vidur", "aiconfigurator", "llmservingsim"} }

// File is one that a simulator of requests reads: its path below the folder, and its bytes.
type File struct {
	Name string
	Data []byte
}

// timed is one collective's time, as files of simulators have it.
type timed struct {
	op, typ, class, algo string
	ranks, nodes, bytes  int64
	us                   float64
}

// Files returns the times of a sweep as input files of a serving simulator: Vidur (7d47513, page on
// profiling) or AIConfigurator (095f58a). It returns a usage error if the sweep has no operation that the
// simulator reads.
func (m *Merged) Files(format, nccl string) ([]File, error) {
	if l := m.labels(); format == "aiconfigurator" && (slices.Contains(l, "version") ||
		slices.Contains(l, "nccl.version")) {
		return nil,
			fail.Usage("format %s: a table is of one release of NCCL, and the sweep varies it; leave it out",
				format)
	}
	var rows []timed
	err := m.Each(func(r *Record, row map[string]any) error {
		number := func(name string) int64 { f, _ := row[name].(float64); return int64(f) }
		word := func(name string) string { s, _ := row[name].(string); return s }
		us, _ := row["time_us"].(float64)
		rows = append(rows, timed{word("func"), word("type"), word("class"), word("algo"), number("ranks"),
			number("nodes"), number("bytes"), us})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(rows, func(a, b timed) int {
		if a.ranks != b.ranks {
			return int(a.ranks - b.ranks)
		}
		return int(min(max(a.bytes-b.bytes, -1), 1))
	})
	var files []File
	switch format {
	case "vidur":
		files, err = vidur(rows)
	case "aiconfigurator":
		files, err = aiconfigurator(rows, nccl)
	default:
		return nil, fail.NotYet("LLMServingSim has its network simulated by ASTRA-sim and reads no table of "+
			"communication times; write vidur or aiconfigurator", "format %s", format)
	}
	if err == nil && len(files) == 0 {
		err = fail.Usage("format %s: the sweep has no operation that it reads; it reads all_reduce, for "+
			"vidur "+
			"sendrecv, for aiconfigurator all_gather, alltoall and reduce_scatter", format)
	}
	return files, err
}

// vidurDevices are Vidur's names of networks by machine class; others have the class's.
var vidurDevices = map[string]string{"nvswitch-sm90": "h100_dgx", "nvswitch-h100": "h100_dgx",
	"nvswitch-sm80": "a100_dgx"}

// vidur returns Vidur's all_reduce.csv and send_recv.csv, in a folder per kind of machine: times in ms, sizes
// in bytes.
func vidur(rows []timed) (files []File, err error) {
	for _, k := range []struct{ op, name string }{{"all_reduce", "all_reduce"}, {"sendrecv", "send_recv"}} {
		byClass := map[string][]timed{}
		var classes []string
		for _, r := range rows {
			if r.op != k.op {
				continue
			}
			if byClass[r.class] == nil {
				classes = append(classes, r.class)
			}
			byClass[r.class] = append(byClass[r.class], r)
		}
		for _, class := range classes {
			device := cmp.Or(vidurDevices[class], class)
			data, err := vidurCSV(byClass[class], k.name)
			if err != nil {
				return nil, err
			}
			files = append(files, File{path.Join("data/profiling/network", device, k.name+".csv"), data})
		}
	}
	return files, nil
}

func vidurCSV(rows []timed, name string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	header := []string{""}
	for _, stat := range []string{"min", "max", "mean", "median", "std"} {
		header = append(header, "time_stats."+name+"."+stat)
	}
	header = append(header, "rank", "num_workers", "size", "collective", "devices_per_node",
		"max_devices_per_node")
	lines := [][]string{header}
	most := int64(1)
	for _, r := range rows {
		most = max(most, r.ranks/max(1, r.nodes))
	}
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i, r := range rows {
		ms := strconv.FormatFloat(r.us/1e3, 'g', -1, 64)
		lines = append(lines, []string{strconv.Itoa(i), ms, ms, ms, ms, "0", "0", whole(r.ranks),
			whole(r.bytes), name,
			whole(r.ranks / max(1, r.nodes)), whole(most)})
	}
	err := w.WriteAll(lines)
	return b.Bytes(), err
}

// aiconfigurator returns aiconfigurator's tables of NCCL's collectives and of custom all-reduce kernels over
// peer memory, with the marker that they are complete: sizes in elements, times in ms.
func aiconfigurator(rows []timed, nccl string) (files []File, err error) {
	known := []string{"all_gather", "all_reduce", "alltoall", "reduce_scatter"}
	tables := map[bool]*table.Table{}
	for _, r := range rows {
		custom := r.algo == "PEER"
		if !slices.Contains(known, r.op) {
			continue
		}
		typ, size := "half", int64(2)
		switch r.typ {
		case "half", "bfloat16":
		case "int8", "uint8":
			typ, size = "int8", 1
		default:
			return nil,
				fail.Usage("format aiconfigurator: it reads half and int8, not %s; give the sweep types "+
					"[half]", r.typ)
		}
		t := tables[custom]
		if t == nil {
			t = aiconfiguratorTable(custom)
			tables[custom] = t
		}
		values := []any{"simccl", nccl, r.class, r.op, "simccl", typ, r.ranks, r.bytes / size, r.us / 1e3}
		if custom {
			values[0], values[4], values[5] = "vllm", "vLLM_custom", "bfloat16"
		}
		for i, v := range values {
			t.Columns[i].Add(v)
		}
		t.Rows++
	}
	for _, custom := range []bool{false, true} {
		t := tables[custom]
		if t == nil {
			continue
		}
		framework, name := "nccl", "nccl_perf"
		if custom {
			framework, name = "vllm", "custom_allreduce_perf"
		}
		var b bytes.Buffer
		if err := table.WriteParquet(&b, t); err != nil {
			return nil, err
		}
		dir := path.Join("comm", framework, nccl)
		files = append(files, File{path.Join(dir, name+".parquet"), b.Bytes()},
			File{path.Join(dir, "collection_meta.yaml"),
				fmt.Appendf(nil, "schema_version: 1\nruntime:\n  framework: "+
					"%s\n  version: %q\ntables:\n  %s:\n    status: complete\n    rows: %d\n", framework,
					nccl,
					name,
					t.Rows)})
	}
	return files, nil
}

// aiconfiguratorTable returns an empty table with its columns.
func aiconfiguratorTable(custom bool) *table.Table {
	dtype := "nccl_dtype"
	if custom {
		dtype = "allreduce_dtype"
	}
	t := &table.Table{}
	for _, name := range []string{"framework", "version", "device", "op_name", "kernel_source", dtype} {
		t.Columns = append(t.Columns, &table.Column{Name: name})
	}
	t.Columns = append(t.Columns, &table.Column{Name: "num_gpus", Kind: table.Int},
		&table.Column{Name: "message_size", Kind: table.Int}, &table.Column{Name: "latency",
			Kind: table.Float})
	return t
}
