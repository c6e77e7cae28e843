package device

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/real/internal/cuda"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// Executor is an exec.Executor of one plan, for the suite that all executors pass: it runs a plan on the GPUs
// of this process, rank r on GPUs[r].
type Executor struct {
	Driver *cuda.Driver
	GPUs   []int // several ranks may share one
	Warps  int   // of a block that move data; 0: as cuda.NewCompiler
	// Buffered sends all data through FIFOs, as in Config.
	Buffered bool
	Seed     uint32
	Timeout  time.Duration // of a run, 0: two minutes
	Trace    nccl.Options
}

// provable is the largest number of ops of a plan that is proved before it runs; a wrong plan would only be
// noticed as a hang.
const provable = 20_000

// Run executes the plan once on fresh data and compares every output on the GPU with the expected values.
func (e *Executor) Run(ctx context.Context, job exec.Job, sink trace.Sink) (exec.Result, error) {
	res := exec.Result{Wrong: -1}
	p, err := job.Single("the executor on GPUs")
	if err != nil {
		return res, err
	}
	if err := ctx.Err(); err != nil {
		return res, context.Cause(ctx)
	}
	if p.TotalOps() <= provable {
		if err := check.Plan(p); err != nil {
			return res, err
		}
	}
	n := p.Comm.NRanks
	if len(e.GPUs) < n {
		return res, &exec.UnsupportedError{Feature: "plan on GPUs", Needs: fmt.Sprintf("%d GPUs", n),
			Found: fmt.Sprintf("%d", len(e.GPUs))}
	}
	limit := cmp.Or(e.Timeout, 2*time.Minute)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	op := OpOf(p)
	s, err := Open(ctx, Config{Driver: e.Driver, Plans: true, GPUs: e.GPUs[:n], Ranks: n, Buffer: op.buffer(),
		Warps: e.Warps, Buffered: e.Buffered})
	if err != nil {
		return res, err
	}
	res, err = s.execute(op, e.Seed, sink, e.Trace)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return res, err
}

// OpOf returns the operation of a plan.
func OpOf(p *plan.Plan) *Case {
	r := &p.Req
	return &Case{Func: r.Func, Type: r.Type, Red: r.Op, Root: int(r.Root), InPlace: r.InPlace, Plan: p,
		Pairs: r.Pairs,
		Sizes: coll.CountSizes(r.Func, r.Count, p.Comm.NRanks)}
}

// buffer returns the size of a rank's largest buffer.
func (op *Case) buffer() units.Bytes {
	size := op.Sizes.Bytes(op.Type)
	if op.Pairs != nil {
		size = max(size, units.Bytes(op.Pairs.Buffer())*op.Type.Size())
	}
	return size
}

// execute runs an operation once by its plan and verifies it; with a sink it also records times.
func (s *Session) execute(op *Case, seed uint32, sink trace.Sink, o nccl.Options) (exec.Result, error) {
	w, err := s.Watch(op, seed)
	if err != nil {
		return exec.Result{Wrong: -1}, err
	}
	w.WriteTrace(trace.OrDiscard(sink), o)
	return w.result(), nil
}
