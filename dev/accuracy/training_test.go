package accuracy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/replay"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
	"github.com/simccl/simccl/workload/gen"
	"github.com/simccl/simccl/workload/load"
)

// trainingRow is a row of reference/training.json: a published run of training.
type trainingRow struct {
	Name, GPU, Network, Task, Precision, Recompute string
	GPUs, Seq, GBS, MBS, TP, PP, VP, CP, EP, DP    int64
	FSDPGroup                                      int64   `json:"fsdp_group"`
	FSDP                                           int64   `json:"fsdp"`
	Tokens                                         float64 `json:"tokens_per_s_per_gpu"`
	Derived                                        float64 `json:"tokens_per_s_per_gpu_derived"`
	LocalBatch                                     string  `json:"mbs_meaning"`
	Framework                                      string
	Recipe                                         json.RawMessage
	PeakAlloc                                      float64 `json:"peak_alloc_gib"`
	PeakMem                                        float64 `json:"peak_mem_gib"`
	Notes                                          string
	Dispatcher                                     string `json:"moe_dispatcher"`
	Model                                          struct {
		Name                      string
		Layers                    int64
		Hidden, FFN, Heads, Vocab int64
		KVHeads                   int64 `json:"kv_heads"`
		HeadDim                   int64 `json:"head_dim"`
		Experts, TopK             int
		Top                       int   `json:"top_k"`
		MoE                       int64 `json:"moe_ffn"`
		Shared                    int64 `json:"shared_expert_ffn"`
		KVRank                    int64 `json:"kv_lora_rank"`
		QRank                     int64 `json:"q_lora_rank"`
		Nope                      int64 `json:"qk_nope_head_dim"`
		Rope                      int64 `json:"qk_rope_head_dim"`
		Value                     int64 `json:"v_head_dim"`
		Dense                     int64 `json:"first_dense_layers"`
	}
}

// knownModels are the models of the rows by the names that they have here.
var knownModels = map[string]string{"Llama 3/3.1 70B": "llama-3.1-70b", "Llama 3/3.1 8B": "llama-3.1-8b",
	"Llama 3.1 405B": "llama-3.1-405b", "Qwen3-30B-A3B": "qwen-3-30b-a3b",
	"Qwen3-235B-A22B": "qwen-3-235b-a22b", "DeepSeek-V3": "deepseek-v3", "Kimi K2": "kimi-k2",
	"gpt-oss-120b": "gpt-oss-120b", "Nemotron 3 Nano 30B-A3B": "nemotron-3-nano-30b-a3b",
	"Nemotron 3 Super 120B-A12B": "nemotron-3-super-120b-a12b",
	"Nemotron 3 Ultra 550B-A55B": "nemotron-3-ultra-550b-a55b", "Mixtral 8x7B": "mixtral-8x7b"}

// trainedOn are the machines of the rows' GPUs, and GPUs of a host.
var trainedOn = map[string]struct {
	topo string
	gpus int64
}{"H100": {"dgx-h100", 8}, "H200": {"dgx-h200", 8}, "B200": {"dgx-b200", 8}, "B300": {"hgx-b300-8", 8},
	"GB200": {"gb200-nvl72", 4}, "GB300": {"gb300-nvl72", 4}, "A100-80G": {"dgx-a100", 8},
	"H800": {"hgx-h800-8", 8}, "H100 96GB HBM2e, 500 W limit": {"dgx-h100", 8}}

// ofNetwork are machines that a row's network names.
var ofNetwork = map[string]string{"32 x EFA 100 Gb/s per node (p5)": "aws-p5.48xlarge",
	"16 x EFA 400 Gb/s per node (p6-b300)": "aws-p6-b300.48xlarge"}

