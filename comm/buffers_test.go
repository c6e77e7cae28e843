package comm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/ruletest"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/plan/sym"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/units"
)

// Registered buffers change channels and where data goes, by algorithm and protocol
// (register/coll_reg.cc).
func TestRegisteredBuffers(t *testing.T) {
	ring := make1(t, comm.Params{Multicast: comm.MulticastOff}, member{"dgx-h100", 1})
	nvls := make1(t, comm.Params{Multicast: comm.MulticastOn}, member{"dgx-h100", 1})
	two := make1(t, comm.Params{Multicast: comm.MulticastOn}, member{"dgx-h100", 2})
	op := func(f coll.Func, bytes int64, inPlace bool) comm.Op {
		return comm.Op{Func: f, Count: bytes / 4, Type: coll.Float32, InPlace: inPlace,
			Buffers: comm.Registered}
	}
	for _, tt := range []struct {
		name     string
		c        *comm.Comm
		op       comm.Op
		direct   bool
		channels int
	}{
		{"Ring Simple AllGather has 16 channels in place of 24", ring, op(coll.AllGather, 64<<20, false),
			true, 16},
		{"Ring Simple Broadcast too", ring, op(coll.Broadcast, 256<<20, false), true, 16},
		{"LL has no registered buffers", ring, op(coll.Broadcast, 1<<10, false), false, 1},
		{"AllReduce in place has none", ring, op(coll.AllReduce, 1<<30, true), false, 24},
		{"AllReduce out of place has them", ring, op(coll.AllReduce, 1<<30, false), true, 16},
		{"ReduceScatter has none", ring, op(coll.ReduceScatter, 256<<20, false), false, 24},
		{"Reduce has none", ring, op(coll.Reduce, 1<<30, false), false, 24},
		{"NVLS AllReduce has 4 channels of 8 heads", nvls, op(coll.AllReduce, 256<<20, false), true, 4},
		{"NVLSTree has 6", two, op(coll.AllReduce, 1<<30, false), true, 6},
		{"alltoall keeps its channels", ring, op(coll.AllToAll, 1<<20, false), true, 0},
	} {
		r, ch, err := tt.c.Request(tt.op)
		if err != nil || r.Direct != tt.direct || r.Channels != tt.channels {
			t.Errorf("%s: direct %v, %d channels (%v %v), %v", tt.name, r.Direct, r.Channels, ch.Algo,
				ch.Proto, err)
		}
		p, _, err := tt.c.Plan(tt.op)
		if err == nil && tt.op.Count < 1<<24 {
			err = check.Plan(p)
		}
		if err != nil {
			t.Errorf("%s: plan: %v", tt.name, err)
		}
	}
}

// TestRegisteredChannelsOfReleases: channels of NVLS over registered buffers for AllReduce and
// ReduceScatter, and which releases register peers (2.22.3 enqueue.cc:279, 2.25.1
// register/coll_reg.cc:80, 2.27.3 and 2.30.7 transport/nvls.cc).
func TestRegisteredChannelsOfReleases(t *testing.T) {
	in := func(f coll.Func, sm, nodes, heads int, net float32) rules.NVLSRegistration {
		return rules.NVLSRegistration{Func: f, MinSM: sm, Nodes: nodes, Heads: heads, NetBW: net}
	}
	ar, rs := coll.AllReduce, coll.ReduceScatter
	for release, want := range map[string]string{
		"2.21.5": "4 5 4 6 6 false", "2.22.3": "4 5 4 6 6 false", "2.23.4": "4 5 4 6 6 true",
		"2.24.3": "4 5 4 6 6 true", "2.25.1": "4 5 8 7 7 true", "2.26.6": "4 5 8 7 7 true",
		"2.27.3": "8 10 16 7 7 true", "2.30.3": "8 10 16 7 7 true", "2.30.7": "8 10 16 7 10 true",
	} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		n := r.Plan.NVLSRegistered
		got := fmt.Sprint(n(in(ar, 90, 1, 4, 0)), n(in(rs, 90, 1, 4, 0)), n(in(ar, 100, 1, 4, 0)),
			n(in(ar, 100, 2, 8, 48)), n(in(ar, 100, 2, 8, 96)), r.Plan.RegistersP2P)
		if got != want {
			t.Errorf("%s: %s, want %s", release, got, want)
		}
	}
	op := comm.Op{Func: coll.AllToAll, Count: 1 << 20, Type: coll.Float32, Buffers: comm.Registered}
	for release, want := range map[string]bool{"2.22.3": false, "2.23.4": true} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, nil, member{"dgx-h100", 1})
		if err != nil {
			t.Fatal(err)
		}
		if q, _, err := c.Request(op); err != nil || q.Direct != want {
			t.Errorf("%s: direct %v (%v), want %v", release, q.Direct, err, want)
		}
	}
}

