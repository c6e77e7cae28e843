package comm

import (
	"fmt"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/search/preset"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/tuning"
)

// Multicast says whether GPUs can use NVLink multicast (NVLS).
type Multicast uint8

// Multicast settings. Auto is on if every GPU is sm_90 or later behind an NVSwitch.
const (
	MulticastAuto Multicast = iota
	MulticastOn
	MulticastOff
)

// Params are the settings of all stages. New sets their Rules from Rules, and
// Search.NVLS and Search.CollNet from Multicast and Connect.CollNet.
type Params struct {
	// Rules are the release's, for all stages; New and FromSystems refuse nil.
	Rules        *rules.Ruleset
	Search       search.Params
	Connect      connect.Params
	Tuning       tuning.Params
	Plan         plan.Params
	Registration Registration
	Preset       preset.Settings // settings of RCCL's presets for known machines
	Access       topo.Access     // the access by which the Systems' paths were computed
	Multicast    Multicast
	// Given parses NCCL_GRAPH_FILE for one System: graphs name GPUs by device number, so every host reads its
	// own from the same text. nil: none.
	Given func(*topo.System) ([]*search.Graph, error)
}

// Comm is a communicator after NCCL's initialization: graphs, channels and cost model of all its ranks.
type Comm struct {
	*connect.Layout
	Model   *tuning.Model
	Params  Params
	Cluster *fabric.Cluster // nil if made FromSystems
	// Searched is rank 0's System with the link bandwidths that remain after NCCL's searches, see
	// search.AllAndAfter.
	Searched *topo.System
	// Preset is the preset of rank 0's machine, matched before the search.
	Preset *preset.Result
	// Multicast is the resolved Params.Multicast.
	Multicast bool
}

// Part is one System of a communicator: a host, a part of a host that reaches the rest only over the network,
// or a multi-host NVLink domain. Equal parts share their System: it is searched once.
type Part struct {
	System *topo.System
	First  int32 // global rank of the System's local rank 0
	Host   int32 // its host in the cluster
}

// New makes the communicator of all ranks of a cluster. p.Access must be the one that the cluster was built
// with. Errors as FromSystems.
func New(cl *fabric.Cluster, p Params) (*Comm, error) {
	parts := make([]Part, 0, cl.NHosts())
	for host := range cl.NHosts() {
		for _, s := range cl.Host(host).Systems {
			parts = append(parts, Part{System: s, First: int32(cl.Rank(host, 0)), Host: int32(host)})
		}
	}
	c, err := FromSystems(parts, p)
	if c != nil {
		c.Cluster = cl
	}
	return c, err
}

// FromSystems makes a communicator of parts that together hold every rank. Errors are those of the stages,
// wrapped with the name of the stage.
func FromSystems(parts []Part, p Params) (*Comm, error) {
	if err := p.Rules.Check("comm"); err != nil {
		return nil, err
	}
	if err := oneArch(parts, p.Rules); err != nil {
		return nil, err
	}
	p.Search.Rules, p.Connect.Rules, p.Tuning.Rules = p.Rules, p.Rules, p.Rules
	c := &Comm{Params: p, Multicast: multicast(parts, p.Multicast)}
	in := connect.Input{Multicast: c.Multicast, Access: p.Access, Domains: make([]connect.Domain, len(parts))}
	sets := map[variant]found{}
	hosts := hostsOf(parts)
	for i, part := range parts {
		h := hosts[i]
		key := variant{part.System, p.Rules.Search.PresetPlace(h.Index, h.Count)}
		set, ok := sets[key]
		if !ok {
			var err error
			if set, err = c.search(part, h); err != nil {
				return nil, fmt.Errorf("search graphs of host %d: %w", part.Host, err)
			}
			sets[key] = set
		}
		in.Domains[i] = connect.Domain{System: set.system, Graphs: set.set, First: part.First,
			Host:   part.Host,
			Preset: set.preset}
	}
	var err error
	if c.Layout, err = connect.Join(in, p.Connect); err != nil {
		return nil, err
	}
	if c.Model, err = tuning.New(c.tuningInput(), p.Tuning); err != nil {
		return nil, fmt.Errorf("compute the cost model: %w", err)
	}
	return c, nil
}

// variant identifies a System and the properties of its host that its graphs may depend on.
type variant struct {
	system *topo.System
	place  int
}

// found holds the graphs of one variant, and the System as a preset changes it.
type found struct {
	system *topo.System
	set    search.Set
	preset *preset.Result
}

