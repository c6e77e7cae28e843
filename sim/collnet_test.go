package sim_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/topo/fabric"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
)

// reducing joins n equal nodes over a network that reduces.
func reducing(t testing.TB, name string, n int) *comm.Comm {
	t.Helper()
	c := site.Load(t, site.Nodes(golden.Root(t, "testdata", "topos", name), n), "NCCL_COLLNET_ENABLE=1",
		"SIMCCL_COLLNET=1").Comm
	if !c.CollNet.Enabled {
		t.Fatalf("%s: CollNet is off", name)
	}
	return c
}

var reducers = []coll.Algorithm{coll.NVLS, coll.CollNetDirect, coll.CollNetChain}

func reduction(a coll.Algorithm, bytes int64) plan.Request {
	return plan.Request{Func: coll.AllReduce, Algo: a, Proto: coll.Simple, Channels: 16, Warps: 20,
		Count: bytes / 4, Type: coll.Float32}
}

// idle is a class of machine whose kernels and proxy threads cost next to
// nothing: what is left is the network.
func idle(c *comm.Comm) *gpu.Class {
	class := sim.ClassOf(c.Systems()[0])
	class.Net.Turn, class.Net.Look, class.Net.Post, class.Net.Poll, class.Net.Flag = 0, 0, 0, 0, 0
	class.Simple.PerByte /= 1000
	class.Simple.Slice, class.Simple.PerThreads, class.Simple.SliceLocal, class.Simple.Drain,
		class.Simple.Fence = 0, 0, 0, 0, 0
	class.Simple.Latency, class.Simple.HBM, class.Simple.Multicast, class.Simple.Staged = 0, 0, 0, 0
	class.LinkEff, class.MulticastEff, class.PCIEff, class.Crowd = 10, 1, 10, 0
	return &class
}

func quiet(c *comm.Comm, cfg sim.Config) sim.Config {
	cfg.Systems, cfg.NoJitter, cfg.Launch = c.Systems(), true, sim.Graph
	if cfg.Kernels == 0 {
		cfg.Kernels = 1
	}
	return cfg
}

// Where nothing but the network takes time, S bytes more of a head's share take S
// over the rate at which a port's bytes are summed, whatever the number of nodes.
func TestReductionIsItsBytesOverThePort(t *testing.T) {
	const bytes, port = 256 << 20, 50 // GB/s: NDR
	for _, a := range reducers {
		var last units.Time
		for _, n := range []int{2, 5, 16} {
			c := reducing(t, "dgx-h100.xml", n)
			cfg := quiet(c, sim.Config{Class: idle(c)})
			r, p := simulatePlan(t, c, cfg, reduction(a, bytes), trace.Discard)
			twice, _ := simulatePlan(t, c, cfg, reduction(a, 2*bytes), trace.Discard)
			per := 0.0 // bytes of the fullest rail
			for _, g := range p.NetGroups() {
				if g.First == 0 {
					per = math.Max(per, float64(g.Total)/float64(heads(p))*bytes/float64(p.Split.NChannels))
				}
			}
			want := per / (port * cfg.Class.Net.Eff * cfg.Class.Net.ReduceEff) * 1e-3 // us
			if got := (twice.Elapsed - r.Elapsed).Micros(); math.Abs(got/want-1) > 0.002 {
				t.Errorf("%v on %d nodes: %.1f us, its bytes take %.1f", a, n, got, want)
			}
			if last != 0 && r.Elapsed != last {
				t.Errorf("%v: %v on %d nodes, %v on fewer", a, r.Elapsed, n, last)
			}
			last = r.Elapsed
		}
	}
}

// heads is over how many rails a turn's chunks of one channel go.
func heads(p *plan.Plan) int64 {
	return int64(p.Split.Lo.LoopSize/p.Split.Lo.ChunkSize) / int64(p.Split.NChannels)
}

