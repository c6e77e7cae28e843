package simai

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

func sample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "workloads", "samples", "simai", name))
	if err != nil {
		t.Skip("the samples beside the checkout are not there: " + err.Error())
	}
	return b
}

// TestSamples: all public files are read, survive being written, and are programs
// that play.
func TestSamples(t *testing.T) {
	for name, rows := range map[string]int{
		"G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt":    92,
		"G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp_A100.txt": 172,
		"G175B-M1-C03_GPT175B_megatron_tp8_pp1_mbs1_A100.txt":  33,
		"L65B-M1-C05_Llama65B_megatron_tp8_pp1_mbs1_A100.txt":  33,
		"L65B_D1_C08_Llama65B_deepspeed_zero3_A100.txt":        12,
		"L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt":          12,
		"L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1_A100.txt":    76,
		"all_gather.txt": 19, "all_reduce.txt": 19, "all_to_all.txt": 19, "microAllReduce.txt": 2,
		"muti_all_reduce.txt": 19, "workload_analytical.txt": 1789,
	} {
		t.Run(name, func(t *testing.T) {
			text := sample(t, name)
			if !Recognise(text[:200]) {
				t.Error("is not recognised")
			}
			f, err := Read(bytes.NewReader(text), name)
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Rows) != rows {
				t.Errorf("%d rows, want %d", len(f.Rows), rows)
			}
			var b bytes.Buffer
			if err := f.Write(&b); err != nil {
				t.Fatal(err)
			}
			again, err := Read(&b, name)
			if err != nil {
				t.Fatal(err)
			}
			notes := f.Notes
			f.Notes, again.Notes = nil, nil
			if diff := cmp.Diff(f, again); diff != "" {
				t.Error(diff)
			}
			f.Notes = notes
			o := Options{}
			if name == "workload_analytical.txt" {
				if _, err := f.Program(Options{Ranks: 9216}); err == nil || !strings.Contains(err.Error(),
					"give fewer ranks with --ranks") {
					t.Errorf("9,216 ranks: %v", err)
				}
				// TP 2, PP 12, EP 16: the smallest
				if p, err := f.Program(o); err != nil || len(p.Of) != 384 ||
					!strings.Contains(strings.Join(f.Notes, "\n"),
						"the file has 9216 GPUs, the program 384 ranks") {
					t.Errorf("%v %q", err, f.Notes)
				}
			}
			p, err := f.Program(o)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
			if len(p.Of) > 128 {
				return
			}
			r, err := streams.Run(t.Context(), streams.Apart(p, nil, 0))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(r.Elapsed(), f.Notes)
		})
	}
}

// TestMicro: two all_reduce on 8 ranks; at 300 GB/s of bus bandwidth the first takes
// SimAI-analytical's 97.9 µs.
func TestMicro(t *testing.T) {
	f, err := Read(bytes.NewReader(sample(t, "microAllReduce.txt")), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Program(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Of) != 8 || len(p.Comms) != 1 || len(p.Calls) != 2 || len(f.Notes) != 0 {
		t.Fatalf("%+v %v", p.Calls, f.Notes)
	}
	c := p.Calls[0]
	if us := float64(c.Bytes()) * 2 * 7 / 8 / 300e3; c.Func != coll.AllReduce || us < 97.8 || us > 97.9 {
		t.Errorf("%+v: %.2f µs", c, us)
	}
}

const two = `HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0
2
a -1 1000 ALLREDUCE 64 2000 NONE 0 3000 ALLREDUCE 1024 0
b -1 4000 NONE 0 5000 ALLREDUCE 64 6000 NONE 0 7
`

// TestOrder: forward in order, then from the last layer input gradient and weight
// gradient; the data parallel call is awaited at the end.
func TestOrder(t *testing.T) {
	f, err := Read(strings.NewReader(two), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Program(Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []workload.Step{
		{Kind: workload.Compute, Time: 1000000, Work: 1}, {Kind: workload.Issue, Call: 0},
		{Kind: workload.Compute, Time: 4000000, Work: 2},
		{Kind: workload.Compute, Time: 5000000, Work: 2}, {Kind: workload.Issue, Call: 0},
		{Kind: workload.Compute, Time: 6000000, Work: 2},
		{Kind: workload.Compute, Time: 2000000, Work: 1}, {Kind: workload.Compute, Time: 3000000, Work: 1},
		{Kind: workload.Issue, Stream: 1, Call: 1, Deps: []int32{7}}, {Kind: workload.Compute, Time: 7000,
			Deps: []int32{8}},
	}
	if diff := cmp.Diff(want, p.Lists[0].Steps); diff != "" {
		t.Error(diff)
	}
	if err := p.Lint(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]int32{1, 3}, p.Comms[p.Calls[p.Lists[1].Steps[8].Call].Comm].Ranks); diff != "" {
		t.Error(diff)
	}
	r, err := streams.Run(t.Context(), streams.Apart(p, func(*workload.Call) units.Time { return 10_000_000 }, 0))
	if err != nil || r.Elapsed() != 21_000_000+2*10_000_000+10_000_000+7000 {
		t.Errorf("%v %v", r.Elapsed(), err)
	}
}

// TestFromProgram: what the format can say survives; the rest is named.
func TestFromProgram(t *testing.T) {
	p, err := workload.Parse(`workload 1
ranks 4
comm tp * kind=TP
comm dp * kind=DP
work 1 gemm
list all 0-3
  compute 0 5000000 work=1
  call 0 tp all_reduce bfloat16 sum 32
  compute 0 7000000 work=1
  call 1 dp reduce_scatter bfloat16 sum 8 after=2
  compute h0 1000
  call 0 tp broadcast float sum 8 root=1
  call 0 tp reduce float sum 8 root=1
`, "p")
	if err != nil {
		t.Fatal(err)
	}
	f, lost, err := From(p)
	if err != nil {
		t.Fatal(err)
	}
	none := Pass{0, "NONE", 0}
	want := []Row{
		{"gemm", Pass{5000, "ALLREDUCE", 64}, none, none, 0},
		{"gemm", Pass{7000, "NONE", 0}, none, Pass{0, "REDUCESCATTER", 64}, 0},
		{"gemm", Pass{0, "BROADCAST", 32}, none, none, 0},
	}
	if diff := cmp.Diff(want, f.Rows); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"time of the host (1)", "Reduce (1)"}, lost); diff != "" {
		t.Error(diff)
	}
}

