package gen

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/workload"
)

// decoding is a step of decoding of a model by name for 32 requests of 2,000 tokens on eight ranks.
func decoding(t *testing.T, name string) Config {
	c := named(t, name)
	c.Phase, c.MicroBatch, c.Length, c.TP = Decode, 32, 2000, 8
	c.AllReduce, c.Dispatch = peer.VLLM, Gathered
	return c
}

func operation(t *testing.T, c Config, name string) (w workload.Work, us float64) {
	t.Helper()
	j, err := Make(c)
	if err != nil {
		t.Fatal(err)
	}
	for i := range j.Operations {
		if j.Operations[i].Name == name {
			return j.Folded.Works[i], j.Operations[i].Us
		}
	}
	t.Fatalf("no operation %s", name)
	return w, 0
}

// TestDecodeReadsItsKeys: attention of one more token a request reads the keys and values before it, of the
// rank's heads; of latent vectors each rank reads all, and with --dp-attention those of its requests.
func TestDecodeReadsItsKeys(t *testing.T) {
	c := decoding(t, "llama-3.1-70b") // 8 heads of keys and values, of 128
	if w, _ := operation(t, c, "attention"); w.Bytes != 32*2000*1*(128+128)*2 || w.FLOPs != 2*32*2000*8*256 {
		t.Errorf("%+v", w)
	}
	c = decoding(t, "deepseek-v3")
	all, _ := operation(t, c, "attention")
	if want := int64(32 * 2000 * (512 + 64) * 2); all.Bytes != want {
		t.Errorf("%d bytes, want %d", all.Bytes, want)
	}
	c.DPAttention = true
	if w, _ := operation(t, c, "attention"); w.Bytes != all.Bytes/8 || w.FLOPs != all.FLOPs {
		t.Errorf("%+v, of all ranks %+v", w, all)
	}
}

// TestDecodeReadsChosenExperts: a step multiplies by the experts that its tokens choose, of which one request
// has as many as it goes to, and many requests all; ranks without an expert of their own have a part of each.
func TestDecodeReadsChosenExperts(t *testing.T) {
	c := decoding(t, "deepseek-v3") // 256 experts of 2048, 8 a token
	c.MicroBatch = 1
	w, _ := operation(t, c, "expert_down")
	if s := w.Shape; s.Count != 8 || s.M != 1 || s.K != 2048/8 {
		t.Errorf("one request: %+v", s)
	}
	c.MicroBatch = 4096
	if w, _ = operation(t, c, "expert_down"); w.Shape.Count < 255 || w.Shape.M != 4096*8/256 {
		t.Errorf("many: %+v", w.Shape)
	}
	c.EP = 8
	if w, _ = operation(t, c, "expert_down"); w.Shape.Count != 32 || w.Shape.K != 2048 {
		t.Errorf("many, divided: %+v", w.Shape)
	}
	c.MicroBatch = 1 // of 8 choices more than one falls to the busiest of 8 ranks
	if w, _ = operation(t, c, "expert_down"); w.Shape.Count < 2 || w.Shape.Count > 4 {
		t.Errorf("the busiest: %+v", w.Shape)
	}
}

