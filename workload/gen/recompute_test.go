package gen

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/workload"
)

// TestModulesAgain: a module that is computed again does its forward operations and calls once more a layer
// and microbatch, and nothing else; what it makes is not kept.
func TestModulesAgain(t *testing.T) {
	base := named(t, "deepseek-v2-lite")
	base.Layers, base.Pattern = 2, "fe" // of a dense layer and one of experts
	base.EP, base.DP, base.GlobalBatch, base.Launch = 2, 2, 4, 0
	count := func(c Config) (ops map[string]int, calls int, held float64) {
		j := makeJob(t, c)
		p := j.Program()
		ops = map[string]int{}
		for _, s := range p.Lists[0].Steps {
			switch {
			case s.Kind == workload.Issue:
				calls++
			case s.Work > 0:
				ops[p.Works[s.Work-1].Name]++
			}
		}
		return ops, calls, float64(j.Folded.Memory.Activations)
	}
	plain, calls, held := count(base)
	for m, x := range map[Modules]struct {
		more  []string // operations, once a microbatch
		calls int
	}{
		Norms:            {[]string{"norm_again", "norm_again", "norm_again", "norm_again"}, 0},
		ExpertActivation: {[]string{"expert_activation"}, 0},
		LatentUp:         {[]string{"q_up", "kv_up", "q_up", "kv_up"}, 0},
		FeedForward:      {[]string{"up", "down"}, 0},
		MoE:              {[]string{"router", "expert_up", "expert_down", "shared_up", "shared_down"}, 2},
		SharedExpert:     {[]string{"shared_up", "shared_down"}, 0},
	} {
		c := base
		c.Modules = m
		ops, more, less := count(c)
		for name, n := range ops {
			want := plain[name]
			for _, again := range x.more {
				if again == name {
					want += 2 // microbatches
				}
			}
			if n != want {
				t.Errorf("%v: %s %d times, want %d", m, name, n, want)
			}
		}
		if more != calls+2*x.calls {
			t.Errorf("%v: %d calls, want %d more than %d", m, more, 2*x.calls, calls)
		}
		if less >= held {
			t.Errorf("%v: %.0f bytes of activations, %.0f without", m, less, held)
		}
	}
}

// TestLeastThatFits: of what can be computed again a job does the least with which it fits.
func TestLeastThatFits(t *testing.T) {
	c := named(t, "nemotron-3-nano-30b-a3b")
	c.Seq, c.EP, c.DP, c.FSDP, c.Fit = 8192, 8, 16, 1, true
	c.GlobalBatch = 16
	for _, want := range []string{"", "moe_act,layernorm,mla_up_proj", "layernorm,mla_up_proj,mlp,moe",
		"full"} {
		d := c
		for d.GPU.Capacity = 200 << 30; d.GPU.Capacity > 10<<30; d.GPU.Capacity -= 1 << 30 {
			if j := makeJob(t, d); j.Again == want {
				if j.Folded.Memory.Total() > d.GPU.Capacity {
					t.Errorf("%s does not fit", want)
				}
				break
			}
		}
		if d.GPU.Capacity <= 10<<30 {
			t.Errorf("no size of memory asks for %q", want)
		}
	}
}

// TestDispatchByKernel: in training tokens go to experts by the kernel that is asked for, on each way with
// its direction: dispatch and gradients of combine to the experts, combine and gradients of dispatch back.
func TestDispatchByKernel(t *testing.T) {
	c := named(t, "deepseek-v3")
	c.Layers, c.Pattern, c.MTP = 1, "e", 0
	c.EP, c.DP, c.GlobalBatch, c.Dispatch = 8, 8, 8, "deepep"
	p := makeJob(t, c).Program()
	var ways []bool
	for _, s := range p.Lists[0].Steps {
		if call := &p.Calls[s.Call]; s.Kind == workload.Issue && p.Comms[call.Comm].Kind == workload.EP {
			want := workload.Kernel{Name: "deepep", Combine: call.Kernel.Combine,
				Args: [6]int64{256, 8, 7168, c.MicroBatch * c.Seq, 8, 4}}
			if call.Kernel != want {
				t.Errorf("%v, want %v", call.Kernel, want)
			}
			ways = append(ways, call.Kernel.Combine)
		}
	}
	if want := []bool{false, true, false, true}; !slices.Equal(ways, want) {
		t.Errorf("combines are %v, want %v", ways, want)
	}
	c.Capacity = 2
	if _, err := Make(c); err == nil || !strings.Contains(err.Error(), "--capacity") {
		t.Error(err)
	}
}

// TestOperatorsAgain: torchtitan's selective checkpointing does every second product of a layer again, of 8
// bits all but the last, with its gathers and sums, and not attention; it is refused of other layers.
func TestOperatorsAgain(t *testing.T) {
	base := named(t, "llama-3.1-8b")
	base.Layers, base.TP, base.SequenceParallel, base.GlobalBatch = 1, 2, true, 1
	for precision, want := range map[workload.Precision][]string{
		workload.BF16: {"keys_again", "proj", "gate_again"},
		workload.FP8:  {"qkv", "proj", "up"},
	} {
		count := func(m Modules) (ops map[string]int, calls int, held float64) {
			c := base
			c.Precision, c.Modules = precision, m
			j := makeJob(t, c)
			ops = map[string]int{}
			for _, s := range j.Program().Lists[0].Steps {
				if s.Kind == workload.Issue {
					calls++
				} else if s.Work > 0 {
					ops[j.Program().Works[s.Work-1].Name]++
				}
			}
			return ops, calls, float64(j.Folded.Memory.Activations)
		}
		plain, calls, held := count(0)
		again, more, less := count(Operators)
		for _, name := range want {
			plain[name]++
		}
		if !maps.Equal(plain, again) {
			t.Errorf("%v: %v, want %v", precision, again, plain)
		}
		if more != calls+3 { // two gathers, one sum
			t.Errorf("%v: %d calls, %d without", precision, more, calls)
		}
		if less >= held {
			t.Errorf("%v: %.0f bytes of activations, %.0f without", precision, less, held)
		}
	}
	for _, c := range []Config{named(t, "mixtral-8x7b"), named(t, "llama-3.1-8b")} {
		c.Modules = Operators | Norms
		if c.Experts > 0 {
			c.Modules = Operators
		}
		var wrong *Error
		if _, err := Make(c); !errors.As(err, &wrong) || wrong.Option != "recompute" {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}
