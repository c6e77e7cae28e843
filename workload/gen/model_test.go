package gen

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
)

// named is the training of a model by name on H200s, one sequence a microbatch.
func named(t *testing.T, name string) Config {
	t.Helper()
	m, _ := FindModel(name)
	if m == nil {
		t.Fatal(name)
	}
	c := Config{Model: *m, Seq: 4096, MicroBatch: 1, GlobalBatch: 64, Type: coll.BFloat16,
		GradType: coll.BFloat16, TP: 1, PP: 1, Virtual: 1, DP: 1, Bucket: 1 << 28, Prefetch: 1, EP: 1,
		Capacity: 1, CP: 1, Iterations: 1}
	c.GPU, _ = Peak("h200", c.Type)
	c.Class, _ = compute.Find("h200")
	return c
}

// TestUnevenStages: layers that do not divide are left out of the last and the first stage; the embedding and
// the head may be stages of their own; layers that predict further tokens are the last stage's.
func TestUnevenStages(t *testing.T) {
	for _, x := range []struct {
		layers, mtp int64
		pp, virtual int
		want        []int64
	}{
		{8, 0, 4, 1, []int64{2, 2, 2, 2}}, {61, 0, 4, 1, []int64{15, 16, 15, 15}},
		{62, 0, 4, 1, []int64{15, 16, 16, 15}}, {6, 0, 4, 2, []int64{0, 1, 1, 1, 1, 1, 1, 0}},
		{61, 1, 4, 1, []int64{15, 16, 16, 15}}, {3, 1, 4, 1, []int64{1, 1, 1, 1}},
		{2, 1, 4, 1, []int64{0, 1, 1, 1}},
	} {
		c := small()
		c.Layers, c.MTP, c.PP, c.Virtual = x.layers, x.mtp, x.pp, x.virtual
		if diff := cmp.Diff(x.want, c.layersOf()); diff != "" {
			t.Errorf("%d and %d layers: %s", x.layers, x.mtp, diff)
		}
	}
}

// TestModels: models of all kinds of layers are made on many ranks, lint clean, and hold on all ranks
// together as many parameters as they have, those of a stage's ends and of norms once a rank.
func TestModels(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"deepseek-v3": func(c *Config) { c.PP, c.DP, c.EP = 4, 16, 16 },
		"kimi-k2": func(c *Config) {
			c.TP, c.SequenceParallel, c.PP, c.DP, c.EP = 4, true, 2, 2, 8
		},
		"llama-4-maverick":           func(c *Config) { c.DP, c.EP = 8, 8 },
		"gpt-oss-120b":               func(c *Config) { c.DP, c.EP, c.PP = 4, 4, 2 },
		"nemotron-3-super-120b-a12b": func(c *Config) { c.DP, c.EP = 8, 8 },
		"mistral-7b":                 func(c *Config) { c.CP, c.Ring = 2, true },
		"qwen-2.5-7b":                func(c *Config) { c.TP, c.SequenceParallel = 4, true },
		"gpt-3-1.3b":                 func(c *Config) { c.DP = 2 },
	} {
		c := named(t, name)
		c.GlobalBatch = 16
		c.Layers = min(c.Layers, 12)
		c.Pattern = c.Pattern[:min(int(c.Layers), len(c.Pattern))]
		change(&c)
		c.GlobalBatch = int64(c.DP * 4)
		j := makeJob(t, c)
		for _, o := range j.Operations {
			if o.Us <= 0 || o.Us > 1e6 {
				t.Errorf("%s: %+v", name, o)
			}
		}
		if m := j.Folded.Model; m.Name != name || m.Params != j.Params || m.Tokens != c.GlobalBatch*4096 ||
			m.FLOPs < 5*j.Params/int64(max(c.Experts, 1)) {
			t.Errorf("%s: %+v", name, m)
		}
		g := newGenerator(&c, nil)
		sum := int64(0)
		for pp := range c.PP {
			w := &writer{g: g, at: place{pp: pp}}
			for chunk := range c.Virtual {
				for _, u := range w.units(chunk) {
					sum += u.dense*int64(c.TP) + u.experts*int64(c.EP)
				}
			}
		}
		if want := float64(j.Params); float64(sum) < want || c.MTP == 0 &&
			float64(sum) > want*1.01 { // what no rank divides is on each of them
			t.Errorf("%s: ranks have %d parameters, the model %d", name, sum, j.Params)
		}
	}
}

// TestPrecision: products of layers take the precision, those of the router, the head and attention not;
// fewer bits take less time where products are large, and keep fewer bytes.
func TestPrecision(t *testing.T) {
	c := named(t, "llama-3.1-8b")
	wide := makeJob(t, c)
	c.Precision = workload.FP8
	narrow := makeJob(t, c)
	for i := range narrow.Folded.Works {
		w := &narrow.Folded.Works[i]
		product := w.Shape.Op == workload.ProductShape
		head := slices.Contains([]string{"head", "head_backward_input", "head_backward_weight"}, w.Name)
		if product && (w.Shape.Precision == workload.FP8) == head {
			t.Errorf("%s: %v", w.Name, w.Shape)
		}
	}
	at := func(j *Job, name string) float64 {
		i := slices.IndexFunc(j.Operations, func(o Operation) bool { return o.Name == name })
		return j.Operations[i].Us
	}
	if a, b := at(wide, "up"), at(narrow, "up"); b > a*0.75 {
		t.Errorf("up: %.0f us in 16 bits, %.0f in 8", a, b)
	}
	if wide.Folded.Memory.Activations <= narrow.Folded.Memory.Activations {
		t.Errorf("%v, %v", wide.Folded.Memory, narrow.Folded.Memory)
	}
}

// TestShortIterations: two iterations of few microbatches say what a whole one moves.
func TestShortIterations(t *testing.T) {
	c := small()
	c.PP, c.DP, c.TP, c.GlobalBatch = 4, 2, 2, 2*2*32
	traffic := func(rounds []int) []Traffic {
		g := newGenerator(&c, rounds)
		g.lists()
		return g.traffic()
	}
	if diff := cmp.Diff(traffic(nil), traffic([]int{8, 12})); diff != "" {
		t.Error(diff)
	}
	c = named(t, "llama-3.1-70b")
	c.TP, c.SequenceParallel, c.PP, c.DP, c.FSDP, c.GlobalBatch = 8, true, 8, 8, 1, 2048
	j := makeJob(t, c)
	if m := j.Folded.Model.Micro; m != [3]int64{16, 24, 256} || j.Microbatches != 256 {
		t.Errorf("%v of %d microbatches", m, j.Microbatches)
	}
}

// TestExpertsAmongAllRanks: experts are divided among the ranks of a stage, tensor and context parallel ones
// too, and each expert's gradients are summed among those that have it.
func TestExpertsAmongAllRanks(t *testing.T) {
	c := small()
	c.TP, c.SequenceParallel, c.DP, c.Experts, c.TopK, c.EP = 4, true, 2, 8, 2, 8
	j := makeJob(t, c)
	for _, x := range j.Traffic {
		if x.Kind == "ep" && (x.Ranks != 8 || x.Groups != 1) || x.Kind == "edp" {
			t.Errorf("%+v", x)
		}
	}
	c.EP = 2
	found := false
	for _, x := range makeJob(t, c).Traffic {
		found = found || x.Kind == "edp" && x.Ranks == 4
	}
	if !found {
		t.Error("gradients of experts are not summed among the 4 ranks that have them")
	}
}