// TestCopiesBetweenNodes: with NCCL_CTA_POLICY=2 and nets that GPUs drive, 2.30.7 copies between
// nodes in place of kernels, which is refused by name (2.30.7 ce_coll.cc:719, enqueue.cc:3054).
func TestCopiesBetweenNodes(t *testing.T) {
	for release, want := range map[string]string{"2.30.3": "", "2.30.7": "copy engines within the nodes"} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, func(p *comm.Params) { p.Registration.GIN = true }, member{"dgx-h100", 2})
		if err != nil {
			t.Fatal(err)
		}
		op := comm.Op{Func: coll.AllToAll, Count: 1 << 20, Type: coll.Float32, Buffers: comm.Windows,
			CTAPolicy: 2}
		_, _, err = c.SymmetricKernel(op)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", release, err, want)
		}
	}
}

// TestNodesOfOneGPUOverGIN: before 2.30.7 a node of one GPU counts as not joined by NVLink, so that
// no kernel joins such nodes (2.30.4 graph/paths.cc:1019, 2.30.7 :1070).
func TestNodesOfOneGPUOverGIN(t *testing.T) {
	for release, want := range map[string]bool{"2.29.7": false, "2.30.3": false, "2.30.7": true} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ruled(t, r, nil, member{"gh200", 2})
		if err != nil {
			t.Fatal(err)
		}
		task := sym.Task{Func: coll.ReduceScatter, Type: coll.Float32, Count: 1 << 20, Windows: sym.Both}
		if got := len(c.Symmetric().Between(task)) > 0; got != want {
			t.Errorf("%s: %v, want %v", release, got, want)
		}
	}
}

// What of registration is not modelled is refused by type, and NCCL_LOCAL_REGISTER=0
// leaves it out.
func TestRegistrationBetweenNodes(t *testing.T) {
	op := comm.Op{Func: coll.Broadcast, Count: 1 << 28, Type: coll.Float32, Buffers: comm.Registered}
	c := make1(t, comm.Params{Multicast: comm.MulticastOff}, member{"dgx-h100", 2})
	if _, _, err := c.Request(op); !errors.Is(err, plan.ErrUnsupported) {
		t.Errorf("broadcast between nodes: %v", err)
	}
	c.Params.Registration.LocalOff = true
	if r, _, err := c.Request(op); err != nil || r.Direct {
		t.Errorf("NCCL_LOCAL_REGISTER=0: %v, direct %v", err, r.Direct)
	}
	op.Graph = true // which registers them after all
	if _, _, err := c.Request(op); !errors.Is(err, plan.ErrUnsupported) {
		t.Errorf("in a graph: %v", err)
	}
	c.Params.Registration.GraphOff = true
	if _, _, err := c.Request(op); err != nil {
		t.Errorf("NCCL_GRAPH_REGISTER=0: %v", err)
	}
}

// NCCL_CTA_POLICY=1 takes NVLS for registered AllGathers and ReduceScatters where it
// needs no more channels (enqueue.cc:1949).
func TestEfficientPolicy(t *testing.T) {
	c := make1(t, comm.Params{Multicast: comm.MulticastOn}, member{"dgx-h100", 1})
	op := comm.Op{Func: coll.AllGather, Count: 64 << 20, Type: coll.Float32, Buffers: comm.Registered}
	choice := func() string {
		r, _, err := c.Request(op)
		if err != nil {
			return err.Error()
		}
		return r.Algo.String()
	}
	if got := choice(); got != "Ring" {
		t.Errorf("policy 0: %s", got)
	}
	op.CTAPolicy = 1
	if got := choice(); got != "NVLS" {
		t.Errorf("policy 1: %s", got)
	}
	// the variable outranks the communicator's own, and what it does not know is 0
	c.Params.Registration.SetPolicy(7)
	if got := choice(); got != "Ring" {
		t.Errorf("NCCL_CTA_POLICY=7: %s", got)
	}
	c.Params.Registration = comm.Registration{}
	c.Params.Tuning.Algo = units.Some("Ring,NVLS")
	if got := choice(); got != "Ring" {
		t.Errorf("NCCL_ALGO: %s", got)
	}
}

