package comm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/tuning"
)

// Buffers says how an operation's buffers are registered.
type Buffers uint8

// Plain buffers are unknown to NCCL before the call; Registered ones were registered (ncclCommRegister) and
// allocated by ncclMemAlloc; Windows are symmetric windows (ncclCommWindowRegister). nccl-tests uses them
// with -R 0, 1 and 2.
const (
	Plain Buffers = iota
	Registered
	Windows
)

// Registration are the NCCL settings by which registered buffers and windows are used or ignored.
type Registration struct {
	Sym        sym.Params
	WindowsOff bool // NCCL_WIN_ENABLE=0, or NCCL_CUMEM_ENABLE=0
	LocalOff   bool // NCCL_LOCAL_REGISTER=0
	GraphOff   bool // NCCL_GRAPH_REGISTER=0
	PolicySet  bool // NCCL_CTA_POLICY is set and overrides the communicator's own policy
	GIN        bool // SIMCCL_GIN: GPUs drive the NICs, whatever the topology says
}

// SetPolicy sets NCCL_CTA_POLICY; NCCL treats values other than 1 and 2 as 0 (init.cc:1785).
func (r *Registration) SetPolicy(n int64) {
	r.Sym.CTAPolicy, r.PolicySet = 0, true
	if n == 1 || n == 2 {
		r.Sym.CTAPolicy = int(n)
	}
}

// Symmetric returns the properties of the communicator that symmetric kernels and copy engines depend on.
func (c *Comm) Symmetric() *sym.Comm {
	p := &c.Params.Registration
	s := &sym.Comm{Rules: &c.Params.Rules.Sym, Ranks: c.NRanks, Nodes: c.NNodes, SM: c.MinSM,
		NVLS: c.NVLSSupport,
		P2P:  true, DirectP2P: true, DirectNVLink: true, WindowsOff: p.WindowsOff, Params: p.Sym}
	s.Params.MinCTAs, s.Params.MaxCTAs = c.Params.Connect.MinCTAs, c.Params.Connect.MaxCTAs
	s.GIN = p.GIN || c.gin()
	s.DirectP2P, s.DirectNVLink = c.direct()
	for node := range c.Domains {
		s.PerNode = connect.GCD(s.PerNode, len(c.NodeRanks[node]))
		for _, n := range c.Domains[node].System.Of(topo.NET) {
			s.FusedNICs = s.FusedNICs || len(c.Domains[node].System.Nodes[n].Net.Fused) > 0
		}
	}
	return s
}

// gin reports whether every node has NICs that GPUs drive (GIN).
func (c *Comm) gin() bool {
	return !slices.ContainsFunc(c.Domains, func(d connect.Domain) bool {
		return len(d.System.Of(topo.GIN)) == 0
	})
}

// GINWarning names the kernels that NCCL would choose for an operation in symmetric windows if GPUs drove the
// NICs; "" if none.
func (c *Comm) GINWarning(o Op) string {
	s := c.Symmetric()
	s.Params.CTAPolicy = c.policy(&o)
	if o.Buffers != Windows || s.GIN {
		return ""
	}
	kernels := s.Between(o.task())
	if len(kernels) == 0 {
		return ""
	}
	return fmt.Sprintf("nets are supposed not to be driven by GPUs (GIN): with it NCCL %s takes %s for %s "+
		"in "+
		"symmetric windows; SIMCCL_GIN=1 supposes it", c.Params.Rules.Version(), sym.OneOf(kernels),
		o.Func.TestName())
}

// direct reports whether all GPUs of each node reach each other within NCCL_P2P_LEVEL
// without a GPU between them (transport.cc:79), and whether all do so by NVLink.
func (c *Comm) direct() (p2p, nvlink bool) {
	p2p, nvlink = true, true
	var last *topo.System
	for i := range c.Domains {
		s := c.Domains[i].System
		if s == last {
			continue
		}
		last = s
		gpus := s.Of(topo.GPU)
		nvlink = nvlink && (len(gpus) > 1 || c.Params.Rules.Sym.AloneNVLink)
		for _, a := range gpus {
			for _, b := range gpus {
				if a == b {
					continue
				}
				kind := s.Path(a, b).Kind
				p2p = p2p && s.PeerToPeer(a, b, &c.Params.Access) && kind != topo.PathNVB
				nvlink = nvlink && kind == topo.PathNVL
			}
		}
	}
	return p2p, nvlink
}

