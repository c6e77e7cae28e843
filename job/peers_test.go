package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// TestKernelsOfServingAreCalls: a call by a kernel over peers' memory takes in a job what the kernel takes by
// itself in a CUDA graph; vllm leaves much to NCCL; two calls of communicators that share links are not
// refused; step by step they are, as is a kernel whose ranks do not reach each other.
func TestKernelsOfServingAreCalls(t *testing.T) {
	m, s := machine(t, "dgx-h100.xml", 1)
	cfg := m.Sim
	cfg.Comm, cfg.Systems, cfg.Launch = s.Comm.Layout, s.Comm.Systems(), sim.Graph
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	one := func(call string) string {
		return "workload 1\nranks 8\ncomm world *\nlist a 0-7\n  call 0 world " + call + "\n"
	}
	for _, call := range []string{"all_reduce bfloat16 sum 65536 kernel=vllm",
		"all_reduce bfloat16 sum 65536 kernel=two-shot",
		"alltoall f8e4m3 sum 28672 kernel=deepep-ll:256:8:7168:32",
		"alltoall bfloat16 sum 28672 kernel=deepep:256:8:7168:4096:combine"} {
		p, err := workload.Parse(one(call), "p")
		if err != nil {
			t.Fatal(err)
		}
		c := &p.Calls[0]
		pl, err := peer.Chosen(c.Kernel.Name, 8, c.Count, c.Type, c.RedOp,
			peer.Reach{Peers: true, NVLink: true})
		if k := c.Kernel; k.Args[0] > 0 {
			pl, err = (&peer.Experts{Kernel: k.Name, Combine: k.Combine, Experts: k.Args[0], TopK: k.Args[1],
				Hidden: k.Args[2], Tokens: k.Args[3], Element: int64(c.Type.Size()),
				GPUSMs: int(cfg.Class.Share.SMs), NodeOf: s.Comm.NodeOf}).Plan()
		}
		if err != nil {
			t.Fatal(err)
		}
		want, err := x.Peer(context.Background(), pl)
		if err != nil {
			t.Fatal(err)
		}
		if got := run(t, m, one(call), job.Options{}).Elapsed(); got != want.Elapsed {
			t.Errorf("%s takes %v, by itself %v", call, got, want.Elapsed)
		}
		_, err = m.Run(context.Background(), p, job.Options{Fidelity: job.Step})
		if no := new(exec.NotImplementedError); !errors.As(err, &no) || !strings.Contains(err.Error(),
			c.Kernel.Name) {
			t.Errorf("step by step: %v", err)
		}
	}
	large := "all_reduce bfloat16 sum 4194304"
	if a, b := run(t, m, one(large+" kernel=vllm"), job.Options{}).Elapsed(),
		run(t, m, one(large), job.Options{}).Elapsed(); a != b {
		t.Errorf("8 MiB take %v by vllm's choice, %v by NCCL", a, b)
	}
	run(t, m, "workload 1\nranks 8\ncomm a *\ncomm b *\nlist l 0-7\n"+
		"  call 0 a all_reduce bfloat16 sum 65536 "+
		"kernel=vllm\n  call 1 b all_reduce bfloat16 sum 65536\n", job.Options{})
	two, _ := machine(t, "dgx-h100.xml", 2)
	p, err := workload.Parse("workload 1\nranks 16\ncomm w *\nlist l 0-15\n"+
		"  call 0 w all_reduce bfloat16 sum 64 "+
		"kernel=one-shot\n", "p")
	if err != nil {
		t.Fatal(err)
	}
	_, err = two.Run(context.Background(), p, job.Options{})
	if no := new(plan.UnsupportedError); !errors.As(err, &no) {
		t.Errorf("one shot between nodes: %v", err)
	}
}

// TestCacheBesideCollectives: the cache of a request that comes from another node holds no SM and does not
// slow what a node does over NVLink; what goes over the same NICs shares them: both take longer than alone,
// and together no more than one after the other.
func TestCacheBesideCollectives(t *testing.T) {
	m, _ := machine(t, "dgx-h100.xml", 2)
	const cache = "  call 3 kv alltoall int8 sum 8388608 kernel=kv:8:8:64:2048:64:4096\n"
	at := func(others, decode string) (all, first units.Time) {
		text := "workload 1\nranks 16\ncomm kv *\ncomm node 0-7\ncomm all *\nlist decode 0-7\n" + cache +
			decode +
			others + "list filled 8-15\n" + cache + others
		r := run(t, m, text, job.Options{})
		return r.Elapsed(), r.Spans[0][len(r.Spans[0])-1].End
	}
	alone, _ := at("", "")
	inside := "  call 0 node all_reduce bfloat16 sum 1048576\n"
	only := run(t, m, "workload 1\nranks 16\ncomm node 0-7\nlist a 0-7\n"+inside+"list b 8-15\n",
		job.Options{})
	beside := only.Spans[0][0].End
	if all, first := at("", inside); all != alone || first != beside {
		t.Errorf("over NVLink %v, alone %v; the cache %v, alone %v", first, beside, all, alone)
	}
	gather := "  call 0 all all_gather bfloat16 sum 16777216\n"
	over := run(t, m, "workload 1\nranks 16\ncomm all *\nlist a 0-15\n"+gather, job.Options{}).Elapsed()
	if both, _ := at(gather, ""); both <= max(alone, over) || float64(both) > 1.05*float64(alone+over) {
		t.Errorf("both take %v, alone %v and %v", both, alone, over)
	}
}

// TestKernelsOfServingHaveTheirOwnLinks: communicators of different GPUs share no link: experts of two nodes,
// each among its own GPUs, take what those of one node take alone, and so do sums.
func TestKernelsOfServingHaveTheirOwnLinks(t *testing.T) {
	m, _ := machine(t, "dgx-h100.xml", 2)
	for _, call := range []string{"alltoall bfloat16 sum 28672 kernel=deepep:256:8:7168:8192",
		"all_reduce bfloat16 sum 1048576 kernel=two-shot"} {
		program := func(second string) string {
			return "workload 1\nranks 16\ncomm a 0-7\ncomm b 8-15\nlist x 0-7\n  call 0 a " + call +
				"\nlist y 8-15\n  call 0 b " + second + "\n"
		}
		alone := run(t, m, program("all_reduce bfloat16 sum 8"), job.Options{}).Elapsed()
		if both := run(t, m, program(call), job.Options{}).Elapsed(); both != alone {
			t.Errorf("%s on two nodes takes %v, on one %v", call, both, alone)
		}
	}
}