// hostsOf returns for each part the index of its host and the number of hosts.
func hostsOf(parts []Part) []preset.Host {
	index, ranks := map[int32]int{}, map[int32]int{}
	total := 0
	for _, p := range parts {
		if _, ok := index[p.Host]; !ok {
			index[p.Host] = len(index)
		}
		n := len(p.System.Of(topo.GPU))
		ranks[p.Host] += n
		total += n
	}
	uneven := false
	for _, n := range ranks { //lint:sorted any difference will do
		uneven = uneven || n != ranks[parts[0].Host]
	}
	out := make([]preset.Host, len(parts))
	for i, p := range parts {
		out[i] = preset.Host{Index: index[p.Host], Count: len(index), Ranks: total, Uneven: uneven}
	}
	return out
}

// search finds the graphs of a System on first use of its variant.
func (c *Comm) search(part Part, h preset.Host) (found, error) {
	p := c.Params.Search
	p.NVLS = connect.NVLSSupported(part.System, c.Multicast, c.Params.Connect)
	p.CollNet = c.Params.Connect.CollNet
	if c.Params.Given != nil {
		var err error
		if p.Given, err = c.Params.Given(part.System); err != nil {
			return found{}, err
		}
	}
	h.Settings = c.Params.Preset
	known := preset.Of(part.System, h)
	sys := known.System(part.System)
	set, after, err := search.AllAndAfter(sys, known.Params(sys, p))
	if c.Searched == nil {
		c.Searched, c.Preset = after, known
	}
	return found{sys, set, known}, err
}

// multicast resolves MulticastAuto.
func multicast(parts []Part, m Multicast) bool {
	if m != MulticastAuto {
		return m == MulticastOn
	}
	var last *topo.System
	for _, p := range parts {
		if p.System == last {
			continue
		}
		last = p.System
		if len(p.System.Of(topo.NVS)) == 0 {
			return false
		}
		for _, id := range p.System.Of(topo.GPU) {
			if p.System.Nodes[id].GPU.SM < 90 {
				return false
			}
		}
	}
	return len(parts) > 0
}

// tuningInput returns the inputs of the cost model.
func (c *Comm) tuningInput() tuning.Input {
	in := tuning.Input{
		NRanks: c.NRanks, NNodes: c.NNodes, MaxLocalRanks: c.MaxLocalRanks, LocalRanks: len(c.NodeRanks[0]),
		Graphs: c.Final, TreePattern: c.TreePattern, Channels: c.NChannels, NVLSChannels: c.NVLSChannels,
		MinSM: c.MinSM, MaxSM: c.MaxSM, CPUArch: c.CPUArch, CPUVendor: c.CPUVendor,
		NVSwitch: len(c.Domains[0].System.Of(topo.NVS)) > 0, NVLS: c.NVLSSupport,
	}
	if c.Params.Rules.Connect.NVLSApart {
		in.Channels, in.Raised = c.CollChannels, c.NChannels
	}
	switch {
	case c.NVLSSupport:
	case !in.NVSwitch:
		in.NVLSOff = tuning.Reason{Rule: "NVLS needs an NVSwitch", At: rules.AtNVLSSwitch}
	case c.MinSM < 90:
		in.NVLSOff = tuning.Reason{Rule: fmt.Sprintf("NVLS needs sm_90 and a GPU is sm_%d", c.MinSM),
			At: rules.AtNVLSSwitch}
	case !c.Multicast:
		in.NVLSOff = tuning.Reason{Rule: "NVLink multicast is off", Setting: "write --multicast on",
			At: rules.AtNVLSMulticast}
	case c.Params.Connect.NVLSEnable.Or(2) == 0:
		in.NVLSOff = tuning.Reason{Rule: "NVLS is switched off", Setting: "set NCCL_NVLS_ENABLE=2",
			At: rules.AtNVLSEnable}
	default:
		in.NVLSOff = c.noNVLSGraph()
	}
	in.AMD = c.amdInput()
	in.CollNet.Enabled = c.CollNet.Enabled
	if c.CollNet.Enabled {
		// the assumed plugin is NVIDIA's, which also gathers and scatters
		in.CollNet.Heads, in.CollNet.DirectHeads = len(c.CollNet.NetHeads[0]), len(c.CollNet.Heads[0])
		in.CollNet.ChainHeadless = c.ChainHeadless()
		in.CollNet.AllGather, in.CollNet.ReduceScatter, in.CollNet.Reduces = true, true, tuning.SHARPReduces
	} else {
		in.CollNet.Off = tuning.Reason{Rule: c.CollNet.Off, At: c.CollNet.OffAt}
		if !c.Params.Connect.CollNet {
			in.CollNet.Off.Setting = "set NCCL_COLLNET_ENABLE=1 with such a plugin (SIMCCL_COLLNET=1 " +
				"simulates one)"
		}
	}
	return in
}