// task returns an operation in the form that package sym takes.
func (o *Op) task() sym.Task {
	t := sym.Task{Func: o.Func, Op: o.RedOp, Type: o.Type, Count: o.Count, InPlace: o.InPlace}
	if o.Buffers == Windows {
		t.Windows = sym.Both
	}
	return t
}

// SymmetricKernel returns the kernel over symmetric windows that NCCL chooses for an operation; ok is false
// if the buffers are in no window or NCCL has no such kernel.
func (c *Comm) SymmetricKernel(o Op) (l sym.Launch, ok bool, err error) {
	if o.Buffers != Windows || c.NRanks == 1 || o.Count == 0 {
		return l, false, nil
	}
	s := c.Symmetric()
	s.Params.CTAPolicy = c.policy(&o)
	if kernels := s.Between(o.task()); s.GIN && len(kernels) > 0 {
		out := "NCCL_SYM_GIN_KERNELS_ENABLE=0 leaves it out from 2.29.7 on, SIMCCL_GIN=0 in any release"
		if kernels[0] == sym.CopiesBetween {
			out = "NCCL_CTA_POLICY=0 or SIMCCL_GIN=0 leaves them out"
		}
		return l, false, &plan.UnsupportedError{What: o.Func.TestName() +
			" in symmetric windows between nodes",
			Why: fmt.Sprintf("NCCL %s takes %s, over networking that GPUs initiate, which is not simulated; "+
				"%s", c.Params.Rules.Version(), sym.OneOf(kernels), out)}
	}
	all, _, err := s.Launches([]sym.Task{o.task()}, nil)
	if err != nil || len(all) == 0 {
		return l, false, err
	}
	return all[0], true, nil
}

// Device returns the kernel of nccl-tests' device implementation impl of an operation, with the given number
// of blocks (0: its 16). Errors: of usage, if there is none (sym.Comm.Device).
func (c *Comm) Device(o Op, impl, blocks int) (sym.Launch, error) {
	if o.Buffers == Windows && c.NRanks > 1 && o.Count > 0 {
		if l, ok := c.Symmetric().Device(impl, cmp.Or(blocks, deviceBlocks), o.task()); ok {
			return l, nil
		}
	}
	return sym.Launch{}, fail.Usage("device implementation %d (-D): nccl-tests has it for sums of "+
		"all_reduce (1 to 4, 3 and 4 by NVLink multicast) and for alltoall (1 and 2), "+
		"in symmetric windows (-R 2), among GPUs of one NVLink domain; 3 and 4 of alltoall are of "+
		"networking "+
		"that GPUs initiate, from NCCL 2.28.7 on, and are not simulated", impl)
}

// deviceBlocks is the default number of blocks of nccl-tests' device implementations.
const deviceBlocks = 16

// CopyEngines returns the copies by which copy engines execute an operation; ok is false if they do not.
func (c *Comm) CopyEngines(o Op) (sym.Copies, bool) {
	if o.Buffers != Windows || c.NRanks == 1 || o.Count == 0 {
		return sym.Copies{}, false
	}
	s := c.Symmetric()
	s.Params.CTAPolicy = c.policy(&o)
	return s.Copies(o.task(), o.Root, o.InPlace, o.Graph)
}

// policy returns the CTA policy of an operation (init.cc:1745).
func (c *Comm) policy(o *Op) int {
	if r := &c.Params.Registration; r.PolicySet {
		return r.Sym.CTAPolicy
	}
	return o.CTAPolicy
}

// registered reports whether NCCL finds the operation's buffers registered (register/coll_reg.cc:120).
func (c *Comm) registered(o *Op) bool {
	p := &c.Params.Registration
	return o.Buffers != Plain && (!p.LocalOff || o.Graph && !p.GraphOff)
}

// register changes a request as NCCL does for registered buffers of a chosen algorithm: the sender stores
// directly into the receiver's buffer, without a copy out of the FIFO (register/coll_reg.cc:177-460). Errors:
// a *plan.UnsupportedError if the path of the buffers is not modelled.
func (c *Comm) register(r *plan.Request, o *Op) error {
	if !c.registered(o) {
		return nil
	}
	p2p := c.Params.Rules.Plan.RegistersP2P
	switch {
	case r.Algo.IsNVLS() && !o.Func.IsP2P():
		return c.registerNVLS(r, o)
	case !p2p && !r.Algo.IsCollNet():
		return nil
	case o.Func.IsP2P():
		return c.registerP2P(r, o)
	case r.Proto != coll.Simple, r.Algo == coll.PAT, o.Func == coll.ReduceScatter &&
		r.Algo != coll.CollNetDirect,
		r.Algo == coll.Ring && (o.Func == coll.Reduce || o.Func == coll.AllReduce && o.InPlace),
		r.Algo == coll.Tree && o.InPlace:
		return nil
	case r.Algo.IsCollNet():
		return unregistered(r,
			"a network that reduces from user memory is not simulated; NCCL_LOCAL_REGISTER=0 leaves it out")
	case c.NNodes > 1:
		return unregistered(r, "NICs that send from and into user memory are not simulated; "+
			"NCCL_LOCAL_REGISTER=0 leaves them out")
	}
	if p2p, _ := c.direct(); !p2p {
		return nil
	}
	r.Direct = true
	if 16 < r.Channels && r.Channels <= 24 { // coll_reg.cc:453
		r.Channels = 16
	}
	return nil
}