// TestFaultsHavePlaces of line and column.
func TestFaultsHavePlaces(t *testing.T) {
	for _, x := range []struct{ from, to, want string }{
		{"HYBRID_TRANSFORMER_FWD_IN_BCKWD", "X", "f:1:1: this is no SimAI workload"},
		{"ep: 1", "ep: x", `f:1:65: ep of "x" is no number`},
		{"vpp:", "wpp:", "f:1:73: wpp is not known"},
		{"\n2\n", "\ntwo\n", `f:2:1: "two" is no number of rows`},
		{"1000", "x", `f:3:6: "x" is no time`},
		{"ALLREDUCE 64", "ALLRED 64", `f:3:11: "ALLRED" is no collective`},
		{"6000 NONE 0 7", "6000 NONE 0", "f:4:1: 11 fields, 12 are expected"},
		{"1024 0", "-4 0", `f:3:51: "-4" is no size`},
	} {
		text := strings.Replace(two, x.from, x.to, 1)
		if _, err := Read(strings.NewReader(text), "f"); err == nil || !strings.Contains(err.Error(),
			x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
	f, err := Read(strings.NewReader(two), "f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Program(Options{Ranks: 3}); err == nil || !strings.Contains(err.Error(),
		"3 ranks are no multiple of 2 (tensor) times 1 (pipeline)") {
		t.Error(err)
	}
}

// FuzzRead: an error, or a file that survives being written.
func FuzzRead(f *testing.F) {
	f.Add(two)
	f.Add("MICRO\n1\nm -1 1 NONE 0 1 NONE 0 1 ALLGATHER_DP_EP 4096 1")
	f.Fuzz(func(t *testing.T, text string) {
		x, err := Read(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		if len(x.Rows) < 100 {
			if p, err := x.Program(Options{Ranks: 16}); err == nil {
				if err := p.Lint(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var b bytes.Buffer
		if err := x.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Read(&b, "f")
		if err != nil {
			t.Fatal(err)
		}
		x.Notes, again.Notes = nil, nil
		if diff := cmp.Diff(x, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestFewer: a job that is too large is read with smaller data parallel groups; others
// stay as they are.
func TestFewer(t *testing.T) {
	rows := make([]Row, 10000)
	for _, c := range []struct {
		f           File
		ranks, want int
	}{
		{File{Tensor: 8}, 8, 8}, {File{Tensor: 8}, 1024, 64}, {File{Tensor: 8, Pipeline: 2, Expert: 4}, 1024,
			64}, {File{Tensor: 8, Pipeline: 4, Expert: 8}, 1024, 1024},
		{File{Tensor: 3}, 1000, 1000}, {File{Tensor: 8, Expert: 7}, 1024, 1024}, {File{Tensor: 1 << 40}, 1024,
			1024},
	} {
		c.f.Rows = rows
		if got := c.f.fewer(c.ranks); got != c.want {
			t.Errorf("%d ranks, TP %d: %d, want %d", c.ranks, c.f.Tensor, got, c.want)
		}
	}
}
