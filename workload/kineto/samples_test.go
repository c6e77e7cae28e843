package kineto

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/workload/internal/jsonscan"
)

// TestSamples: public recordings give the figures that were computed from them
// independently (shared/workloads/samples/README.md).
func TestSamples(t *testing.T) {
	for _, x := range []struct {
		file, rank    string
		steps         string
		comm, exposed string // ms
		collectives   int
	}{
		{"hta_trace_filter_sampled_rank-0", "0/128", "607.3 622.9", "396", "336", -1},
		{"hta_trace_filter_sampled_rank-1", "1/128", "607.9 630.6", "379", "299", -1},
		{"hta_nccl_parser_config_nccl_data", "0/2", "222.4 219.7 224.9", "46.9", "39.2", 21},
		{"hta_trace_diff_control_rank3of8", "3/8", "75.5 76.9 76.2 76.7", "163.5", "86.6", -1},
		{"hta_rank0of16_alltoall", "0/16", "209.7 216.5 216.1 215.5", "187.9", "184.6", -1},
		{"hta_critical_path_cuda_event_sync_multi_stream_event_sync_trace", "0/0", "", "", "", 0},
		{"hta_critical_path_alexnet_benchmark_result_2869224_1695835535_trace", "0/0", "", "", "", 0},
		{"hta_triton_example_triton_example", "-1/0", "", "", "", 0},
		{"hta_mi250_rocm62", "-1/0", "", "", "", 0},
		{"tracelens_b200_tp8_rank0_inference", "0/8", "", "", "", -1},
	} {
		t.Run(x.file, func(t *testing.T) {
			tr, err := Read(bytes.NewReader(shared(t, "samples/kineto/"+x.file+".json.gz")), x.file)
			if err != nil {
				t.Fatal(err)
			}
			m := tr.Measure()
			var steps []string
			for _, s := range tr.Steps {
				steps = append(steps, fmt.Sprintf("%.1f", float64(s.Dur)/1e6))
			}
			if got := fmt.Sprintf("%d/%d", tr.Rank, tr.World); got != x.rank ||
				!strings.HasPrefix(strings.Join(steps, " "), x.steps) {
				t.Errorf("rank %s, steps %v, want %s and %s", got, steps, x.rank, x.steps)
			}
			digits := func(want string) int {
				if i := strings.IndexByte(want, '.'); i >= 0 {
					return len(want) - i - 1
				}
				return 0
			}
			for _, f := range []struct {
				what, want string
				got        int64
			}{{"comm", x.comm, m.Comm}, {"exposed", x.exposed, m.Exposed}} {
				if got := fmt.Sprintf("%.*f", digits(f.want), float64(f.got)/1e6); f.want != "" &&
					got != f.want {
					t.Errorf("%s %s ms, want %s", f.what, got, f.want)
				}
			}
			if x.collectives >= 0 && m.Collectives != x.collectives {
				t.Errorf("%d collectives, want %d", m.Collectives, x.collectives)
			}
			if len(tr.Ops) == 0 {
				t.Error("no operations")
			}
		})
	}
}

// TestB200: 71 groups, 15 of them of the rank, and one all_gather of 25,136 elements of bfloat16, 22 µs.
func TestB200(t *testing.T) {
	tr, err := Read(bytes.NewReader(shared(t, "samples/kineto/tracelens_b200_tp8_rank0_inference.json.gz")),
		"f")
	if err != nil {
		t.Fatal(err)
	}
	if tr.GroupCount != 71 || len(tr.Groups) != 15 {
		t.Errorf("%d groups of %d", len(tr.Groups), tr.GroupCount)
	}
	n := 0
	for i := range tr.Ops {
		o := &tr.Ops[i]
		if o.Class != NCCL {
			continue
		}
		n++
		if o.Comm == 0 {
			t.Fatal("no arguments")
		}
		if c := tr.Comms[o.Comm-1]; c.In != 25136 || c.Type != "BFloat16" || (o.Dur+500)/1000 != 22 {
			t.Errorf("%+v, %d ns", c, o.Dur)
		}
	}
	if n != 1 {
		t.Errorf("%d kernels of NCCL, want 1", n)
	}
}

