package scenario

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/peer"
	"github.com/simccl/simccl/sim/netpreset"
)

// Operations of serving that are no collective of NCCL.
const (
	Dispatch = "ep_dispatch"
	Combine  = "ep_combine"
	KVCache  = "kv_transfer"
)

// Kernels of Workload.Kernel.
const (
	SymmetricKernel = "symmetric"
	VLLMKernel      = peer.VLLM // its choice between one shot, two shots and NCCL
	NCCLKernel      = "nccl"
)

// OfServing reports whether an operation is one of serving, which has no table of sizes.
func OfServing(op string) bool { return op == Dispatch || op == Combine || op == KVCache }

// Serving is what an operation of serving moves.
type Serving struct {
	// Experts of all ranks together, TopK of them for a token of Hidden values; Tokens of each
	// rank, of kv_transfer those of the request. SMs are the kernel's blocks; 0: its default.
	Experts int `json:"experts,omitempty"`
	TopK    int `json:"topK,omitempty"`
	Hidden  int `json:"hidden,omitempty"`
	Tokens  int `json:"tokens,omitempty"`
	SMs     int `json:"sms,omitempty"`
	// Groups divide the experts in order; a token's are of TopKGroups of them (DeepSeek-V3: 8 and 4). 0: any.
	Groups     int `json:"groups,omitempty"`
	TopKGroups int `json:"topKGroups,omitempty"`
	// FromTP and ToTP are the degrees of tensor parallelism of prefill and decode, KVBytes
	// keys and values of a token in one of Layers, of all heads, BlockTokens a block's tokens.
	FromTP      int `json:"fromTP,omitempty"`
	ToTP        int `json:"toTP,omitempty"`
	Layers      int `json:"layers,omitempty"`
	BlockTokens int `json:"blockTokens,omitempty"`
	KVBytes     int `json:"kvBytes,omitempty"`
}

// kernel checks which kernel is named, and what only operations of serving have.
func (c *checks) kernel(s *Spec) {
	w := &s.Workload
	switch {
	case w.Op == Dispatch || w.Op == Combine:
		c.word("workload.kernel", w.Kernel, append(peer.ExpertKernels(), NCCLKernel)...)
	case w.Op == KVCache:
		c.word("workload.kernel", w.Kernel, peer.CacheWrite, peer.CacheRead)
	case w.Op == coll.AllReduce.TestName():
		c.word("workload.kernel", w.Kernel, append(peer.AllReduceKernels(), SymmetricKernel)...)
	case w.Kernel != "":
		c.add("workload.kernel", w.Kernel,
			"only all_reduce and operations of serving have other kernels than "+
				"NCCL's", "leave it out")
	}
	if !OfServing(w.Op) && w.Serving != (Serving{}) {
		c.add("workload.serving", "", "only "+Dispatch+", "+Combine+" and "+KVCache+" have these",
			"leave them out")
	}
	if w.Kernel == "" && !OfServing(w.Op) {
		return
	}
	for _, no := range []struct {
		path string
		bad  bool
	}{{"workload.group", w.Group > 1}, {"workload.device", w.Device > 0}, {"engine.rivals", s.Engine.Rivals},
		{"machine.split", s.Machine.Split != ""}, {"engine.blocking", s.Engine.Blocking != 0},
		{"engine.cpuTime", s.Engine.CPUTime}, {"outputs.ops", s.Outputs.Ops != "" && w.Kernel != NCCLKernel},
		{"network.model", s.Network.Model != "" && s.Network.Model != netpreset.Models()[0] &&
			w.Kernel != NCCLKernel}} {
		if no.bad && w.Kernel != SymmetricKernel {
			c.add(no.path, "", "not simulated of kernels that are not NCCL's", "leave one of them out")
		}
	}
	if s.Engine.Fidelity == "alpha" {
		c.add("engine.fidelity", "alpha", "NCCL has no formula for this kernel", "write step")
	}
}

// serving checks what an operation of serving needs.
func (c *checks) serving(w *Workload) {
	need := func(member string, v, most int) {
		if v < 1 || v > most {
			c.add("workload.serving."+member, fmt.Sprint(v), fmt.Sprintf("%s needs a number from 1 to %d",
				w.Op,
				most), "")
		}
	}
	s := &w.Serving
	need("tokens", s.Tokens, 1<<24)
	if w.Op == KVCache {
		need("fromTP", s.FromTP, 1<<10)
		need("toTP", s.ToTP, 1<<10)
		need("layers", s.Layers, 1<<16)
		need("blockTokens", s.BlockTokens, 1<<24)
		need("kvBytes", s.KVBytes, 1<<30)
		return
	}
	need("experts", s.Experts, 1<<16)
	need("topK", s.TopK, 1<<10)
	need("hidden", s.Hidden, 1<<20)
	if s.SMs != 0 {
		need("sms", s.SMs, 1<<10)
	}
	if s.Groups != 0 || s.TopKGroups != 0 {
		need("groups", s.Groups, 1<<16)
		need("topKGroups", s.TopKGroups, 1<<16)
	}
	if _, err := w.element(); err != nil {
		c.errs = append(c.errs, err)
	}
}

