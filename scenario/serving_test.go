package scenario

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim/gpu"
)

func servingSpec(w Workload, nodes, gpus int) Spec {
	s := Spec{Format: FormatVersion, Workload: w, Engine: Engine{Launch: "graph"}}
	s.Machine.Nodes, s.Machine.GPUs = []Nodes{{Topo: "dgx-h200", Count: nodes}}, gpus
	return s
}

func allReduceUs(t *testing.T, kernel, buffers string, gpus int, sizes ...string) []Row {
	t.Helper()
	res, err := Run(context.Background(),
		servingSpec(Workload{Op: "all_reduce", Kernel: kernel, Buffers: buffers,
			Types: []string{"bfloat16"}, Sizes: sizes}, 1, gpus), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Rows
}

// An all_reduce in one shot takes a launch, two meetings, one round trip of loads and the bytes of
// seven peers; each further meeting and round trip is one that the class has. Symmetric is what
// windows (-R 2) give, and vllm is one shot, two shots or NCCL by size.
func TestKernelsOfAllReduce(t *testing.T) {
	c := gpu.NVSwitch90().Peer
	got := allReduceUs(t, "one-shot", "", 8, "16", "128K")
	if want := c.Gap + 2*c.Flag + c.Load + 6*c.More; math.Abs(got[0].Out.Time.Micros()-want) > .01 {
		t.Errorf("one shot of 16 bytes: %v us, want %.3f", got[0].Out.Time.Micros(), want)
	}
	if !got[1].Out.Checked || got[1].Facts.Kernel != "one-shot" || got[1].Facts.Margin == 0 {
		t.Errorf("%+v", got[1].Facts)
	}
	two := allReduceUs(t, "two-shot", "", 8, "128")
	if want := c.Gap + 3*c.Flag + c.Load + 6*c.More + 7*c.Serial; math.Abs(two[0].Out.Time.Micros()-want) >
		.01 {
		t.Errorf("two shots of 128 bytes: %v us, want %.3f", two[0].Out.Time.Micros(), want)
	}
	push := allReduceUs(t, "one-shot-push", "", 8, "16")
	if want := c.Gap + c.Flag; math.Abs(push[0].Out.Time.Micros()-want) > .01 {
		t.Errorf("a push of 16 bytes: %v us, want %.3f", push[0].Out.Time.Micros(), want)
	}
	norm := allReduceUs(t, "one-shot-push-norm", "", 8, "16")
	if want := c.Gap + c.Flag + c.Load; math.Abs(norm[0].Out.Time.Micros()-want) > .01 {
		t.Errorf("a push of 16 bytes and the norm: %v us, want %.3f", norm[0].Out.Time.Micros(), want)
	}
	one := gpu.NVSwitch90().One
	for kernel, want := range map[string]float64{"multimem": c.Gap + 2*c.Flag + c.Multimem,
		"multimem-copy":     c.Gap + 2*c.Flag + c.Multimem + 2*one.CopyGap,
		"multimem-one-shot": c.Gap + 2*c.Flag + c.Multimem} {
		if got := allReduceUs(t, kernel, "", 8, "16"); math.Abs(got[0].Out.Time.Micros()-want) > .01 {
			t.Errorf("%s of 16 bytes: %v us, want %.3f", kernel, got[0].Out.Time.Micros(), want)
		}
	}
	// GPUs send 9/8 of a buffer to the switch, and 8 buffers where each rank loads all
	large, all := allReduceUs(t, "multimem", "", 8, "64M"), allReduceUs(t, "multimem-one-shot", "", 8, "64M")
	if r := float64(all[0].Out.Time) / float64(large[0].Out.Time); r < 6.5 || r > 64./9 {
		t.Errorf("64 MiB in one shot take %.2f times as long as in two", r)
	}
	sym, win := allReduceUs(t, "symmetric", "", 8, "64K", "1M"), allReduceUs(t, "", "windows", 8, "64K", "1M")
	for i := range sym {
		if sym[i].Out != win[i].Out || sym[i].Facts.Kernel != win[i].Facts.Kernel {
			t.Errorf("%d bytes: symmetric %+v, windows %+v", sym[i].Bytes, sym[i].Out, win[i].Out)
		}
	}
	var kernels []string
	for _, row := range allReduceUs(t, "vllm", "", 8, "128K", "256K", "8M", "40") {
		kernels = append(kernels, row.Facts.Kernel)
	}
	if want := []string{"one-shot", "two-shot", "", ""}; !slices.Equal(kernels, want) {
		t.Errorf("vllm takes %q, want %q", kernels, want)
	}
}

// What a kernel of serving cannot do is refused by the member that asks for it, or by type.
func TestServingRefusals(t *testing.T) {
	ep := Serving{Experts: 256, TopK: 8, Hidden: 7168, Tokens: 128}
	bad := func(change func(*Serving)) Serving { s := ep; change(&s); return s }
	with := func(s Spec, change func(*Spec)) Spec { change(&s); return s }
	shot := servingSpec(Workload{Op: "all_reduce", Kernel: "one-shot", Sizes: []string{"64K"}}, 1, 0)
	for want, s := range map[string]Spec{
		"network.model: not simulated":    with(shot, func(s *Spec) { s.Network.Model = "packet" }),
		"outputs.ops: not simulated":      with(shot, func(s *Spec) { s.Outputs.Ops = "f.csv" }),
		"workload.kernel warp: not known": servingSpec(Workload{Op: "all_reduce", Kernel: "warp"}, 1, 0),
		"workload.kernel one-shot: only":  servingSpec(Workload{Op: "all_gather", Kernel: "one-shot"}, 1, 0),
		"workload.serving: only":          servingSpec(Workload{Op: "all_reduce", Serving: ep}, 1, 0),
		"workload.serving.topK 0": servingSpec(Workload{Op: Dispatch,
			Serving: bad(func(s *Serving) { s.TopK = 0 })}, 1, 0),
		"workload.serving.layers 0": servingSpec(Workload{Op: KVCache, Serving: ep}, 1, 0),
		"workload.types": servingSpec(Workload{Op: Combine, Serving: ep,
			Types: []string{"double"}}, 1, 0),
		"workload.group": servingSpec(Workload{Op: "all_reduce", Kernel: "one-shot", Group: 2,
			Sizes: []string{"64K"}},
			1, 0),
	} {
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for name, s := range map[string]Spec{
		"two nodes": servingSpec(Workload{Op: "all_reduce", Kernel: "one-shot", Sizes: []string{"64K"}}, 2,
			0),
		"multicast": with(servingSpec(Workload{Op: "all_reduce", Kernel: "multimem",
			Sizes: []string{"64K"}}, 1, 0), func(s *Spec) { s.Machine.Nodes[0].Topo = "dgx-a100" }),
		"integers": servingSpec(Workload{Op: "all_reduce", Kernel: "symmetric", Sizes: []string{"64K"},
			Types: []string{"int32"}}, 1, 0),
	} {
		var no *plan.UnsupportedError
		if _, err := Run(context.Background(), s, Options{}); !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, kernel := range []string{"deepep", "deepep-ll", "deepep-v2", "pplx", "hybridep"} {
		s := servingSpec(Workload{Op: Dispatch, Kernel: kernel, Serving: ep}, 2, 0)
		s.Machine.Nodes[0].Topo = "aws-p5"
		var no *exec.NotImplementedError
		if _, err := Serve(context.Background(), s, Options{}); !errors.As(err, &no) ||
			!strings.Contains(err.Error(), "efa-v2") {
			t.Errorf("%s over EFA: %v", kernel, err)
		}
		s.Machine.Nodes[0].Count = 1
		if _, err := Serve(context.Background(), s, Options{}); err != nil {
			t.Errorf("%s on one node: %v", kernel, err)
		}
	}
	for name, s := range map[string]Spec{
		"one-sided between nodes": servingSpec(Workload{Op: Dispatch, Kernel: "trtllm", Serving: ep}, 2, 0),
		"7 experts": servingSpec(Workload{Op: Dispatch, Serving: bad(func(s *Serving) { s.Experts = 7 })}, 1,
			0),
	} {
		var no *plan.UnsupportedError
		if _, err := Serve(context.Background(), s, Options{}); !errors.As(err, &no) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Low latency sends each token to each of its experts: of 16 ranks on two nodes half of all go
// between them, which take as long as a port needs. NCCL's sends and receives of the same tokens
// take longer.
func TestServeExperts(t *testing.T) {
	w := Workload{Op: Dispatch, Kernel: "deepep-ll", Serving: Serving{Experts: 256, TopK: 8, Hidden: 7168,
		Tokens: 128}}
	ll, err := Serve(context.Background(), servingSpec(w, 2, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if each := int64(128 * 8 * (7168 + 224 + 16)); ll.Bytes != each || ll.Remote != each/2 || !ll.Proven {
		t.Errorf("%+v, want %d bytes", ll, each)
	}
	c := gpu.NVSwitch90()
	cost := c.Peer.LowDispatch
	want := cost.Gap + 2*cost.Group + cost.Token + c.Peer.Cross + float64(ll.Remote)/(50e3*c.Net.Eff)
	if math.Abs(ll.Us/want-1) > .01 {
		t.Errorf("%.2f us, want %.2f", ll.Us, want)
	}
	w.Kernel = NCCLKernel
	nccl, err := Serve(context.Background(), servingSpec(w, 2, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if nccl.Us < ll.Us || !nccl.Proven {
		t.Errorf("NCCL %+v, low latency %.2f us", nccl, ll.Us)
	}
	for _, kernel := range []string{"deepep", "deepep-v2", "hybridep", "pplx"} {
		for _, op := range []string{Dispatch, Combine} {
			w.Op, w.Kernel = op, kernel
			if out, err := Serve(context.Background(), servingSpec(w, 2, 0), Options{}); err != nil ||
				!out.Proven ||
				out.Us <= 0 {
				t.Errorf("%s %s: %+v, %v", op, kernel, out, err)
			}
		}
	}
}

// TensorRT-LLM's kernels within a node: all SMs store tokens of NVFP4, half a byte a value and a scale for
// 16, once to each rank, or links bound them; a combine's loads are bound by links.
func TestServeOneSided(t *testing.T) {
	w := Workload{Op: Dispatch, Kernel: "trtllm", Types: []string{"nvfp4"}, Serving: Serving{Experts: 256,
		TopK: 8, Groups: 8, TopKGroups: 8, Hidden: 7168, Tokens: 4096}}
	c := gpu.NVSwitch90()
	cost := c.Peer.OneSided
	us := func(ranks int) *Served {
		out, err := Serve(context.Background(), servingSpec(w, 1, ranks), Options{})
		if err != nil || !out.Proven {
			t.Fatal(out, err)
		}
		return out
	}
	eight := us(8)
	each := int64(4096 * (7168/2 + 7168/16 + 8*(4+4)))
	if eight.Bytes != 8*each {
		t.Errorf("%d bytes, want %d", eight.Bytes, 8*each)
	}
	link := float64(7*each) / (eight.Us - cost.Dispatch - 3*cost.Meet) * 1e-3
	w.Serving.Groups, w.Serving.TopKGroups = 2, 2
	if want := cost.Dispatch + cost.Meet + 4096*cost.Token/132; math.Abs(us(2).Us/want-1) > .01 {
		t.Errorf("2 ranks: %.2f us, want %.2f", us(2).Us, want)
	}
	w.Op, w.Types = Combine, nil
	want := cost.Combine + 2*cost.Meet + 4096*7168*2/(link*1e3)
	if got := us(2).Us; math.Abs(got/want-1) > .01 {
		t.Errorf("combine of 2 ranks: %.2f us, want %.2f", got, want)
	}
}

// HybridEP's SMs look at each token that a node gets for each of its ranks: of two nodes, both of which get
// all but a few tokens, as many as there are ranks. Between nodes two blocks are bound by that.
func TestServeHybridEP(t *testing.T) {
	w := Workload{Op: Dispatch, Kernel: "hybridep", Serving: Serving{Experts: 128, TopK: 8, Hidden: 7168,
		Tokens: 4096, SMs: 2}}
	c := gpu.NVSwitch90().Peer
	for nodes, seen := range map[int]float64{1: 8, 2: 16 * (1 - 0.0031)} {
		out, err := Serve(context.Background(), servingSpec(w, nodes, 0), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := c.Dispatch.Gap + 2048*(c.HybridToken+c.HybridRank*seen); math.Abs(out.Us/want-1) > .01 {
			t.Errorf("%d nodes: %.1f us, want %.1f", nodes, out.Us, want)
		}
	}
}

// A large KV cache goes at the rate of all ports; a small one is as long as its posting. Reads take the way
// of their request more, and the ranks that hold the cache send as much as by writes.
func TestServeCache(t *testing.T) {
	s := Serving{FromTP: 8, ToTP: 8, Layers: 61, BlockTokens: 64, KVBytes: 1 << 17, Tokens: 4096}
	w := Workload{Op: KVCache, Serving: s}
	out, err := Serve(context.Background(), servingSpec(w, 2, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := gpu.NVSwitch90()
	if want := 8 * 50 * c.Net.Eff; math.Abs(out.GBps/want-1) > .01 || !out.Proven {
		t.Errorf("%+v, want %.1f GB/s", out, want)
	}
	w.Kernel = "read"
	read, err := Serve(context.Background(), servingSpec(w, 2, 0), Options{})
	if err != nil {
		t.Fatal(err)
	}
	more := read.Us - out.Us
	if math.Abs(more-c.Net.Wire) > .01 || !read.Proven || read.Remote != out.Remote {
		t.Errorf("%+v takes %.2f us more than writes, want %.2f", read, more, c.Net.Wire)
	}
	w.Kernel = ""
	w.Serving.BlockTokens, w.Serving.KVBytes = 1, 64
	if out, err = Serve(context.Background(), servingSpec(w, 2, 0), Options{}); err != nil {
		t.Fatal(err)
	}
	if want := 61*4096*c.Peer.Post + c.Peer.Request + c.Net.Wire; math.Abs(out.Us/want-1) > .01 {
		t.Errorf("%.1f us, want %.1f", out.Us, want)
	}
	w.Serving.ToTP = 16
	var field *FieldError
	if _, err = Serve(context.Background(), servingSpec(w, 2, 0), Options{}); !errors.As(err, &field) {
		t.Errorf("24 ranks of 16: %v", err)
	}
}
