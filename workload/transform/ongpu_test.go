package transform

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/gen"
)

// TestGPU: what matrix products limit takes as much longer as the peaks differ, what
// memory does as the rates do, and what is known of neither by its roofline.
func TestGPU(t *testing.T) {
	p, err := workload.Parse(`workload 1
ranks 2
comm dp *
work 1 nvjet_tst_gemm
work 2 elementwise_kernel
work 3 known flops=1000000000 bytes=1000000000
list a 0-1
  compute 0 1000000000 work=1
  compute 0 1000000000 work=2
  compute 0 1000000000 work=3
  compute h0 1000000000
  compute 0 1000000000
`, "p")
	if err != nil {
		t.Fatal(err)
	}
	q, s, err := ToGPU(p, "NVIDIA H200", "h20")
	if err != nil {
		t.Fatal(err)
	}
	matrix, memory := 989.4/148, 4800.0/4000
	steps := q.Lists[0].Steps
	for i, want := range []float64{matrix, memory, memory, 1, matrix} {
		if got := steps[i].Time.Micros() / 1000; math.Abs(got-want) > 1e-6 {
			t.Errorf("step %d takes %.4f ms, want %.4f", i, got, want)
		}
	}
	if math.Abs(s.Factor-(2*matrix+2*memory)/4) > 1e-9 || s.MatrixShare != 0.5 ||
		!strings.Contains(s.String(), "estimate") || p.Lists[0].Steps[0].Time != 1e9 {
		t.Errorf("%+v", s)
	}
	for _, c := range [][2]string{{"", "H100"}, {"MI308X", "H100"}, {"H100", "TPU"}} {
		if _, _, err := ToGPU(p, c[0], c[1]); err == nil {
			t.Errorf("%v", c)
		}
	}
}

// TestMadeForAnother: a job that was made for one GPU, on another, computes what one computes that was made
// for that GPU, whatever bounds an operation, in 16 and in 32 bits, up to what rounds to picoseconds.
func TestMadeForAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.SampledFrom(gen.GPUs()).Draw(t, "from"), rapid.SampledFrom(gen.GPUs()).Draw(t, "to")
		seq, typ := rapid.SampledFrom([]int64{8, 128, 4096}).Draw(t, "seq"),
			rapid.SampledFrom([]coll.DataType{coll.BFloat16, coll.Float32}).Draw(t, "type")
		made := func(name string) *workload.Program {
			c := gen.Config{Model: gen.Model{Layers: 2, Hidden: 1024, Heads: 8, KVHeads: 4, FFN: 4096,
				Vocab: 32000, TopK: 1},
				Seq:        seq,
				MicroBatch: 1, GlobalBatch: 2,
				Type: typ, GradType: typ, TP: 1, PP: 2, Virtual: 1, DP: 1, Bucket: 1 << 20, EP: 1,
				Capacity: 1, CP: 1, Iterations: 1}
			c.GPU, _ = gen.Peak(name, c.Type)
			j, err := gen.Make(c)
			if err != nil {
				t.Fatal(err)
			}
			p, err := workload.Parse(j.Folded.Format(), "p") // as a file has it
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		want := made(to)
		first := made(from)
		got, _, err := ToGPU(first, from, to)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want.Lists {
			for k := range want.Lists[i].Steps {
				a, b := &got.Lists[i].Steps[k], &want.Lists[i].Steps[k]
				if d := math.Abs(float64(a.Time - b.Time)); d > 1+
					float64(b.Time)/float64(first.Lists[i].Steps[k].Time) {
					t.Fatalf("%s: %v, made for it %v", want.Works[b.Work-1].Name, a.Time, b.Time)
				}
			}
		}
	})
}