// Choose returns NCCL's choice of algorithm, protocol and channels for one operation that is a group of its
// own.
func (c *Comm) Choose(op tuning.Op) (tuning.Choice, error) { return c.Model.Choose(op) }

// op returns the operation in the form that the cost model takes.
func (o Op) op() tuning.Op {
	return tuning.Op{Func: o.Func, Count: o.Count, Type: o.Type, RedOp: o.RedOp}
}

// Op is one operation that a user calls on all ranks, with the state of its buffers.
type Op struct {
	Func    coll.Func
	Count   int64 // NCCL's count, see tuning.Op
	Type    coll.DataType
	RedOp   coll.RedOp
	Root    int32
	Peer    int32 // of coll.Send, a message from Root: the receiver
	InPlace bool
	Buffers Buffers
	// Graph: the operation is captured in a CUDA graph.
	Graph bool
	// CTAPolicy is the communicator's own policy: 0 default, 1 efficiency, 2 no blocks. NCCL_CTA_POLICY
	// overrides it.
	CTAPolicy int
	// Misalign is copied to plan.Request.
	Misalign int64
	// Pairs is copied to plan.Request.
	Pairs *coll.Pairs
}

// Request chooses algorithm and protocol for an operation and returns the request to plan it. Nothing is
// chosen, and the Choice is zero, for one rank, where NCCL only copies, and for send/recv operations.
func (c *Comm) Request(o Op) (plan.Request, tuning.Choice, error) {
	r := plan.Request{Func: o.Func, Count: o.Count, Type: o.Type, Op: o.RedOp, Root: o.Root, Peer: o.Peer,
		InPlace: o.InPlace, Misalign: o.Misalign, Pairs: o.Pairs,
		SlowNVLS: c.slowNVLS(), Params: c.Params.Plan}
	if c.NRanks == 1 || o.Count == 0 {
		return r, tuning.Choice{}, nil
	}
	if o.Func.IsP2P() {
		if o.Pairs == nil && c.Model.TakenByDDA(o.op()) {
			r.Way, r.Otherwise = (&tuning.Choice{DDA: true}).Instead()
		}
		return r, tuning.Choice{}, c.register(&r, &o)
	}
	op := o.op()
	op.Registered = c.registered(&o) || o.Graph && !c.Params.Registration.GraphOff
	choice, err := c.Choose(op)
	if err != nil {
		return r, tuning.Choice{}, err
	}
	if c.Params.Tuning.Plugin == nil { // enqueue.cc:1949
		c.efficient(&o, &choice)
	}
	if c.bySends(&r, &choice) {
		return r, choice, nil
	}
	r = withChoice(r, choice)
	r.Way, r.Otherwise = choice.Instead()
	return r, choice, c.register(&r, &o)
}

// Plan chooses algorithm and protocol for an operation and plans it. Errors are those of the choice, or of
// build.Plan.
func (c *Comm) Plan(o Op) (*plan.Plan, tuning.Choice, error) {
	r, choice, err := c.Request(o)
	if err != nil {
		return nil, choice, err
	}
	p, err := build.Plan(c.Layout, r)
	return p, choice, err
}

// PlanAs plans an operation with a given algorithm and protocol, as NCCL_ALGO and NCCL_PROTO force them.
// Send/recv operations and a single rank have none to force.
func (c *Comm) PlanAs(o Op, a coll.Algorithm, p coll.Protocol) (*plan.Plan, tuning.Choice, error) {
	plain := o
	plain.Buffers = Plain
	r, _, err := c.Request(plain)
	if err != nil {
		return nil, tuning.Choice{}, err
	}
	choice := c.Model.Force(o.op(), a, p)
	r = withChoice(r, choice)
	if err := c.register(&r, &o); err != nil {
		return nil, choice, err
	}
	pl, err := build.Plan(c.Layout, r)
	return pl, choice, err
}

// Systems lists the topology of each NCCL node, in the form that a simulator takes; equal nodes share one
// System.
func (c *Comm) Systems() []*topo.System {
	out := make([]*topo.System, len(c.Domains))
	for n := range c.Domains {
		out[n] = c.Domains[n].System
	}
	return out
}

// withChoice copies the tuner's choice into a request.
func withChoice(r plan.Request, c tuning.Choice) plan.Request {
	r.Algo, r.Proto, r.Channels, r.Warps = c.Algo, c.Proto, c.MaxChannels, c.Warps
	return r
}
