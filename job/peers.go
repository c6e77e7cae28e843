package job

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/workload"
)

// byKernel is an operation by a kernel in place of NCCL; nil where the kernel leaves it to NCCL. Kernels of
// serving are captured in CUDA graphs.
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

// peerPlan is the plan of a kernel.
func (c *costing) peerPlan(at *communicator, op comm.Op, k workload.Kernel) (*peer.Plan, error) {
	if op.Func == coll.AllReduce {
		s := at.comm.Symmetric()
		return peer.Chosen(k.Name, at.layout.NRanks, op.Count, op.Type, op.RedOp, s.P2P && s.Nodes == 1,
			s.DirectNVLink)
	}
	e := &peer.Experts{Kernel: k.Name, Combine: k.Combine, Experts: k.Experts, TopK: k.TopK, Hidden: k.Hidden,
		Tokens: k.Tokens, Element: int64(op.Type.Size()), GPUSMs: int(c.m.Sim.Class.Share.SMs),
		NodeOf: at.layout.NodeOf}
	return e.Plan()
}