// config is the job of a row; "" why not otherwise.
func (p *trainingRow) config() (c gen.Config, why string) {
	if p.Tokens == 0 {
		p.Tokens = p.Derived
	}
	if p.Seq == 0 && strings.Contains(p.Framework, "torchtitan") {
		p.Seq = 8192
	}
	switch {
	case p.Tokens == 0 || p.Seq == 0 || p.GBS == 0 || p.MBS == 0 || p.TP == 0:
		return c, "incomplete"
	case trainedOn[p.GPU].gpus == 0:
		return c, "no class of " + p.GPU
	case p.Task == "LoRA":
		return c, "LoRA"
	}
	if !p.sizes(&c) {
		return c, "model"
	}
	c.Seq, c.MicroBatch, c.GlobalBatch = p.Seq, p.MBS, p.GBS
	c.Type, c.GradType, c.TP, c.PP, c.CP, c.DP, c.EP = coll.BFloat16, coll.BFloat16, int(p.TP), int(p.PP),
		int(p.CP), int(p.GPUs/(p.TP*p.PP*p.CP)), int(max(p.EP, 1))
	c.Virtual, c.Capacity, c.Prefetch, c.Iterations, c.Bucket = int(max(p.VP, 1)), 1, 1, 1, 1<<28
	if c.Virtual > 1 && c.PP > 1 {
		c.Schedule = gen.Interleaved
	} else {
		c.Virtual = 1
	}
	c.Ring, c.SequenceParallel = true, c.TP > 1
	c.TPOverlap = strings.HasPrefix(p.Framework, "Megatron-Bridge, NeMo") // its performance recipes' default
	if p.Framework == "torchtitan" {
		p.torchtitan(&c)
	}
	if c.DP*c.CP > 1 {
		c.FSDP = 1
	}
	if p.FSDPGroup > 1 || p.FSDP > 1 {
		c.FSDP = 3
	}
	c.Recompute = strings.HasPrefix(p.Recompute, "full")
	c.Fit = p.Recompute == "" // it is not stated
	if p.Recompute == "selective" && c.Experts > 0 {
		c.Modules = gen.CoreAttention // Megatron-Core's default of recompute_modules
	}
	if p.Framework == "torchtitan" && (strings.Contains(p.Recompute, "selective") ||
		p.Recompute == "config default") { // train_configs/llama3_8b.toml: by operator
		c.Modules = gen.Operators
	}
	if strings.HasPrefix(p.Framework, "Megatron-LM") { // --accumulate-allreduce-grads-in-fp32
		c.GradType = coll.Float32
	}
	switch w := strings.ToUpper(p.Precision); {
	case strings.HasPrefix(w, "NVFP4"):
		c.Precision = workload.NVFP4
	case strings.HasPrefix(w, "MXFP8"), strings.HasPrefix(w, "FP8"):
		c.Precision = workload.FP8
	}
	p.host(&c)
	p.recipe(&c)
	p.gpu(&c)
	return c, ""
}

// sizes are those of a row's model; false where it is not made.
func (p *trainingRow) sizes(c *gen.Config) bool {
	m := &p.Model
	c.Model = gen.Model{Name: m.Name, Layers: m.Layers, Hidden: m.Hidden, Heads: m.Heads,
		KVHeads: m.KVHeads, FFN: m.FFN, Vocab: max(m.Vocab, 51200), HeadDim: m.HeadDim, Gated: true,
		Experts: m.Experts, TopK: max(m.Top, 1), ExpertFFN: m.MoE, SharedFFN: m.Shared, QRank: m.QRank,
		KVRank: m.KVRank, NopeDim: m.Nope, RopeDim: m.Rope, ValueDim: m.Value}
	if m.Dense > 0 {
		c.Pattern = strings.Repeat("f", int(m.Dense)) + strings.Repeat("e", int(m.Layers-m.Dense))
	}
	if m.Vocab == 0 {
		c.Gated = false
	}
	if name := knownModels[m.Name]; name != "" {
		found, _ := gen.FindModel(name)
		c.Model = *found
	} else if m.Hidden == 0 || strings.Contains(m.Name, "V4") {
		return false
	}
	return true
}

// gpu sets the class of a row's GPU.
func (p *trainingRow) gpu(c *gen.Config) {
	c.GPU, _ = gen.Peak(p.GPU, c.Type)
	c.Class, _ = compute.Find(p.GPU)
	if p.Framework == "torchtitan" { // torch of 2024 and 2025 without cuDNN's attention
		c.Class, _ = c.Class.WithFlash2()
	}
	if strings.Contains(p.GPU, "500 W limit") {
		c.Class, _ = c.Class.Limited(500)
	}
}

// torchtitan sets what its rows' notes and its defaults say: with stages as many microbatches of a rank's
// batch as there are stages of the model, of which interleaved schedules give each rank two
// (torchtitan @9dec370, parallelisms/pipelining_utils.py).
func (p *trainingRow) torchtitan(c *gen.Config) {
	c.TPOverlap, c.NoP2POverlap = strings.Contains(p.Notes, "syncTP"), true
	if c.PP == 1 {
		return
	}
	if strings.Contains(p.Notes, "schedule Interleaved") {
		c.Schedule, c.Virtual = gen.Interleaved, 2
	}
	c.MicroBatch = max(p.MBS/int64(c.PP*c.Virtual), 1)
}