// TestStepsOfServing: all models make steps, which hold no gradients; ranks sum up by the kernel that is
// named, or gather tokens and scatter sums, and tokens go to experts by the kernel that is named.
func TestStepsOfServing(t *testing.T) {
	for _, x := range []struct {
		name   string
		change func(c *Config)
		want   []string
	}{
		{"llama-3.1-70b", func(*Config) {}, []string{"all_reduce bfloat16 sum 262144 kernel=vllm",
			"phase=decode"}},
		{"llama-3.1-70b", func(c *Config) { c.Phase, c.PP = Prefill, 2 },
			[]string{"send bfloat16", "phase=prefill"}},
		{"gpt-oss-120b", func(c *Config) { c.EP = 8 }, []string{"kernel=vllm"}},
		{"nemotron-3-super-120b-a12b", func(c *Config) { c.AllReduce = ByNCCL },
			[]string{"ssm_step", "all_reduce"}},
		{"llama-3.1-8b", func(c *Config) { c.KVFrom = 4 }, []string{"ranks 12", "list rank* 8-11",
			"alltoall int8 sum 67108864 kernel=kv:4:8:32:2048:64:4096"}},
		{"deepseek-v3", func(c *Config) { c.DPAttention, c.EP = true, 8 },
			[]string{"all_gather", "reduce_scatter"}},
		{"deepseek-v3", func(c *Config) { c.DPAttention, c.EP, c.Dispatch = true, 8, peer.DeepEPLowLatency },
			[]string{"f8e4m3 sum 28672 kernel=deepep-ll:256:8:7168:4",
				"kernel=deepep-ll:256:8:7168:4:8:4:combine"}},
	} {
		c := decoding(t, x.name)
		x.change(&c)
		j, err := Make(c)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		text := j.Folded.Format()
		for _, want := range x.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q", x.name, want)
			}
		}
		p, err := workload.Parse(text, "job")
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		if p.Model.Phase != c.Phase.String() || j.Folded.Memory.Optimizer != 0 ||
			j.Folded.Memory.Activations <= 0 {
			t.Errorf("%s: %+v %+v", x.name, p.Model, j.Folded.Memory)
		}
	}
}

// TestPromptsBetweenAnswers: a step that processes tokens of a prompt beside one more token of 32 requests
// has products of all of them, attention of both kinds, and of latent vectors keys and values of the prompt's
// alone.
func TestPromptsBetweenAnswers(t *testing.T) {
	c := decoding(t, "deepseek-v3")
	c.Prompt = 512
	for name, rows := range map[string]int64{"qkv_down": 544, "kv_up": 512, "absorb": 32, "values": 32,
		"prompt_attention": 512, "attention": 32} {
		if w, _ := operation(t, c, name); w.Shape.M != rows {
			t.Errorf("%s: %+v, want %d rows", name, w.Shape, rows)
		}
	}
	j, err := Make(c)
	if err != nil {
		t.Fatal(err)
	}
	if want := "all_reduce bfloat16 sum 3899392 "; !strings.Contains(j.Folded.Format(), want) { // 544 x 7168
		t.Errorf("no %s", want)
	}
	c.DPAttention = true
	if w, _ := operation(t, c, "prompt_attention"); w.Shape.M != 64 {
		t.Errorf("divided: %+v", w.Shape)
	}
}

// TestNormOfTheSum: a kernel that takes the norm, too, saves its kernel and its bytes: a token's values read
// and written.
func TestNormOfTheSum(t *testing.T) {
	c := decoding(t, "llama-3.1-70b")
	for _, name := range []string{"qkv", "up", "head"} {
		c.Normed = false
		two, _ := operation(t, c, name)
		c.Normed = true
		one, _ := operation(t, c, name)
		if two.Bytes-one.Bytes != 32*2*8192*2 || two.Kernels-one.Kernels != 1 {
			t.Errorf("%s: %d and %d bytes, %d and %d kernels", name, one.Bytes, two.Bytes, one.Kernels,
				two.Kernels)
		}
	}
}

// TestStepsThatCannotBe name the option and what to write.
func TestStepsThatCannotBe(t *testing.T) {
	for want, change := range map[string]func(c *Config){
		"--dp: ":                                func(c *Config) { c.DP = 2 },
		"--context: 0 tokens":                   func(c *Config) { c.Length = 0 },
		"write --batch 40":                      func(c *Config) { c.MicroBatch, c.DPAttention = 33, true },
		"--dispatch: ":                          func(c *Config) { c.Dispatch = peer.DeepEP },
		"--prompt-tokens: 5 tokens of prompts":  func(c *Config) { c.Phase, c.Prompt = Prefill, 5 },
		"write 40":                              func(c *Config) { c.Prompt, c.DPAttention = 33, true },
		"--kv-from: ":                           func(c *Config) { c.KVFrom, c.PP = 4, 2 },
		"--ep: 8 ranks are not a multiple of 3": func(c *Config) { c.EP = 3 },
	} {
		c := decoding(t, "deepseek-v3")
		change(&c)
		if _, err := Make(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