// registerNVLS lets the switch read and write the user's buffers, with fewer channels
// (register/coll_reg.cc:41-100, init.cc:922-951). An average of floats is excluded, as it is scaled first.
func (c *Comm) registerNVLS(r *plan.Request, o *Op) error {
	switch {
	case c.multiHost(), o.RedOp == coll.Avg && o.Func.Reduces() && o.Type.IsFloat():
		return nil
	case r.Algo == coll.NVLS && c.NNodes > 1:
		return unregistered(r,
			"a network that reduces from user memory is not simulated; NCCL_LOCAL_REGISTER=0 leaves it out")
	}
	r.Direct, r.Channels = true, c.nvlsRegistered(o.Func)
	return nil
}

// registerP2P lets sends and receives within a node go directly into the receiver's buffer. Between nodes
// NICs do so if no rank sends through another's NIC (PXN, enqueue.cc:857).
func (c *Comm) registerP2P(r *plan.Request, o *Op) error {
	if c.Params.Rules.Plan.GathersCaptured && (o.Func == coll.Gather || o.Func == coll.Scatter) && !o.Graph {
		return nil
	}
	if c.NNodes > 1 && !(c.IsAllNVLink && c.MaxLocalRanks > 1 && !c.Params.Access.PXNDisable) {
		return unregistered(r, "NICs that send from and into user memory are not simulated; "+
			"NCCL_LOCAL_REGISTER=0 leaves them out")
	}
	r.Direct = true
	return nil
}

func unregistered(r *plan.Request, why string) error {
	what := fmt.Sprintf("%v of registered buffers", r.Func)
	if !r.Func.IsP2P() {
		what += fmt.Sprintf(" with %v/%v", r.Algo, r.Proto)
	}
	return &plan.UnsupportedError{What: what, Why: why}
}

// efficient applies NCCL_CTA_POLICY=1 (efficiency) to registered buffers: NVLS replaces another algorithm if
// it needs no more channels (enqueue.cc:1949).
func (c *Comm) efficient(o *Op, ch *tuning.Choice) {
	p := &c.Params
	if c.policy(o) != 1 || !c.registered(o) && (!o.Graph || p.Registration.GraphOff) || p.Tuning.Algo.Set ||
		p.Tuning.Proto.Set ||
		o.Func != coll.AllGather && o.Func != coll.ReduceScatter || !c.NVLSSupport || c.NNodes > 1 &&
		!c.CollNet.Enabled || c.multiHost() {
		return
	}
	if n := c.nvlsRegistered(o.Func); n <= ch.MaxChannels {
		forced := c.Model.Force(o.op(), coll.NVLS, coll.Simple)
		forced.MaxChannels, forced.Times = n, ch.Times
		*ch = forced
	}
}

// multiHost reports whether an NVLink domain spans several hosts (comm->MNNVL).
func (c *Comm) multiHost() bool {
	for _, ranks := range c.NodeRanks {
		for _, r := range ranks {
			if c.HostOf[r] != c.HostOf[ranks[0]] {
				return true
			}
		}
	}
	return false
}

// nvlsRegistered returns the number of channels of NVLS with registered buffers.
func (c *Comm) nvlsRegistered(f coll.Func) int {
	n := c.Params.Rules.Plan.NVLSRegistered(rules.NVLSRegistration{Func: f, MinSM: c.MinSM, Nodes: c.NNodes,
		Heads: max(1, len(c.NVLSHeads)), NetBW: c.MinNetBW(),
		BusBW: float64(c.Model.Bandwidth[f][coll.NVLS][coll.Simple])})
	p := &c.Params.Connect
	return max(min(n, int(p.MaxCTAs.Or(64))), int(p.MinCTAs.Or(1)))
}
