package main

import (
	"cmp"
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

// linkRates are those of the GPUs' 16 PCIe lanes in each direction, in GB/s.
var linkRates = map[string]float64{"L40S": 31.5, "RTX": 63}

// overPCIe is what a framework takes between two GPUs without NVLink: the kernel that chooses between one
// shot and two; NCCL where GPUs cannot access each other's memory (vLLM's CustomAllreduce asks), and in
// SGLang 0.5.12, whose new kernel asks for NVLink and leaves the rest to NCCL (pull requests 24363 and
// 25650). That GPUs cannot is seen in the largest size, which is NCCL's in any case: through host memory it
// reaches less than 0.4 of a link, peer to peer more than half. Of more GPUs all take NCCL.
func (g *group) overPCIe(gpus int) string {
	last := g.Rows[len(g.Rows)-1]
	rate := number(last["bytes"]) / number(last["time_us"]) * 1e-3
	switch {
	case gpus > 2:
		return ""
	case rate < 0.4*linkRates[g.gpu()]:
		return noPeers
	case g.Framework == "sglang" && g.Version == "0.5.12":
		return scenario.NCCLKernel
	}
	return scenario.VLLMKernel
}

// noPeers is NCCL through host memory.
const noPeers = "nccl through the host"

// kernel is what a framework takes: vLLM, and SGLang before 0.5.14, choose between one shot and
// two; TensorRT-LLM and later SGLang push for little.
func (g *group) kernel(gpus int, bytes int64) string {
	newer := strings.HasPrefix(g.Version, "0.5.14") || g.Framework == "trtllm"
	little := int64(map[int]int{2: 16e6, 4: 1e6, 8: 5e5}[gpus])
	// from where on vLLM copies into symmetric memory, of 8 GPUs (all_reduce_utils.py)
	multimem := map[string]int64{"H100": 256 << 10, "H200": 256 << 10, "B200": 1 << 20,
		"B300": 4 << 20}[g.gpu()]
	switch {
	case g.Framework == "vllm" && gpus == 8 && multimem > 0 && !strings.HasPrefix(g.Version, "0.14") &&
		bytes >= multimem && bytes <= 64<<20:
		return peer.MultimemCopy
	case strings.HasPrefix(topologies[g.gpu()], "pcie") && bytes < 8<<20:
		return g.overPCIe(gpus)
	case newer && bytes < little && bytes < 8<<20:
		return peer.OneShotPush
	case newer, bytes >= 8<<20:
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
		switch kernel {
		case noPeers:
			s.NCCL.Env = map[string]string{"NCCL_P2P_DISABLE": "1"}
			fallthrough
		case scenario.NCCLKernel:
			s.Workload.Kernel = ""
		}
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

// expertKernel is what a group's library is simulated by; empty where it is not.
func (g *group) expertKernel() string {
	switch {
	case strings.HasPrefix(g.Library, "pplx-garden") && g.Mode == "decode":
		return peer.PPLX
	case g.Library == "DeepEP_CX7" && g.Mode == "decode":
		return peer.DeepEPLowLatency
	case g.Library == "HybridEP":
		return peer.HybridEP
	case g.Kernel == "NVLinkOneSided":
		return peer.OneSided
	case !strings.HasPrefix(g.Library, "DeepEP") || g.TopK == 0:
		return ""
	case strings.Contains(g.Library, "V2"):
		return peer.DeepEPV2
	case strings.HasPrefix(g.Mode, "low_latency"):
		return peer.DeepEPLowLatency
	}
	return peer.DeepEP
}

// expertRows are a group's rows; a table of one row is in the group itself. A rate is that of the bytes that
// go to nodes, the own included, of FP8 with scales or of BF16 (DeepEP's tests): of up to 4 groups of V1, of
// version 2 to 2 (1 - C(128, 8) / C(256, 8)) = 2 nodes and to 3.6 of 4.
func (g *group) expertRows() []map[string]any {
	if g.Dispatch > 0 {
		return []map[string]any{{"tokens_per_rank": float64(g.Tokens), "dispatch_us": g.Dispatch,
			"combine_us": g.Combine}}
	}
	if g.DispatchRate > 0 {
		nodes := min(float64(g.EP)/8, 4)
		if nodes == 4 && strings.Contains(g.Library, "V2") {
			nodes = 3.61
		}
		bytes := float64(g.Tokens) * nodes * float64(g.Hidden) * 1e-3
		return []map[string]any{{"tokens_per_rank": float64(g.Tokens), "dispatch_sms": float64(g.SMs),
			"dispatch_us": bytes * (1 + 4./128) / g.DispatchRate, "combine_us": bytes * 2 / g.CombineRate}}
	}
	if g.Library == "HybridEP" {
		return g.hybridRows()
	}
	rows := g.Rows
	if g.Kernel == "NVLinkOneSided" {
		for _, r := range rows {
			r["tokens_per_rank"], r["dispatch_us"], r["combine_us"] = r["tokens"], r["alltoall_dispatch_us"],
				r["alltoall_combine_us"]
		}
	}
	if strings.HasSuffix(g.Library, "_CX7") { // DeepSeek-V3's sizes by its page
		for _, r := range rows {
			r["tokens_per_rank"] = float64(g.Tokens)
		}
		g.Hidden, g.TopK, g.Experts, g.Hardware.GPU = 7168, 8, 256, "H100"
	}
	return rows
}

// hybridRows are those of HybridEP's kernels, whose rates are of the copies that go to ranks, or between
// nodes to nodes, the own included.
func (g *group) hybridRows() (out []map[string]any) {
	g.Experts = g.Local * g.EP
	parts, miss := g.EP, 1.0
	if g.gpu() == "H100" {
		parts = g.EP / 8
	}
	for i := range g.TopK {
		miss *= float64(g.Experts-g.Experts/parts-i) / float64(g.Experts-i)
	}
	bytes := float64(g.Tokens*parts*g.Hidden) * (1 - miss) * 1e-3
	for _, r := range g.Rows {
		out = append(out, map[string]any{"tokens_per_rank": float64(g.Tokens), "dispatch_sms": r["sms"],
			"dispatch_us": bytes * (1 + 4./128) / number(r["kernel_dispatch_fp8_GBps"]),
			"combine_us":  bytes * 2 / number(r["kernel_combine_GBps"])})
	}
	return out
}

// experts are dispatches and combines whose kernel, experts and ranks are known.
func (g *group) experts() (out []point) {
	kernel := g.expertKernel()
	if kernel == "" {
		return nil
	}
	rows := g.expertRows()
	if g.Hidden == 0 {
		return nil
	}
	if g.gpu() == "Hopper" {
		g.Hardware.GPU = "H100"
	} else if g.gpu() == "Blackwell" {
		g.Hardware.GPU = "B200"
	}
	for _, row := range rows {
		ranks := cmp.Or(int(number(row["ep"])), g.EP, 8*max(1, g.Hardware.Nodes))
		s, ok := g.machine(ranks)
		tokens := int(number(row["tokens_per_rank"]))
		if !ok || tokens == 0 || g.Experts%ranks != 0 {
			continue
		}
		key := g.Name + fmt.Sprint(tokens)
		if row["ep"] != nil {
			key += fmt.Sprintf(" of %d", ranks)
		}
		if kernel == peer.DeepEP || kernel == peer.HybridEP {
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
			if nodes := ranks / 8; kernel == peer.DeepEPLowLatency {
				s.Workload.Serving.SMs = 0
			} else if kernel == peer.OneSided {
				// "balanced": each token's experts are of as many ranks as can be
				s.Workload.Serving.Groups, s.Workload.Serving.TopKGroups = ranks, min(ranks, g.TopK)
				if op == scenario.Dispatch {
					s.Workload.Types = []string{g.DType}
				}
			} else if kernel == peer.DeepEP && nodes > 1 {
				// DeepEP's test_internode.py, which AIConfigurator's collector is a copy of
				s.Workload.Serving.Groups, s.Workload.Serving.TopKGroups = nodes, min(nodes, 4)
			}
			s.Engine.Launch = "graph"
			out = append(out, point{class: fmt.Sprintf("%s %s %s, %d ranks", op, kernel, g.gpu(), ranks),
				key: key, measured: us, spec: s})
		}
	}
	return out
}

// cache are transfers between the GPUs of two nodes, at each list's best rate.
func (g *group) cache() (out []point) {
	name := map[string]string{"32 x EFA 100 Gb/s (400 GB/s)": "aws-p5.48xlarge",
		"16 x EFA 200 Gb/s (400 GB/s)": "aws-p5en.48xlarge",
		"8 x EFA 400 Gb/s (400 GB/s)":  "aws-p6-b200.48xlarge",
		"16 x EFA 400 Gb/s (800 GB/s)": "aws-p6-b300.48xlarge"}[g.Hardware.NIC]
	if name == "" || g.Memory != "GPU to GPU" {
		return nil
	}
	for _, kernel := range []string{peer.CacheWrite, peer.CacheRead} {
		best := 0.0
		for _, row := range g.Rows {
			best = max(best, number(row[kernel]))
		}
		if best == 0 {
			continue
		}
		key := g.Name
		if kernel == peer.CacheRead {
			key += " " + kernel
		}
		out = append(out, point{class: "kv_transfer " + kernel + ", GPU memory", key: key,
			measured: best, rate: true, spec: cacheSpec(name, kernel)})
	}
	return out
}

// cacheSpec is a transfer between two such nodes, of blocks of 1 MiB a rank.
func cacheSpec(name, kernel string) scenario.Spec {
	s := scenario.Spec{Format: scenario.FormatVersion}
	s.Machine.Nodes = []scenario.Nodes{{Topo: name, Count: 2}}
	s.Workload = scenario.Workload{Op: scenario.KVCache, Kernel: kernel, Serving: scenario.Serving{FromTP: 8,
		ToTP: 8, Layers: 64, BlockTokens: 64, KVBytes: 1 << 17, Tokens: 1 << 12}}
	return s
}