// The way of a sum is paid once a step: so much longer a wire or a switch takes,
// so much later is an operation of one step, and by a level more where groups of
// rails meet in spines.
func TestReductionLatencyIsTheWay(t *testing.T) {
	c := reducing(t, "dgx-h100.xml", 4)
	run := func(wire, hop float64, l *fabric.Layout) units.Time {
		class := idle(c)
		class.Net.Wire, class.Net.ReduceHop = wire, hop
		cfg := quiet(c, sim.Config{Class: class, Fabric: bound(t, l)})
		r, _ := simulatePlan(t, c, cfg, reduction(coll.CollNetDirect, 64<<10), trace.Discard)
		return r.Elapsed
	}
	at := run(2, 1, nil)
	for _, tt := range []struct {
		wire, hop float64
		l         *fabric.Layout
		later     float64
	}{{5, 1, nil, 3}, {2, 8, nil, 7}, {2, 1, railsOf(4), 0}, {2, 1, railsOf(2), 1 + 2*0.25},
		{2, 3, railsOf(1), 5 + 2*0.25}} {
		if got := run(tt.wire, tt.hop, tt.l) - at; got != units.FromMicros(tt.later) {
			t.Errorf("wire %g, hop %g, %v: %v later, want %g us", tt.wire, tt.hop, tt.l, got, tt.later)
		}
	}
}

func railsOf(perLeaf int) *fabric.Layout {
	return &fabric.Layout{Kind: "rail", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: perLeaf, Latency: 0.25}
}

func bound(t *testing.T, l *fabric.Layout) *fabric.Fabric {
	if l == nil {
		return nil
	}
	n, err := fabric.Generate(*l)
	if err != nil {
		t.Fatal(err)
	}
	nets := make([]int, l.Hosts)
	for i := range nets {
		nets[i] = l.Nets
	}
	f, err := n.Bind(nets, 1)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Every cable that a rail uses carries a head's data once up and once down, on
// the first level and on the second, however many nodes there are; no link
// carries more than it can. Trees that share an uplink share its speed.
func TestEveryCableCarriesASumOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: sums over many cables")
	}
	c := reducing(t, "dgx-h100.xml", 4)
	const bytes = 64 << 20
	for _, a := range reducers {
		for _, l := range []*fabric.Layout{railsOf(4), railsOf(2), railsOf(1)} {
			cfg := quiet(c, sim.Config{Fabric: bound(t, l)})
			r, p := simulatePlan(t, c, cfg, reduction(a, bytes), trace.Discard)
			if err := plausible(&r); err != nil {
				t.Errorf("%v: %v", a, err)
			}
			steps := int64(p.Split.Lo.NSteps) * int64(p.Split.Lo.ChunkSize)
			sums := map[units.Bytes]bool{}
			all, total := int64(0), int64(0)
			for _, g := range p.NetGroups() {
				if g.First == 0 {
					sums[units.Bytes(int64(g.Total)*steps)] = true
					levels := int64(4) // hosts
					if l.PerLeaf < 4 {
						levels += int64(4 / l.PerLeaf) // and leaves
					}
					all += int64(g.Total) * steps * 2 * levels
				}
			}
			for _, x := range r.Links {
				if strings.Contains(x.Name, "leaf") && x.Bytes > 0 {
					total += int64(x.Bytes)
					if !sums[x.Bytes] {
						t.Errorf("%v, %d hosts a leaf: %s carries %d bytes, a rail's sums have %v", a,
							l.PerLeaf, x.Name, x.Bytes, sums)
					}
				}
			}
			if total != all {
				t.Errorf("%v, %d hosts a leaf: cables carry %d bytes in all, want %d", a, l.PerLeaf, total,
					all)
			}
		}
	}
	run := func(oversub float64) units.Time {
		l := &fabric.Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400, PerLeaf: 1, Spines: 1,
			Oversub: oversub}
		cfg := quiet(c, sim.Config{Class: idle(c), Fabric: bound(t, l)})
		r, _ := simulatePlan(t, c, cfg, reduction(coll.NVLS, bytes), trace.Discard)
		twice, _ := simulatePlan(t, c, cfg, reduction(coll.NVLS, 2*bytes), trace.Discard)
		return twice.Elapsed - r.Elapsed
	}
	one, eight := run(1), run(8)
	if f := float64(eight) / float64(one); math.Abs(f/(8*idle(c).Net.ReduceEff)-1) > 0.01 {
		t.Errorf("eight trees over an uplink of one port's speed take %.2f times as long", f)
	}
}