// element is how many bytes a value has that moves: FP8 in dispatch, BF16 in combine, unless
// the types say it.
func (w *Workload) element() (int64, error) {
	if len(w.Types) == 0 {
		if w.Op == Dispatch {
			return 1, nil
		}
		return 2, nil
	}
	if w.fp4() {
		return 0, nil
	}
	types, err := w.AllTypes()
	if err != nil || len(types) != 1 || types[0].Size() > 2 {
		return 0, &FieldError{Path: "workload.types", Value: fmt.Sprint(w.Types),
			Problem: "tokens have values of one " +
				"or two bytes, or are nvfp4", Hint: "write f8e4m3, bfloat16 or nvfp4"}
	}
	return int64(types[0].Size()), nil
}

// fp4 reports whether tokens move as NVFP4, which is no type of NCCL's.
func (w *Workload) fp4() bool { return len(w.Types) == 1 && w.Types[0] == "nvfp4" }

// Served is what an operation of serving came to.
type Served struct {
	Op     string `json:"kind"`
	Kernel string `json:"kernel"`
	Ranks  int    `json:"ranks"`
	Nodes  int    `json:"nodes"`
	Blocks int    `json:"sms,omitempty"`
	// Us is the time of one operation in microseconds.
	Us float64 `json:"us"`
	// Bytes are what the busiest rank sends, its own part included; Remote those that go
	// between nodes.
	Bytes  int64 `json:"bytesPerRank"`
	Remote int64 `json:"remoteBytesPerRank"`
	// GBps is Bytes over time, of kv_transfer those of all ranks.
	GBps float64 `json:"GBps"`
	// Limit is the fullest link, Use the share of the time that its bytes need.
	Limit string  `json:"limitingLink"`
	Use   float64 `json:"limitingUse"`
	// Proven: every rank ends with what it should.
	Proven  bool     `json:"proven"`
	Margin  float64  `json:"margin"` // relative
	Assumed []string `json:"notes"`
}

