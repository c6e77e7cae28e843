package main

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/scenario"
)

// topologies are the machines of GPUs by name.
var topologies = map[string]string{"H100": "dgx-h100", "H200": "dgx-h200", "H800": "hgx-h800-8",
	"A100": "dgx-a100", "B200": "dgx-b200", "B300": "hgx-b300-8", "GB200": "gb200-nvl72",
	"GB300": "gb300-nvl72",
	"L40S":  "pcie-l40s-8", "RTX": "pcie-rtx-pro-6000-8"}

// gpu is the name of a group's GPU without its form and memory: "H100 80GB HBM3 SXM" is H100.
func (g *group) gpu() string {
	words := strings.FieldsFunc(g.Hardware.GPU, func(c rune) bool { return c == ' ' || c == '-' })
	if len(words) == 0 {
		return ""
	}
	return words[0]
}

// machine is the Spec of so many GPUs of a group's kind, per of them a node; empty where there
// is none.
func (g *group) machine(gpus int) (s scenario.Spec, ok bool) {
	name, ok := topologies[g.gpu()]
	per := 8
	if strings.HasPrefix(g.Hardware.GPU, "GB") {
		per = 4
	}
	if ok = ok && (gpus <= per || gpus%per == 0); !ok {
		return s, false
	}
	s.Format = scenario.FormatVersion
	s.Machine.Nodes = []scenario.Nodes{{Topo: name, Count: max(1, gpus/per)}}
	if gpus < per {
		s.Machine.GPUs = gpus
	}
	return s, true
}

// points are a group's measurements of kernels that are simulated.
func (g *group) points() []point {
	switch {
	case g.Kind == "custom_all_reduce" && g.Framework != "":
		return g.allReduce()
	case g.Kind == "moe_all_to_all":
		return g.experts()
	case g.Kind == "kv_transfer":
		return g.cache()
	}
	return nil
}

// kernel is what a framework takes: vLLM, and SGLang before 0.5.14, choose between one shot and
// two; TensorRT-LLM and later SGLang push for little.
func (g *group) kernel(gpus int, bytes int64) string {
	newer := strings.HasPrefix(g.Version, "0.5.14") || g.Framework == "trtllm"
	little := int64(map[int]int{2: 16e6, 4: 1e6, 8: 5e5}[gpus])
	multimem := strings.Contains(g.Name, "vllm") && gpus == 8 && bytes >= 256<<10
	switch {
	case strings.HasPrefix(topologies[g.gpu()], "pcie") && gpus > 2:
		return ""
	case newer && bytes < little && bytes < 8<<20:
		return peer.OneShotPush
	case newer, bytes >= 8<<20, multimem && !strings.Contains(g.Name, "0.14"):
		return "" // other kernels, or NCCL
	}
	return scenario.VLLMKernel
}

func (g *group) allReduce() (out []point) {
	gpus := g.Hardware.GPUs
	for _, row := range g.Rows {
		bytes, us := int64(number(row["bytes"])), number(row["time_us"])
		s, ok := g.machine(gpus)
		kernel := g.kernel(gpus, bytes)
		if !ok || kernel == "" || us == 0 {
			continue
		}
		s.Workload = scenario.Workload{Op: "all_reduce", Sizes: []string{fmt.Sprint(bytes)},
			Types: []string{"bfloat16"}, Kernel: kernel}
		s.Engine.Launch = g.Mode
		out = append(out, point{class: "all_reduce " + kernel + " " + g.gpu() + " " + g.Mode,
			key: g.Name + fmt.Sprint(bytes), measured: us, spec: s})
	}
	return out
}

func number(v any) float64 {
	n, _ := v.(float64)
	return n
}

// experts are dispatches and combines by DeepEP whose time, experts and ranks are known.
func (g *group) experts() (out []point) {
	if !strings.HasPrefix(g.Library, "DeepEP") || strings.Contains(g.Library, "V2") || g.Hidden == 0 ||
		g.TopK == 0 {
		return nil
	}
	kernel := peer.DeepEP
	if strings.HasPrefix(g.Mode, "low_latency") {
		kernel = peer.DeepEPLowLatency
	}
	ranks := g.EP
	if ranks == 0 {
		ranks = 8 * max(1, g.Hardware.Nodes)
	}
	rows := g.Rows
	if g.Dispatch > 0 {
		rows = []map[string]any{{"tokens_per_rank": float64(g.Tokens), "dispatch_us": g.Dispatch,
			"combine_us": g.Combine}}
	}
	for _, row := range rows {
		s, ok := g.machine(ranks)
		tokens := int(number(row["tokens_per_rank"]))
		if !ok || tokens == 0 || g.Experts%ranks != 0 {
			continue
		}
		key := g.Name + fmt.Sprint(tokens)
		if kernel == peer.DeepEP {
			key = fmt.Sprintf("%s(%d, %d)", g.Name, tokens, int(number(row["dispatch_sms"])))
		}
		experts := g.Experts
		if experts == 0 { // the page's tests have 288 for EP 8 to 32, else 256
			experts = 256
		}
		for _, op := range []string{scenario.Dispatch, scenario.Combine} {
			us := number(row[strings.TrimPrefix(op, "ep_")+"_us"])
			if us == 0 {
				continue
			}
			s.Workload = scenario.Workload{Op: op, Kernel: kernel, Serving: scenario.Serving{Experts: experts,
				TopK: g.TopK, Hidden: g.Hidden, Tokens: tokens, SMs: int(number(row["dispatch_sms"]))}}
			if kernel == peer.DeepEPLowLatency {
				s.Workload.Serving.SMs = 0
			}
			s.Engine.Launch = "graph"
			out = append(out, point{class: fmt.Sprintf("%s %s %s, %d ranks", op, kernel, g.gpu(), ranks),
				key: key, measured: us, spec: s})
		}
	}
	return out
}

// cache are transfers between the GPUs of two nodes, at each list's best rate.
func (g *group) cache() []point {
	best := 0.0
	for _, row := range g.Rows {
		best = max(best, number(row["write"]))
	}
	name := map[string]string{"32 x EFA 100 Gb/s (400 GB/s)": "aws-p5.48xlarge",
		"16 x EFA 200 Gb/s (400 GB/s)": "aws-p5en.48xlarge",
		"8 x EFA 400 Gb/s (400 GB/s)":  "aws-p6-b200.48xlarge",
		"16 x EFA 400 Gb/s (800 GB/s)": "aws-p6-b300.48xlarge"}[g.Hardware.NIC]
	if name == "" || g.Memory != "GPU to GPU" || best == 0 {
		return nil
	}
	s := scenario.Spec{Format: scenario.FormatVersion}
	s.Machine.Nodes = []scenario.Nodes{{Topo: name, Count: 2}}
	s.Workload = scenario.Workload{Op: scenario.KVCache, Serving: scenario.Serving{FromTP: 8, ToTP: 8,
		Layers:      64,
		BlockTokens: 64, KVBytes: 1 << 17, Tokens: 1 << 12}} // blocks of 1 MiB a rank
	return []point{{class: "kv_transfer write, GPU memory", key: g.Name, measured: best, rate: true, spec: s}}
}
