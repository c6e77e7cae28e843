package job

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/workload"
)

// byKernel plans an operation by a kernel other than NCCL's (vLLM, DeepEP …); nil if that kernel leaves it to
// NCCL. Kernels of serving run in CUDA graphs.
func (c *costing) byKernel(ctx context.Context, at *communicator, op comm.Op, k workload.Kernel) (*planned,
	error) {
	if c.opt.Fidelity != Share {
		return nil, &exec.NotImplementedError{Feature: "kernel " + k.Name + " in a job",
			Missing: "it is timed as a whole; write fidelity share"}
	}
	key := opKey{shape: at.key, comm: at.id, op: op, group: "kernel " + k.String(),
		order: fmt.Sprint(at.rankOf)}
	if x, ok := c.known[key]; ok {
		return x, nil
	}
	p, err := c.peerPlan(at, op, k)
	if err != nil || p == nil {
		c.known[key] = nil
		return nil, err
	}
	cfg := c.located(at)
	cfg.Launch = sim.Graph
	e, err := sim.New(cfg)
	if err != nil {
		return nil, err
	}
	r, err := e.Peer(ctx, p)
	if err != nil {
		return nil, err
	}
	x := &planned{op: op, sms: int32(p.Blocks)}
	x.alone = sim.Alone{Time: r.Elapsed, Again: r.Elapsed, Ends: r.Finish, Links: r.Links}
	x.order(at)
	c.known[key] = x
	return x, nil
}

// peerPlan returns the plan of such a kernel.
func (c *costing) peerPlan(at *communicator, op comm.Op, k workload.Kernel) (*peer.Plan, error) {
	if k.Name == tuning.DDA {
		return at.comm.DDA(op)
	}
	if op.Func == coll.AllReduce {
		s := at.comm.Symmetric()
		return peer.Chosen(k.Name, at.layout.NRanks, op.Count, op.Type, op.RedOp,
			peer.Reach{Peers: s.P2P && s.Nodes == 1, NVLink: s.DirectNVLink, Multicast: s.NVLS})
	}
	a := k.Args
	if k.Name == workload.KVKernel {
		return (&peer.Cache{From: int(a[0]), To: int(a[1]), Layers: a[2], Tokens: a[3], BlockTokens: a[4],
			Bytes: a[5], Behind: true}).Plan()
	}
	return (&peer.Experts{Kernel: k.Name, Combine: k.Combine, Experts: a[0], TopK: a[1], Hidden: a[2],
		Tokens: a[3], Groups: a[4], TopKGroups: a[5], Element: int64(op.Type.Size()),
		GPUSMs: int(c.m.Sim.Class.Share.SMs),
		NodeOf: at.layout.NodeOf}).Plan()
}