// Equivalent nodes are simulated once, which is the same bit for bit; a
// straggler or a slow port is a kind of its own, and holds all up.
func TestReducingNodesFold(t *testing.T) {
	c := reducing(t, "dgx-h100.xml", 5)
	slow := []sim.Fault{{Rank: 19, Slow: 1.7}}
	port := []sim.Fault{{Rank: -1, Host: 3, Net: 2, Slow: 4, Later: 3 * units.Microsecond}}
	for _, a := range reducers {
		for _, bytes := range []int64{40, 3<<20 + 48} {
			var well units.Time
			for _, faults := range [][]sim.Fault{nil, slow, port} {
				cfg := quiet(c, sim.Config{Kernels: 2, Faults: faults, Fold: sim.Unfolded})
				every, _ := simulatePlan(t, c, cfg, reduction(a, bytes), trace.Discard)
				cfg.Fold = sim.FoldExact
				folded, _ := simulatePlan(t, c, cfg, reduction(a, bytes), trace.Discard)
				if folded.Account.Method != exec.Folded {
					t.Fatalf("%v of %d bytes, %v: %v", a, bytes, faults, folded.Account)
				}
				if every.Elapsed != folded.Elapsed || !reflect.DeepEqual(every.Finish, folded.Finish) {
					t.Errorf("%v of %d bytes, %v: %v rank by rank, %v folded", a, bytes, faults,
						every.Elapsed, folded.Elapsed)
				}
				if faults == nil {
					well = every.Elapsed
				} else if every.Elapsed <= well {
					t.Errorf("%v of %d bytes: %v with %v, %v without", a, bytes, every.Elapsed, faults, well)
				}
			}
		}
	}
}

// What the network cannot sum never ends, or is refused by type.
func TestReductionsThatFail(t *testing.T) {
	c := reducing(t, "dgx-h100.xml", 3)
	run := func(faults []sim.Fault) error {
		p, err := build.Plan(c.Layout, reduction(coll.NVLS, 1<<20))
		if err != nil {
			t.Fatal(err)
		}
		cfg := quiet(c, sim.Config{Faults: faults})
		cfg.Comm = c.Layout
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = x.Run(context.Background(), exec.One(p), trace.Discard)
		return err
	}
	var stuck *sim.StuckError
	if err := run([]sim.Fault{{Rank: -1, Host: 1, Net: 4, Slow: 1, Down: true}}); !errors.As(err, &stuck) ||
		stuck.Host != 1 || stuck.Net != 4 {
		t.Errorf("a port that is down: %v", err)
	}
	var hang *sim.HangError
	if err := run([]sim.Fault{{Rank: 9, Slow: 1, Down: true}}); !errors.As(err, &hang) || hang.Waiting != 23 {
		t.Errorf("a rank that is gone: %v", err)
	}
	if err := run([]sim.Fault{{Rank: -1, Slow: 1, Loss: 0.01}}); !errors.Is(err, exec.ErrNotImplemented) {
		t.Errorf("lost packets: %v", err)
	}
}

// Traces of what the network reduces are whole, too, and change no time: a
// receive's arrow comes from the rank that the sum waited for.
func TestTracesOfReductions(t *testing.T) {
	c := reducing(t, "dgx-h100.xml", 2)
	for _, a := range reducers {
		cfg := quiet(c, sim.Config{Kernels: 2, Trace: nccl.Options{Detail: nccl.DetailStep}})
		req := reduction(a, 1<<20)
		silent, p := simulatePlan(t, c, cfg, req, trace.Discard)
		var sink counter
		var buf bytes.Buffer
		w := chrome.New(&buf, chrome.Options{})
		told, _ := simulatePlan(t, c, cfg, req, &sink)
		simulatePlan(t, c, cfg, req, w)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if silent.Elapsed != told.Elapsed {
			t.Errorf("%v: %v without a trace, %v with one", a, silent.Elapsed, told.Elapsed)
		}
		sends, given := 0, 0
		for o := range p.Ops() {
			sends += len(o.To)
			for _, id := range o.To {
				if pc := p.Conn(id); pc.Dst == plan.Network {
					given++
				}
			}
		}
		n, collectives := sink.slices, 0
		for _, g := range p.NetGroups() {
			if len(g.Channels) > 0 {
				collectives += p.Split.Lo.NSteps
			}
		}
		if sink.arrows != sends || n["NET SendWait"] != given || n["NET RecvWait"] != given ||
			n["SHARP AllReduce"] != collectives*c.NNodes || n["network Reduction"] != collectives {
			t.Errorf("%v: %d arrows for %d sends, %d of them to the network in %d collectives: %v", a,
				sink.arrows, sends, given, collectives, n)
		}
		if len(sink.loose) > 0 {
			t.Errorf("%v: %d slices are not the sum of their terms, the first a %s", a, len(sink.loose),
				sink.loose[0])
		}
		rep, err := validate.Check(&buf)
		if err != nil || rep.Errors+rep.Warnings > 0 {
			t.Errorf("%v: %v, %v", a, err, rep.Problems)
		}
	}
}

