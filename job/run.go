package job

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
)

// Fidelity says how the times of calls are found.
type Fidelity uint8

// Fidelities: see the package comment.
const (
	Share Fidelity = iota
	Step
	Alpha
)

var fidelityNames = [...]string{"share", "step", "alpha"}

// String returns the fidelity's name as options spell it.
func (f Fidelity) String() string {
	if int(f) < len(fidelityNames) {
		return fidelityNames[f]
	}
	return fmt.Sprintf("Fidelity(%d)", uint8(f))
}

// ParseFidelity returns the fidelity of a name.
func ParseFidelity(s string) (Fidelity, error) {
	for i, name := range fidelityNames {
		if s == name {
			return Fidelity(i), nil
		}
	}
	return 0, fmt.Errorf("fidelity %q is not known; write share, step or alpha", s)
}

// Options select the fidelity of a job's run, and effects that it leaves out.
type Options struct {
	Fidelity Fidelity
	// Apart: compute and collectives do not slow each other, and no kernel waits for SMs.
	Apart bool
	// Free marks, by index, communicators whose calls take no time: a collective ends when its last member
	// begins, a message arrives when it is sent. nil: none.
	Free []bool
	// Observe records the packet network for a trace (fidelity step only).
	Observe bool
}

// Call is the outcome of a program's call, by its index.
type Call struct {
	Alone    units.Time // time by itself; 0 if it launches no kernel, and with Step
	Algo     coll.Algorithm
	Proto    coll.Protocol
	Channels int32 // SMs that its kernel holds
}

// Result is the outcome of a job: spans of all steps, times by call, bytes by link.
type Result struct {
	*streams.Result
	Program *workload.Program
	// Fidelity is the method by which times were found.
	Fidelity Fidelity
	Calls    []Call // by index of Program.Calls
	Links    []exec.LinkLoad
	Network  *Network // nil without Options.Observe, or if no packet network is simulated
	// Notes name approximations, each only once.
	Notes []string
}

// SizeError is returned for a job with more ranks than the machine has GPUs.
type SizeError struct{ Ranks, GPUs int }

func (e *SizeError) Error() string {
	return fmt.Sprintf("the workload has %d ranks and the machine %d GPUs; take more nodes", e.Ranks, e.GPUs)
}

// Run runs a job. Errors are those of Program.Lint, of the machine's communicators and plans, *SizeError, and
// *streams.DeadlockError.
func (m *Machine) Run(ctx context.Context, p *workload.Program, opt Options) (*Result, error) {
	if err := p.Lint(); err != nil {
		return nil, err
	}
	if n := m.Cluster.NRanks(); p.Ranks() > n {
		return nil, &SizeError{Ranks: p.Ranks(), GPUs: n}
	}
	if slices.Contains(opt.Free, true) && opt.Fidelity == Step {
		return nil, &exec.NotImplementedError{Feature: "fidelity step",
			Missing: "calls that take no time; write share or alpha"}
	}
	p = ownMessages(p)
	c, err := newCosting(m, p, &opt)
	if err != nil {
		return nil, err
	}
	costs, err := c.find(ctx)
	if err != nil {
		return nil, err
	}
	in := &streams.Input{Program: c.p, Costs: costs, Part: c.part}
	if !opt.Apart && opt.Fidelity != Alpha {
		in.GPUs = c.gpus()
	}
	if opt.Fidelity == Share {
		c.starting(in)
	}
	in.Resources = len(c.names)
	if opt.Fidelity == Step {
		if in.Backend, err = c.backend(ctx); err != nil {
			return nil, err
		}
	}
	r, err := streams.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	return c.result(p, r), nil
}

// gpus returns the GPUs of the job's ranks, with the sharing parameters of their class; none if nothing on
// them is shared.
func (c *costing) gpus() []streams.GPU {
	s := &c.m.Sim.Class.Share
	out := make([]streams.GPU, c.p.Ranks())
	for i := range out {
		out[i] = streams.GPU{SMs: int32(s.SMs), Memory: c.m.Sim.Class.One.MemoryRate, Busy: s.Busy,
			Traffic: s.Traffic, Wait: s.Wait, Tail: units.FromMicros(s.Tail)}
	}
	return out
}

// starting adds the needs of the GPUs' work distributors: each kernel of a call occupies its GPU's
// distributor for a while.
func (c *costing) starting(in *streams.Input) {
	start := c.m.Sim.Class.Share.Start
	if in.GPUs == nil || start <= 0 {
		return
	}
	first := int32(len(c.names))
	for r := range c.p.Of {
		c.names, c.caps = append(c.names, fmt.Sprintf("rank%d kernels", r)), append(c.caps, 0)
	}
	for i := range in.Costs {
		x := &in.Costs[i]
		if x.Empty || x.Time <= 0 {
			continue
		}
		call := &c.p.Calls[i]
		// several messages may be one kernel, and hosts post the writes of a cache
		if message(call.Func) || call.Kernel.Name == workload.KVKernel {
			continue
		}
		share := math.Min(1, start*float64(units.Microsecond)/float64(x.Time))
		if share < 0.01 {
			continue
		}
		for _, r := range c.comms[call.Comm].ranks {
			x.Needs = append(x.Needs, streams.Need{Resource: first + r, Share: share})
		}
	}
}

// result returns the outcome of a job.
func (c *costing) result(p *workload.Program, r *streams.Result) *Result {
	out := &Result{Result: r, Program: p, Fidelity: c.opt.Fidelity, Calls: make([]Call, len(p.Calls))}
	for i, x := range c.calls[:len(p.Calls)] {
		if x != nil {
			out.Calls[i] = Call{Alone: x.alone.Time, Algo: x.choice.Algo, Proto: x.choice.Proto,
				Channels: x.sms}
		}
	}
	out.Network = c.network
	if out.Links = c.linkLoads(); c.session != nil {
		out.Links = c.session.Loads()
	}
	for i := range c.p.Works {
		if c.p.Works[i].Blocks == 0 {
			out.Notes = append(out.Notes, "how many blocks some compute kernels have is not known: beside "+
				"collectives, which hold SMs, they are taken to need all SMs for many waves of blocks")
			break
		}
	}
	return out
}

// linkLoads returns the bytes that each link carried in the whole job.
func (c *costing) linkLoads() []exec.LinkLoad {
	var out []exec.LinkLoad
	times := c.times()
	bytes := make([]units.Bytes, len(c.names))
	for i, loads := range c.loads {
		for _, l := range loads {
			bytes[l.link] += l.bytes * units.Bytes(times[i])
		}
	}
	for i, b := range bytes {
		if b > 0 {
			out = append(out, exec.LinkLoad{Name: c.names[i], Capacity: c.caps[i], Bytes: b})
		}
	}
	return out
}

// times returns, by call, how many operations of it the whole job has.
func (c *costing) times() []int64 {
	times := make([]int64, len(c.p.Calls))
	for i := range c.p.Comms {
		at := c.comms[i]
		if len(at.ranks) == 0 {
			continue
		}
		for _, s := range c.p.Lists[c.p.Of[at.ranks[0]]].Steps {
			if s.Kind == workload.Issue && c.p.Calls[s.Call].Comm == int32(i) &&
				!message(c.p.Calls[s.Call].Func) {
				times[s.Call]++
			}
		}
	}
	for _, of := range c.p.Of {
		for _, s := range c.p.Lists[of].Steps {
			if s.Kind == workload.Issue && c.p.Calls[s.Call].Func == coll.Send {
				times[s.Call]++
			}
		}
	}
	return times
}
