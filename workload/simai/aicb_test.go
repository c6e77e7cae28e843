package simai

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/workload"
)

func aicbSample(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "workloads", "samples", "aicb", name))
	if err != nil {
		t.Skip("the samples beside the checkout are not there: " + err.Error())
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// TestAICBSamples: all public logs are read and are programs.
func TestAICBSamples(t *testing.T) {
	for name, ranks := range map[string]int{"A100_example.csv.gz": 8,
		"G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1.csv": 128, "L7B-D1-C01_Llama7B_zero2_mbs1.csv": 128,
		"L7B-D1-C02_Llama7B_zero3_mbs1.csv": 128, "L7B-M1-C04_Llama7B_megatron_tp2_pp1_mbs1.csv": 128,
		"multi_all_reduce_workload.csv": 128} {
		t.Run(name, func(t *testing.T) {
			text := aicbSample(t, name)
			if !RecogniseAICB(text[:200]) {
				t.Error("is not recognised")
			}
			f, err := ReadAICB(bytes.NewReader(text), name)
			if err != nil {
				t.Fatal(err)
			}
			p, err := f.Program(AICBOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(len(f.Rows), len(p.Of), f.Notes)
			if len(p.Of) != ranks {
				t.Errorf("%d ranks, want %d", len(p.Of), ranks)
			}
			if err := p.Lint(); err != nil {
				t.Fatal(err)
			}
			if len(p.Of) <= 8 {
				if _, err := streams.Run(t.Context(), streams.Apart(p, streams.Recorded, 0)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestA100: the measured times of tensor parallel calls of 16 MiB.
func TestA100(t *testing.T) {
	f, err := ReadAICB(bytes.NewReader(aicbSample(t, "A100_example.csv.gz")), "f")
	if err != nil {
		t.Fatal(err)
	}
	for comm, want := range map[string]float64{"all_gather": 0.166, "reduce_scatter": 0.140,
		"all_reduce": 0.189} {
		sum, n := 0.0, 0
		for _, r := range f.Rows {
			if r.Comm == comm && r.Group == "tp_group" && r.Size == 2 && r.Bytes == 16<<20 {
				sum += r.Elapsed
				n++
			}
		}
		if mean := sum / float64(n); mean < want-0.0006 || mean > want+0.0006 {
			t.Errorf("%s: %.4f ms, want %.3f", comm, mean, want)
		}
	}
	p, err := f.Program(AICBOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, c := range p.Calls {
		if c.Func == coll.AllGather && p.Comms[c.Comm].Kind == workload.TP &&
			c.Count*2*int64(c.Type.Size()) == 16<<20 {
			found = c.Recorded > 0
		}
	}
	if !found {
		t.Error("no recorded all_gather of 16 MiB")
	}
}

const small = `[rank0 ~ rank3]
comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
CommType.all_reduce,CommGroup.tp_group,2,64,forward,None,None,,None,None,None,1
CommType.broadcast,CommGroup.dp_group,2,8,init,None,1,a,b,1.5,0,0,2
CommType.isend,CommGroup.pp_group,2,8,forward,1,None,,None,None,None,1
CommType.epoch_end,None,None,0,end,None,None,,2,None,None,1
`

// TestSmall: roots, repeats, marks, and what one rank's view cannot say.
func TestSmall(t *testing.T) {
	f, err := ReadAICB(strings.NewReader(strings.Replace(small, "pp_group,2", "pp_group,1", 1)), "f")
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.Program(AICBOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Lint(); err != nil {
		t.Fatal(err)
	}
	if s := p.Lists[3].Steps; len(s) != 3 || p.Calls[s[1].Call].Root != 1 || p.Calls[s[1].Call].Recorded !=
		1_500_000_000 || len(p.Marks) != 4 || len(f.Notes) != 1 {
		t.Errorf("%+v %v", p, f.Notes)
	}
	for _, x := range []struct{ from, to, want string }{
		{"comm_type,", "x,", "f:2:1: this is no log of AICB"},
		{"tp_group,2,64", "tp_group,x,64", `f:3:40: "x" is no size of a group`},
		{",1\nCommType.b", "\nCommType.b", "f:3:1: 11 fields, 12 are expected"},
		{"rank3", "rankx", "f:1:1: "},
	} {
		text := strings.Replace(small, x.from, x.to, 1)
		if _, err := ReadAICB(strings.NewReader(text), "f"); err == nil || !strings.Contains(err.Error(),
			x.want) {
			t.Errorf("%s → %s: %v, want %s", x.from, x.to, err, x.want)
		}
	}
}

// FuzzReadAICB: an error, or a file whose program can be carried out.
func FuzzReadAICB(f *testing.F) {
	f.Add(small)
	f.Fuzz(func(t *testing.T, text string) {
		x, err := ReadAICB(strings.NewReader(text), "f")
		if err != nil || len(x.Rows) > 100 {
			return
		}
		p, err := x.Program(AICBOptions{Ranks: 8})
		if err != nil {
			return
		}
		if err := p.Lint(); err != nil {
			t.Fatal(err)
		}
	})
}
