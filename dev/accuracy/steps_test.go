package accuracy

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/compute"
	"github.com/simccl/simccl/workload/gen"
)

// stepRow is a row of reference/steps.json: a published latency of serving.
type stepRow struct {
	Name, Precision  string
	Statistic        string
	Path             string `json:"model_path"`
	Hardware         struct{ GPU string }
	Model            map[string]any
	Concurrency      int64
	ISL, OSL         int64
	Parallel, Decode *struct {
		Batch int64 `json:"batch_size"`
		TP    int   `json:"tp_size"`
		DP    int   `json:"attention_dp_size"`
		EP    int   `json:"moe_ep_size"`
	}
	TPOT float64 `json:"tpot_ms"`
}

// config is a step of decoding of a row, in the middle of its requests; "" why not otherwise.
func (p *stepRow) config() (c gen.Config, why string) {
	at := p.Decode
	if at == nil {
		at = p.Parallel
	}
	if p.TPOT == 0 || p.Concurrency == 0 {
		return c, "no fixed number of requests"
	}
	name := map[bool]string{strings.Contains(p.Path, "DeepSeek"): "deepseek-v3",
		strings.Contains(p.Path, "Kimi-K2"): "kimi-k2"}[true]
	if known, _ := gen.FindModel(name); known != nil {
		c.Model = *known
	} else {
		delete(p.Model, "source")
		data, err := json.Marshal(p.Model)
		if err != nil {
			return c, err.Error()
		}
		m, err := gen.ParseModel(data, "config.json")
		if err != nil {
			return c, err.Error()
		}
		c.Model = *m
	}
	dp := max(at.DP, 1)
	c.Phase, c.Type, c.GradType = gen.Decode, coll.BFloat16, coll.BFloat16
	c.Length, c.Seq = p.ISL+p.OSL/2, 1
	c.MicroBatch = cmp.Or(at.Batch, p.Concurrency) * int64(dp)
	c.TP, c.EP, c.DPAttention = at.TP*dp, max(at.EP, 1), dp > 1
	c.AllReduce, c.Dispatch = peer.VLLM, gen.Gathered
	c.PP, c.DP, c.CP, c.Virtual, c.Iterations, c.Prefetch, c.Capacity, c.Bucket = 1, 1, 1, 1, 1, 1, 1, 1<<20
	switch p.Precision {
	case "fp8":
		c.Precision = workload.FP8
	case "fp4":
		c.Precision = workload.NVFP4
	}
	c.GPU, _ = gen.Peak(p.Hardware.GPU, c.Type)
	c.Class, _ = compute.Find(p.Hardware.GPU)
	return c, ""
}

// mixed returns the share of a row's steps that also process a prompt, of so many tokens: requests that end
// make room for others, where the ranks that decode do that, too. One request alone has no other beside it,
// and a median is that of the other steps.
func (p *stepRow) mixed(c *gen.Config) (share float64, tokens int64) {
	if p.Decode != nil || p.Concurrency < 2 || c.SSMHeads > 0 || p.Statistic == "p50" {
		return 0, 0
	}
	tokens = p.ISL / int64(c.TP) * int64(c.TP)
	return min(float64(c.MicroBatch)/float64(p.OSL), 1), tokens
}

// TestServingSteps: a token's time in published runs of serving with a fixed number of requests, from
// hyper-parameters alone. What a step leaves out, the host between steps, is in what was published.
func TestServingSteps(t *testing.T) {
	if os.Getenv("SIMCCL_SERVING_STEPS") == "" {
		t.Skip("it takes a minute: SIMCCL_SERVING_STEPS=1 asks for it")
	}
	data, err := os.ReadFile(filepath.Join(golden.Root(t), "..", "shared", "reference", "steps.json"))
	if err != nil {
		t.Skip("needs ../shared/reference/steps.json: ", err)
	}
	var rows []stepRow
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	sum, within, n := 0.0, 0.0, 0.0
	for i := range rows {
		p := &rows[i]
		c, why := p.config()
		if why != "" {
			t.Logf("SKIP %s: %s", p.Name, why)
			continue
		}
		r, err := trainRow(t, &trainingRow{GPU: p.Hardware.GPU, GPUs: int64(max(c.TP, 8))}, c)
		if err != nil {
			t.Logf("FAIL %s: %v", p.Name, err)
			continue
		}
		ms := r.TPOTUs / 1000
		share, tokens := p.mixed(&c)
		if c.Prompt = tokens; tokens > 0 {
			r, err = trainRow(t, &trainingRow{GPU: p.Hardware.GPU, GPUs: int64(max(c.TP, 8))}, c)
			if err != nil {
				t.Logf("FAIL %s: %v", p.Name, err)
				continue
			}
			ms += share * (r.TPOTUs/1000 - ms)
		}
		e := ms/p.TPOT - 1
		t.Logf("ROW %-75.75s published %.2f simulated %.2f ms %+.1f %%", p.Name, p.TPOT, ms, 100*e)
		if sum, n = sum+math.Abs(e), n+1; math.Abs(e) <= 0.25 {
			within++
		}
	}
	t.Logf("%.0f rows, %.1f %% on average, %.0f within 25 %%", n, 100*sum/n, within)
}