// To gather, a head gives the network its own block and takes all of them; to
// scatter, the opposite direction. The rank with more to carry sets the pace.
func TestGatheredBlocksCrossAPortOnce(t *testing.T) {
	const nodes, block = 3, 8 << 20
	c := reducing(t, "dgx-h100.xml", nodes)
	for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter} {
		for _, a := range []coll.Algorithm{coll.NVLS, coll.CollNetDirect} {
			req := reduction(a, block)
			req.Func = f
			r, _ := simulatePlan(t, c, quiet(c, sim.Config{Class: idle(c), Kernels: 2}), req, trace.Discard)
			if err := plausible(&r); err != nil {
				t.Errorf("%v %v: %v", f, a, err)
			}
			up, down, ports := units.Bytes(block), units.Bytes(nodes*block), 0
			if f == coll.ReduceScatter {
				up, down = down, up
			}
			for _, l := range r.Links {
				want := up
				if strings.Contains(l.Name, " mlx5_") {
					want = down
				}
				if strings.Contains(l.Name, "mlx5_") && l.Bytes > 0 {
					if ports++; l.Bytes != want {
						t.Errorf("%v %v: %s carries %d bytes, want %d", f, a, l.Name, l.Bytes, want)
					}
				}
			}
			least := nodes * block / (50 * idle(c).Net.Eff * idle(c).Net.ReduceEff) * 1e-3
			if got := r.Elapsed.Micros(); ports != 2*8*nodes || got < least || got > 1.1*least {
				t.Errorf("%v %v: %d ports, %.1f us; the blocks take %.1f", f, a, ports, got, least)
			}
		}
	}
}

// The story of one small sum over two nodes of a GPU each.
func TestTraceOfASum(t *testing.T) {
	c := reducing(t, "gh200.xml", 2)
	req := reduction(coll.CollNetChain, 40<<10)
	req.Channels = 1
	var buf bytes.Buffer
	sink := newText(&buf)
	simulatePlan(t, c, quiet(c, sim.Config{Trace: nccl.Options{Detail: nccl.DetailStep, Deps: true}}), req,
		sink)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	var story strings.Builder
	for line := range strings.Lines(buf.String()) {
		if !strings.HasPrefix(line, "count") && !strings.Contains(line, `"links"`) {
			story.WriteString(line)
		}
	}
	golden.Text(t, "testdata/sum.txt", story.String())
}

// Nodes that gather or scatter are nearly equivalent: each has its own block at
// another time. One that represents all is as near as it says.
func TestGatheringNodesNearlyFold(t *testing.T) {
	c := reducing(t, "dgx-h100.xml", 10)
	for _, f := range []coll.Func{coll.AllGather, coll.ReduceScatter} {
		for _, a := range []coll.Algorithm{coll.NVLS, coll.CollNetDirect} {
			req := reduction(a, 200<<10)
			req.Func = f
			every, _ := simulatePlan(t, c, quiet(c, sim.Config{Fold: sim.FoldExact}), req, trace.Discard)
			near, _ := simulatePlan(t, c, quiet(c, sim.Config{Fold: sim.FoldNear}), req, trace.Discard)
			off := float64(near.Elapsed)/float64(every.Elapsed) - 1
			if every.Account.Method == exec.Near || near.Account.Method != exec.Near ||
				math.Abs(off) > near.Account.Margin {
				t.Errorf("%v %v: %v rank by rank (%v), %v by one node (%v)", f, a, every.Elapsed,
					every.Account, near.Elapsed, near.Account)
			}
			t.Logf("%v %v: %+.1f %%", f, a, 100*off)
		}
	}
}