// Serve simulates a Spec whose operation is one of serving.
func Serve(ctx context.Context, spec Spec, opt Options) (*Served, error) {
	if len(spec.Grid) > 0 {
		return nil, ErrGrid
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	site, err := Load(&spec, opt)
	if err != nil {
		return nil, err
	}
	return ServeOn(ctx, site, spec, opt)
}

// ServeOn is Serve on a machine that is already loaded, as RunOn.
func ServeOn(ctx context.Context, site *Site, spec Spec, opt Options) (*Served, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if spec.Workload.Kernel == NCCLKernel {
		return site.byNCCL(ctx, spec, opt)
	}
	p, err := site.servingPlan(&spec)
	if err != nil {
		return nil, err
	}
	out := &Served{Op: p.Op, Kernel: p.Kernel, Ranks: p.Ranks, Nodes: site.Comm.NNodes, Blocks: p.Blocks,
		Assumed: slices.Clone(p.Assumed)}
	if !spec.Engine.NoProof {
		if err := p.Check(); err != nil {
			return nil, err
		}
		out.Proven = true
	}
	r := &Running{Spec: spec, Site: site, opt: opt}
	x, err := r.executor(nil)
	if err != nil {
		return nil, err
	}
	res, err := x.Peer(ctx, p)
	if err != nil {
		return nil, err
	}
	out.sum(p, &res, site.Comm.NodeOf)
	return out, nil
}

func (m *Site) servingPlan(spec *Spec) (*peer.Plan, error) {
	w := &spec.Workload
	s, n := &w.Serving, m.Comm.NRanks
	if w.Op == KVCache {
		if s.FromTP+s.ToTP > n {
			return nil, &FieldError{Path: "workload.serving.toTP", Value: fmt.Sprint(s.ToTP),
				Problem: fmt.Sprintf(
					"%d and %d ranks are more than the machine's %d", s.FromTP, s.ToTP, n), Hint: "add nodes"}
		}
		return (&peer.Cache{From: s.FromTP, To: s.ToTP, Layers: int64(s.Layers), Tokens: int64(s.Tokens),
			BlockTokens: int64(s.BlockTokens), Bytes: int64(s.KVBytes),
			Read: w.Kernel == peer.CacheRead}).Plan()
	}
	element, err := w.element()
	if err != nil {
		return nil, err
	}
	return (&peer.Experts{Kernel: cmp.Or(w.Kernel, peer.DeepEP), Combine: w.Op == Combine,
		Experts: int64(s.Experts), TopK: int64(s.TopK), Hidden: int64(s.Hidden), Tokens: int64(s.Tokens),
		Groups: int64(s.Groups), TopKGroups: int64(s.TopKGroups),
		Element: element, FP4: w.fp4(), SMs: s.SMs, GPUSMs: int(m.Class().Share.SMs),
		NodeOf: m.Comm.NodeOf}).Plan()
}

// sum adds up what a plan's operation came to.
func (o *Served) sum(p *peer.Plan, res *exec.Result, nodeOf []int32) {
	sent, remote := make([]int64, p.Ranks), make([]int64, p.Ranks)
	total := int64(0)
	for i := range p.Phases {
		for _, mv := range p.Phases[i].Moves {
			bytes := p.Parts[mv.To.Part].Bytes
			if len(mv.Sources) > 1 && mv.Way != peer.Write { // a sum within a rank
				continue
			}
			by := mv.Sources[0].Rank
			sent[by] += bytes
			total += bytes
			if nodeOf[by] != nodeOf[mv.To.Rank] {
				remote[by] += bytes
			}
		}
	}
	o.Us, o.Bytes, o.Remote = res.Elapsed.Micros(), slices.Max(sent), slices.Max(remote)
	if o.GBps = float64(o.Bytes) / (o.Us * 1e3); p.Op == KVCache {
		o.GBps = float64(total) / (o.Us * 1e3)
	}
	if l, ok := Limiting(res.Links); ok {
		o.Limit, o.Use = l.Name, l.Use(res.Elapsed)
	}
	o.Margin = res.Account.Margin
	o.Assumed = append(o.Assumed, res.Account.Note)
}

// byNCCL simulates a dispatch or a combine as NCCL's sends and receives: an alltoall of the
// bytes of every token for each rank of its experts.
func (m *Site) byNCCL(ctx context.Context, spec Spec, opt Options) (*Served, error) {
	own := spec.Clone()
	own.Workload.Kernel = ""
	p, err := m.servingPlan(&own)
	if err != nil {
		return nil, err
	}
	n := p.Ranks
	counts := make([][]int64, n)
	for i := range counts {
		counts[i] = make([]int64, n)
	}
	var most int64
	for i := range p.Phases {
		for _, mv := range p.Phases[i].Moves {
			if mv.Way == peer.Store { // the last hop has each pair once
				src, dst := p.Pair(&mv)
				counts[src][dst] = p.Parts[mv.Sources[0].Part].Bytes
			}
		}
	}
	for _, row := range counts {
		sum := int64(0)
		for _, b := range row {
			sum += b
		}
		most = max(most, sum)
	}
	own.Workload = Workload{Op: coll.AllToAllV, Counts: counts, Types: []string{coll.Int8.TestName()}}
	res, err := Run(ctx, own, opt)
	if err != nil {
		return nil, err
	}
	row := &res.Rows[0]
	return &Served{Op: spec.Workload.Op, Kernel: NCCLKernel, Ranks: n, Nodes: m.Comm.NNodes,
		Us: row.Out.Time.Micros(), Bytes: most, GBps: float64(most) / (row.Out.Time.Micros() * 1e3),
		Limit: row.Facts.Limit, Use: row.Facts.Use, Proven: row.Out.Checked, Margin: row.Facts.Margin,
		Assumed: append(slices.Clone(p.Assumed),
			"an alltoall of unequal parts by NCCL's sends and receives; "+
				"tokens are sorted before and after it, which is not in the time")}, nil
}

// peers plans an operation by a kernel over peers' memory, which the workload names or RCCL takes (DDA); ok
// is false where neither does, or the workload's choice is NCCL.
func (r *Running) peers(op comm.Op) (p *peer.Plan, ok bool, err error) {
	kernel, s := r.Spec.Workload.Kernel, r.Site.Comm.Symmetric()
	if kernel == "" && !r.grouped() {
		p, err := r.Site.Comm.DDA(op)
		return p, p != nil, err
	}
	if kernel == "" || kernel == SymmetricKernel {
		return nil, false, nil
	}
	p, err = peer.Chosen(kernel, r.Site.Comm.NRanks, op.Count, op.Type, op.RedOp,
		peer.Reach{Peers: s.P2P && s.Nodes == 1, NVLink: s.DirectNVLink, Multicast: s.NVLS})
	return p, p != nil, err
}

// noSymmetric says why NCCL has no symmetric kernel for an operation that wants one.
func (r *Running) noSymmetric(op comm.Op) error {
	why := "NCCL has none for this reduction or type"
	if ok, no := r.Site.Comm.Symmetric().Supported(); !ok {
		why = no
	}
	return &plan.UnsupportedError{What: op.Func.TestName() + " by kernel " + SymmetricKernel, Why: why}
}

// served simulates an all_reduce over peers' memory.
func (r *Running) served(ctx context.Context, o Outcome) (Outcome, error) {
	x, err := r.executor(nil)
	if err != nil {
		return Outcome{}, err
	}
	o.Result, err = x.Peer(ctx, o.Peer)
	return o, err
}

// peerBytes are those of all parts of a plan.
func peerBytes(p *peer.Plan) (bytes int64) {
	for i := range p.Parts {
		bytes += p.Parts[i].Bytes
	}
	return bytes
}