// Who has symmetric kernels: machines whose GPUs reach each other.
func TestSymmetricMachines(t *testing.T) {
	for name, want := range map[string]sym.Comm{
		"dgx-h100": {Ranks: 8, Nodes: 1, SM: 90, NVLS: true, P2P: true, DirectP2P: true,
			DirectNVLink: true, PerNode: 8},
		"pcie-l40s-8": {Ranks: 8, Nodes: 1, SM: 89, P2P: true, PerNode: 8},
		"dgx-1v":      {Ranks: 8, Nodes: 1, SM: 70, P2P: true, PerNode: 8},
	} {
		c := make1(t, comm.Params{}, member{name, 1})
		got := *c.Symmetric()
		got.Rules = nil
		if got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		l, ok, err := c.SymmetricKernel(comm.Op{Func: coll.AllGather, Count: 1 << 20, Type: coll.Float32,
			Buffers: comm.Windows})
		if err != nil || !ok || l.Check() != nil {
			t.Errorf("%s: %v %v", name, ok, err)
		}
		if _, ok, _ := c.SymmetricKernel(comm.Op{Func: coll.AllGather, Count: 1 << 20, Type: coll.Float32,
			Buffers: comm.Registered}); ok {
			t.Errorf("%s: a symmetric kernel without windows", name)
		}
	}
}

// Copy engines, by operation, policy and release (enqueue.cc:2580).
func TestCopyEngines(t *testing.T) {
	c := make1(t, comm.Params{}, member{"dgx-b200", 1})
	op := comm.Op{Func: coll.AllGather, Count: 9 << 20, Type: coll.Float32, Buffers: comm.Windows,
		CTAPolicy: 2}
	if p, ok := c.CopyEngines(op); !ok || p.Peers != 7 || !p.Own || p.Barriers != 2 || !p.Batch ||
		p.Each != 36<<20 {
		t.Errorf("%+v %v", p, ok)
	}
	op.InPlace, op.Graph = true, true
	if p, ok := c.CopyEngines(op); !ok || p.Own || p.Batch {
		t.Errorf("in place, in a graph: %+v %v", p, ok)
	}
	op.CTAPolicy = 0
	if _, ok := c.CopyEngines(op); ok {
		t.Error("policy 0")
	}
	c.Params.Rules, _ = rules.For("2.29.7") // large AllGathers of sm_100 in any case
	if _, ok := c.CopyEngines(op); !ok {
		t.Error("2.29.7, 9 Mi elements")
	}
	op.Count = 8 << 20
	if _, ok := c.CopyEngines(op); ok {
		t.Error("2.29.7, 8 Mi elements")
	}
	op.CTAPolicy, op.Func = 2, coll.AllReduce
	if _, ok := c.CopyEngines(op); ok {
		t.Error("AllReduce")
	}
	c.Params.Rules, _ = rules.For("2.27.7")
	if _, ok := c.CopyEngines(op); ok {
		t.Error("2.27.7")
	}
}

// TestKernelsOverGIN: which kernels over networking that GPUs initiate each release has for
// symmetric windows between nodes, and that they are refused rather than simulated as others.
func TestKernelsOverGIN(t *testing.T) {
	for release, want := range map[string]string{"2.28.9": "[] [] []",
		"2.29.2": "[AllGather_GinHier_MCRing] [] []",
		"2.29.7": "[AllGather_RailRing_LsaSTMC] [ReduceScatter_RailA2A_LsaLD " +
			"ReduceScatter_RailA2A_LsaLDMC] []",
		"2.30.7": "[AllGather_RailRing_LsaSTMC] [ReduceScatter_RailA2A_LsaLD " +
			"ReduceScatter_RailA2A_LsaLDMC] []",
	} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter, coll.AllReduce} {
			op := comm.Op{Func: f, Count: 1 << 20, Type: coll.Float32, Buffers: comm.Windows}
			for _, gin := range []bool{false, true} {
				c, err := ruled(t, r, func(p *comm.Params) { p.Registration.GIN = gin },
					member{"dgx-h100", 2})
				if err != nil {
					t.Fatal(err)
				}
				kernels := c.Symmetric().Between(sym.Task{Func: f, Type: coll.Float32, Count: 1 << 20,
					Windows: sym.Both})
				_, ok, err := c.SymmetricKernel(op)
				if refused := errors.Is(err, plan.ErrUnsupported); ok ||
					refused != (gin && len(kernels) > 0) ||
					(c.GINWarning(op) != "") != (!gin && len(kernels) > 0) {
					t.Errorf("%s: %v with GIN %v: %v, %v, %q", release, f, gin, ok, err, c.GINWarning(op))
				}
				if gin {
					got = append(got, fmt.Sprint(kernels))
				}
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s, want %s", release, text, want)
		}
	}
}