// recipe sets how tokens go to experts and what is computed again where a row's recipe or framework states
// it.
func (p *trainingRow) recipe(c *gen.Config) {
	var r struct {
		Settings struct {
			Modules     *[]string `json:"model.recompute_modules"`
			Granularity any       `json:"model.recompute_granularity"`
			Backend     string    `json:"model.moe_flex_dispatcher_backend"`
		}
	}
	if len(p.Recipe) > 0 {
		if err := json.Unmarshal(p.Recipe, &r); err != nil {
			return
		}
	}
	if m := r.Settings.Modules; m != nil {
		words, stated := gen.Words{Recompute: cmp.Or(strings.Join(*m, ","), "none")}, gen.Config{}
		if err := words.Apply(&stated); err == nil { // other names are of models that are not made
			c.Modules, c.Fit = stated.Modules, false
		}
	}
	if c.Dispatch = r.Settings.Backend; strings.Contains(p.Framework, "DeepEP") {
		c.Dispatch = peer.DeepEP
	}
	// Megatron Bridge @067f987, perf_recipes: its recipes of MXFP8 with experts of Qwen 3, DeepSeek and
	// GPT-OSS launch the whole iteration by a graph, tokens by HybridEP
	if _, version, _ := strings.Cut(p.Framework, "NeMo container "); version >= "26.06" && c.Experts > 0 &&
		c.SSMHeads == 0 && p.Precision == "MXFP8" {
		c.Graphs, c.Dispatch = gen.FullGraphs, peer.HybridEP
	}
}

// host is what launches the kernels of a row.
func (p *trainingRow) host(c *gen.Config) {
	c.Launch = gen.DefaultLaunch
	switch recipe := string(p.Recipe); {
	case strings.Contains(recipe, `"local"`) && strings.Contains(recipe, "cuda_graph"):
		c.Graphs = gen.FullGraphs
	case strings.Contains(recipe, `cuda_graph_impl": "transformer_engine"`):
		c.Graphs = gen.LayerGraphs
	}
}

// TestTraining: tokens a second of published runs of training, made from their hyper-parameters alone. Rows
// are halved by a hash of their names; those of SIMCCL_TRAINING_HALF (0, 1 or all) are shown.
func TestTraining(t *testing.T) {
	half := os.Getenv("SIMCCL_TRAINING_HALF")
	if half == "" {
		t.Skip("it takes minutes: SIMCCL_TRAINING_HALF=0, 1 or all asks for it")
	}
	data, err := os.ReadFile(filepath.Join(golden.Root(t), "..", "shared", "reference", "training.json"))
	if err != nil {
		t.Skip("needs ../shared/reference/training.json: ", err)
	}
	var rows []trainingRow
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	only, err := regexp.Compile(os.Getenv("SIMCCL_TRAINING_ONLY"))
	if err != nil {
		t.Fatal("SIMCCL_TRAINING_ONLY: ", err)
	}
	known := map[string]*replay.Report{} // by machine and configuration, which many rows share
	var all []trained
	for i := range rows {
		p := &rows[i]
		h := fnv.New32a()
		h.Write([]byte(p.Name))
		of := int(h.Sum32() % 2)
		if half != "all" && fmt.Sprint(of) != half || !only.MatchString(p.Name) {
			continue
		}
		c, why := p.config()
		if why != "" {
			t.Logf("SKIP %d %s: %s", i, p.Name, why)
			continue
		}
		same := c
		same.Class = nil // the GPU says it
		key := fmt.Sprintf("%s %s %d %+v", p.GPU, p.Network, p.GPUs, same)
		r := known[key]
		if r == nil {
			if r, err = trainRow(t, p, c); err != nil {
				t.Logf("FAIL %d %s: %v", i, p.Name, err)
				continue
			}
			known[key] = r
		}
		e := trained{p, of, r.TokensPerSecond, r.TokensPerSecond/p.Tokens - 1}
		all = append(all, e)
		t.Logf("ROW %d half %d %-6s %4d %-20.20s T%d P%d V%d C%d E%d mbs%d m%d %-8s F%d published %.0f "+
			"simulated "+
			"%.0f %+.1f %% mem %.0f (compute %.0f exposed %.0f bubble %.0f host %.0f ms)", i, of,
			strings.Fields(p.GPU)[0], p.GPUs, p.Model.Name, c.TP, c.PP, c.Virtual, c.CP, c.EP, c.MicroBatch,
			c.Microbatches(), c.Precision, c.FSDP, p.Tokens, r.TokensPerSecond, 100*e.err,
			float64(r.Memory.Total)/(1<<30), r.ComputeUs/1000, r.ExposedUs/1000, r.BubbleUs/1000,
			r.HostUs/1000)
	}
	for _, of := range []int{0, 1} {
		summarise(t, all, of)
	}
}