// TestEventSync: the wait between streams names the record that it waits for.
func TestEventSync(t *testing.T) {
	tr, err := Read(
		bytes.NewReader(shared(t,
			"samples/kineto/hta_critical_path_cuda_event_sync_multi_stream_event_sync_trace.json.gz")), "f")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, s := range tr.Syncs {
		if s.Kind == WaitEvent {
			n++
			if s.RecordCorr <= 0 || s.WaitOn < 0 || s.Stream == s.WaitOn {
				t.Errorf("%+v", s)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d waits between streams, want 1", n)
	}
}

// small is a recording of one collective.
const small = `{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":1,"world_size":2,"pg_config":[{"pg_name":"0","pg_desc":"default_pg","pg_size":2,"ranks":[0,1]}]},
"baseTimeNanoseconds": 1000, "traceEvents":[
{"args":{"stream":7,"correlation":5,"grid":[4,2,1],"block":[128,1,1]},"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":12.5,"dur":3.25},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":9,"tid":9,"ts":10,"dur":1,"args":{"correlation":5}},
{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":9,"tid":9,"ts":16,"dur":4.000,"args":{"External id":3,"Collective name":"allreduce","dtype":"Float","In msg nelems":64,"Out msg nelems":64,"Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]"}},
{"ph":"M","name":"x"},
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":9,"ts":16,"dur":1,"args":{"Input Dims":[[1,2],["]"]]}}
]}`

// TestSmall: what is kept of a recording whose arguments come first.
func TestSmall(t *testing.T) {
	tr, err := Read(strings.NewReader(small), "f")
	if err != nil {
		t.Fatal(err)
	}
	if len(tr.Ops) != 1 || len(tr.Calls) != 1 || len(tr.Comms) != 1 || tr.Events != 5 || tr.Rank != 1 {
		t.Fatalf("%+v", tr)
	}
	if o := tr.Ops[0]; o.Start != 13500 || o.Dur != 3250 || o.Blocks != 8 || o.Threads != 128 ||
		o.Stream != 7 || o.Corr != 5 {
		t.Errorf("%+v", o)
	}
	if c := tr.Comms[0]; c.Name != "allreduce" || c.In != 64 || c.Group != 0 ||
		c.Thread != tr.Calls[0].Thread {
		t.Errorf("%+v", c)
	}
}

// TestTruncated: a file that ends within an event is read to the last whole one.
func TestTruncated(t *testing.T) {
	cut := small[:strings.Index(small, `"Process Group Ranks"`)]
	tr, err := Read(strings.NewReader(cut), "f")
	if err != nil || !tr.Truncated || tr.Events != 2 || len(tr.Notes) != 1 || !strings.HasPrefix(tr.Notes[0],
		"f:5:239: the file ends within a value: read to event 2") {
		t.Errorf("%+v %v", tr, err)
	}
	_, err = Read(strings.NewReader(small[:60]), "f")
	var e *fail.FileError
	if !errors.As(err, &e) || !errors.Is(err, jsonscan.ErrTruncated) {
		t.Error(err)
	}
}

// FuzzRead: nothing panics, and operations have their times.
func FuzzRead(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(
		`[{"ph":"X","cat":"kernel","name":"ncclKernel_AllReduce","ts":1,"dur":2,"tid":"stream 20"}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		tr, err := Read(bytes.NewReader(text), "f")
		if err != nil {
			return
		}
		tr.Measure()
		for _, v := range tr.Timed() {
			if v.Ranks < 2 || v.Count < 1 || v.Least < 1 || v.Type.Size() < 1 {
				t.Fatalf("%+v", v)
			}
		}
		for i := range tr.Ops {
			if o := &tr.Ops[i]; o.Dur < 0 || o.Comm < 0 || int(o.Comm) > len(tr.Comms) ||
				int(o.Name) >= len(tr.Names) {
				t.Fatalf("%+v", o)
			}
		}
	})
}