// TestGINNeedsPhysicalNICs: up to 2.30.4 virtual NICs have no such networking, and without
// multicast no AllGather has a kernel (2.29.7 init.cc:1471, 2.30.7 init.cc:1669).
func TestGINNeedsPhysicalNICs(t *testing.T) {
	for release, want := range map[string]bool{"2.30.3": false, "2.30.7": true} {
		r, err := rules.For(release)
		if err != nil {
			t.Fatal(err)
		}
		c := sym.Comm{Rules: &r.Sym, Ranks: 16, Nodes: 2, PerNode: 8, SM: 90, P2P: true, DirectP2P: true,
			DirectNVLink: true, NVLS: true, FusedNICs: true}
		task := sym.Task{Func: coll.AllGather, Type: coll.Float32, Count: 1, Windows: sym.Both}
		if got := len(c.Between(task)) > 0; got != want {
			t.Errorf("%s: virtual NICs %v", release, got)
		}
		c.FusedNICs, c.NVLS = false, false
		if k := c.Between(task); len(k) > 0 {
			t.Errorf("%s: without multicast %v", release, k)
		}
	}
}

// TestGraphsRegisterForTuners: in a CUDA graph buffers count as registered for a tuner plugin, without
// ncclCommRegister (enqueue.cc:258), unless NCCL_GRAPH_REGISTER=0.
func TestGraphsRegisterForTuners(t *testing.T) {
	row := tuning.Row{Func: coll.AllReduce, Max: 1 << 40, Algo: coll.Ring, Proto: coll.LL, Channels: 3,
		Nodes: -1,
		Ranks: -1, Pipe: -1, Registered: 1}
	c := make1(t, comm.Params{Multicast: comm.MulticastOff,
		Tuning: tuning.Params{Plugin: &tuning.Plugin{Rows: []tuning.Row{row}, Channels: 1}}},
		member{"dgx-h100", 1})
	for _, x := range []struct{ graph, off, want bool }{
		{false, false, false}, {true, false, true}, {true, true, false}, {false, true, false},
	} {
		c.Params.Registration.GraphOff = x.off
		_, choice, err := c.Request(comm.Op{Func: coll.AllReduce, Count: 1 << 20, Type: coll.Float32,
			Graph: x.graph})
		if err != nil || choice.Steered != x.want {
			t.Errorf("graph %t, NCCL_GRAPH_REGISTER=0 %t: steered %t (%v), want %t", x.graph, x.off,
				choice.Steered,
				err, x.want)
		}
	}
}

// TestSymmetricOfNodes: networking that GPUs initiate needs its ports on every node, or SIMCCL_GIN=1, and one
// virtual NIC is enough for a node to have some, whichever of its NICs that is.
func TestSymmetricOfNodes(t *testing.T) {
	const fused = "cpu 0\n  switch 10\n    gpu 11\n      nvlink switch\n    card 12.0\n      net a\n" +
		"    card 12.1\n      net b\n" +
		"  switch 20\n    gpu 21\n      nvlink switch\n    card 22\n      net c\n" +
		"  switch 30\n    gpu 31\n      nvlink switch\n    card 32\n      net d\n"
	plain := strings.Replace(fused, "    card 12.1\n      net b\n", "", 1)
	for _, c := range []struct {
		host       string
		set        []string
		fused, gin bool
	}{{fused, nil, true, false}, {plain, nil, false, false}, {plain, []string{"SIMCCL_GIN=1"}, false, true}} {
		s := ruletest.Comm(t, c.host, 2, c.set...).Symmetric()
		if s.FusedNICs != c.fused || s.GIN != c.gin || s.PerNode != 3 {
			t.Errorf("%v: virtual NICs %t, GIN %t, %d a node", c.set, s.FusedNICs, s.GIN, s.PerNode)
		}
	}
}