// trained is a row with what was simulated.
type trained struct {
	row    *trainingRow
	half   int
	tokens float64 // a second of a GPU
	err    float64 // as a fraction
}

// summarise prints the errors of a half by the GPUs' generation, and in how many pairs of layouts of one
// model on one machine, which differ by more than 10 %, the faster one is the faster.
func summarise(t *testing.T, all []trained, half int) {
	errs := map[string][]float64{}
	pairs, right := 0, 0
	for i, a := range all {
		if a.half != half {
			continue
		}
		kind := "other"
		if strings.HasPrefix(a.row.GPU, "H100") || a.row.GPU == "H200" {
			kind = "hopper"
		}
		errs[kind] = append(errs[kind], math.Abs(a.err))
		for _, b := range all[i+1:] {
			if x, y := a.row, b.row; b.half != half || x.GPU != y.GPU || x.GPUs != y.GPUs ||
				x.Model.Name != y.Model.Name || x.Framework != y.Framework || x.Seq != y.Seq ||
				max(x.Tokens, y.Tokens) <= 1.1*min(x.Tokens, y.Tokens) {
				continue
			}
			if pairs++; (a.row.Tokens > b.row.Tokens) == (a.tokens > b.tokens) {
				right++
			}
		}
	}
	for _, kind := range []string{"hopper", "other"} {
		list := errs[kind]
		if len(list) == 0 {
			continue
		}
		slices.Sort(list)
		sum := 0.0
		for _, e := range list {
			sum += e
		}
		t.Logf("half %d, %s: %d rows, mean %.1f %%, median %.1f %%, worst %.1f %%", half, kind, len(list),
			100*sum/float64(len(list)), 100*list[len(list)/2], 100*list[len(list)-1])
	}
	t.Logf("half %d: %d of %d pairs in the right order", half, right, pairs)
}

// TestMemory: what gen says of the GPUs of published runs is within 8 % of what they held allocated at most
// (SimuMax v1.2, Megatron-LM on B200). torchtitan's rows are printed beside: they are reserved memory.
func TestMemory(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(golden.Root(t), "..", "shared", "reference", "training.json"))
	if err != nil {
		t.Skip("needs ../shared/reference/training.json: ", err)
	}
	var rows []trainingRow
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		p := &rows[i]
		held := max(p.PeakAlloc, p.PeakMem)
		c, why := p.config()
		if held == 0 || why != "" {
			continue
		}
		j, err := gen.Make(c)
		if err != nil {
			t.Logf("FAIL %d %s: %v", i, p.Name, err)
			continue
		}
		m := j.Folded.Memory
		if e := gib(m.Total())/held - 1; p.PeakAlloc > 0 && math.Abs(e) > 0.08 {
			t.Errorf("%s: %+.1f %%", p.Name, 100*e)
		}
		t.Logf("ROW %d %-40.40s T%d P%d C%d E%d D%d m%d %s held %.2f GiB, made %.2f %+.1f %% (parameters "+
			"%.1f gradients "+
			"%.1f optimizer %.1f activations %.1f)", i, p.Name, c.TP, c.PP, c.CP, c.EP, c.DP, j.Microbatches,
			p.Recompute, held,
			gib(m.Total()), 100*(gib(m.Total())/held-1), gib(m.Parameters), gib(m.Gradients),
			gib(m.Optimizer),
			gib(m.Activations))
	}
}

func gib(b units.Bytes) float64 { return float64(b) / (1 << 30) }

func trainRow(t *testing.T, p *trainingRow, c gen.Config) (*replay.Report, error) {
	j, err := gen.Make(c)
	if err != nil {
		return nil, err
	}
	b := trainedOn[p.GPU]
	nodes := int(max(p.GPUs/b.gpus, 1))
	if topo := ofNetwork[p.Network]; topo != "" {
		b.topo = topo
	}
	spec := scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: b.topo, Count: nodes}}}}
	if b.gpus == 4 && nodes > 16 {
		spec.Machine.NVLinkDomain = 16
	}
	site, err := scenario.Load(&spec, scenario.Options{})
	if err != nil {
		return nil, err
	}
	m, err := site.Session(&spec)
	if err != nil {
		return nil, err
	}
	prog := j.Program()
	r, _, err := replay.Run(t.Context(), &load.Job{Program: prog}, prog, m,
		replay.Options{Host: 1, Quick: true})
	if err != nil {
		return nil, err
	}
	r.On(site, nil, "")
	return r, nil
}
