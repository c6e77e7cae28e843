// Package benchmarks measures the way from a topology file to a finished plan, one
// stage a benchmark, for communicators of 8, 64 and 1,024 GPUs made of DGX
// H100s. `make bench` compares two states of the tree by it, `make bench-table`
// writes docs/results/BENCHMARKS.md.
//
// A stage is measured alone: what comes before it is made outside the loop.
// Rooms keep finer benchmarks of their own.
package benchmarks

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/plan/check"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/search"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/study/decision"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/builtin"
	"github.com/simccl/simccl/topo/fabric"
	topoxml "github.com/simccl/simccl/topo/xml"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/tuning"
)

// sizes are the communicators measured, in DGX H100s.
var sizes = []struct{ gpus, nodes int }{{8, 1}, {64, 8}, {1024, 128}}

func eachSize(b *testing.B, run func(b *testing.B, nodes int)) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("gpus=%d", s.gpus), func(b *testing.B) {
			b.ReportAllocs()
			run(b, s.nodes)
		})
	}
}

// made stops the benchmark at an error.
func made[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func spec(t testing.TB) *topo.Spec {
	return made(topoxml.Parse(builtin.DGXH100(), builtin.DGXH100Name))(t)
}

func cluster(t testing.TB, nodes int) *fabric.Cluster {
	return made(fabric.NewUniform(spec(t), nodes, topo.DefaultParams()))(t)
}

// release is the rules of every benchmark: a run has them made once.
var release = rules.Default()

func params() comm.Params {
	return comm.Params{Rules: rules.Default(), Access: topo.DefaultParams().Access}
}

func communicator(t testing.TB, nodes int) *comm.Comm {
	return site.Load(t, scenario.Machine{Nodes: []scenario.Nodes{{Count: nodes}}}).Comm
}

// BenchmarkParse reads XML into a Spec. A file holds one host, or one NVLink
// domain, however large the communicator is.
func BenchmarkParse(b *testing.B) {
	for _, name := range []string{"dgx-h100", "gb200-nvl72-2tray", "dgx-2"} {
		b.Run(name, func(b *testing.B) {
			text := made(os.ReadFile(golden.Root(b, "testdata", "topos", name+".xml")))(b)
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				made(topoxml.Parse(text, name))(b)
			}
		})
	}
}

// BenchmarkPaths builds the Systems of a cluster, links and paths included.
func BenchmarkPaths(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		s := spec(b)
		for b.Loop() {
			made(fabric.NewUniform(s, nodes, topo.DefaultParams()))(b)
		}
	})
}

// BenchmarkSearch searches all patterns of one host; equal hosts are searched
// once.
func BenchmarkSearch(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		sys := cluster(b, nodes).Host(0).System(0)
		for b.Loop() {
			made(search.All(sys, search.Params{Rules: release, NVLS: true}))(b)
		}
	})
}

// BenchmarkConnect joins searched graphs into channels over all ranks.
func BenchmarkConnect(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		c := cluster(b, nodes)
		set := made(search.All(c.Host(0).System(0), search.Params{Rules: release, NVLS: true}))(b)
		in := connect.Input{Multicast: true, Access: topo.DefaultParams().Access}
		for h := range c.NHosts() {
			in.Domains = append(in.Domains, connect.Domain{System: c.Host(h).System(0), Graphs: set,
				First: int32(c.Rank(h, 0)), Host: int32(h)})
		}
		for b.Loop() {
			made(connect.Join(in, connect.Params{Rules: release}))(b)
		}
	})
}

// BenchmarkTuning computes the cost model of a communicator.
func BenchmarkTuning(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		in := communicator(b, nodes).Model.In
		for b.Loop() {
			made(tuning.New(in, tuning.Params{Rules: release}))(b)
		}
	})
}

// BenchmarkChoose chooses algorithm and protocol for one operation.
func BenchmarkChoose(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		c := communicator(b, nodes)
		op := tuning.Op{Func: coll.AllReduce, Count: 16 << 20, Type: coll.Float32}
		for b.Loop() {
			made(c.Choose(op))(b)
		}
	})
}

// BenchmarkInspect does all of it, from XML to the decision document's text.
func BenchmarkInspect(b *testing.B) {
	eachSize(b, func(b *testing.B, nodes int) {
		for b.Loop() {
			inspect(b, nodes)
		}
	})
}

func inspect(t testing.TB, nodes int) int {
	k := cluster(t, nodes)
	c := made(comm.New(k, params()))(t)
	doc := made(decision.New(c, decision.Given{Nodes: nodes, GPUsPerNode: k.Host(0).NRanks()}))(t)
	return len(made(doc.Encode())(t))
}

// requests are the schedules whose plans are measured: a ring of 1 GiB and a
// tree of 1 MiB.
var requests = []struct {
	name  string
	bytes int64
	algo  coll.Algorithm
	proto coll.Protocol
}{
	{"ring-simple-1GiB", 1 << 30, coll.Ring, coll.Simple},
	{"tree-ll128-1MiB", 1 << 20, coll.Tree, coll.LL128},
}

func planOf(t testing.TB, c *comm.Comm, i int) *plan.Plan {
	q := requests[i]
	op := tuning.Op{Func: coll.AllReduce, Count: q.bytes / 4, Type: coll.Float32}
	choice := c.Model.Force(op, q.algo, q.proto)
	r := plan.Request{Func: op.Func, Count: op.Count, Type: op.Type, Algo: q.algo, Proto: q.proto,
		Channels: choice.MaxChannels, Warps: choice.Warps}
	return made(build.Plan(c.Layout, r))(t)
}

// BenchmarkPlan makes a plan and walks all ops of eight ranks, which is what
// an executor does with it.
func BenchmarkPlan(b *testing.B) {
	for i, q := range requests {
		b.Run(q.name, func(b *testing.B) {
			eachSize(b, func(b *testing.B, nodes int) {
				c := communicator(b, nodes)
				ops := 0
				for b.Loop() {
					ops += walk(planOf(b, c, i), 8)
				}
				b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
			})
		})
	}
}

func walk(p *plan.Plan, ranks int32) (ops int) {
	var programs []plan.Program
	var cursor plan.Cursor
	var op plan.Op
	for rank := range ranks {
		programs = p.AppendPrograms(programs[:0], rank)
		for k := range programs {
			p.OpenInto(&cursor, &programs[k])
			for cursor.Next(&op) {
				ops++
			}
		}
	}
	return ops
}

// BenchmarkCheck proves a plan.
func BenchmarkCheck(b *testing.B) {
	c := communicator(b, 1)
	for i, q := range requests {
		b.Run(q.name, func(b *testing.B) {
			p := planOf(b, c, i)
			b.ReportAllocs()
			for b.Loop() {
				if err := check.Plan(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEngine simulates an all-reduce as NCCL would choose it and counts
// the engine's events.
func BenchmarkEngine(b *testing.B) {
	for _, s := range []struct {
		mib   int64
		gpus  int
		nodes int
	}{{1, 8, 1}, {1, 64, 8}, {1, 1024, 128}, {64, 8, 1}, {64, 64, 8}} {
		b.Run(fmt.Sprintf("MiB=%d/gpus=%d", s.mib, s.gpus), func(b *testing.B) {
			b.ReportAllocs()
			simulate(b, s.nodes, s.mib<<20, func() trace.Sink { return trace.Discard })
		})
	}
}

// unfolded are runs that simulate every rank: with jitter, over a fabric of leaves
// with half the uplinks that they need, and with a port at a quarter of its speed.
var unfolded = []struct {
	name  string
	fn    coll.Func
	algo  coll.Algorithm
	proto coll.Protocol
	nodes int
	mib   int64
	thin  bool
	slow  bool
}{
	{name: "nvlstree", fn: coll.AllReduce, algo: coll.NVLSTree, proto: coll.Simple, nodes: 2, mib: 256},
	{name: "ring", fn: coll.AllReduce, algo: coll.Ring, proto: coll.Simple, nodes: 8, mib: 256},
	{name: "tree", fn: coll.AllReduce, algo: coll.Tree, proto: coll.Simple, nodes: 8, mib: 256},
	{name: "alltoall", fn: coll.AllToAll, nodes: 4, mib: 16},
	{name: "fabric-ring", fn: coll.AllReduce, algo: coll.Ring, proto: coll.LL128, nodes: 16, mib: 16,
		thin: true},
	{name: "fabric-tree", fn: coll.AllReduce, algo: coll.Tree, proto: coll.LL128, nodes: 16, mib: 16,
		thin: true},
	{name: "fabric-alltoall", fn: coll.AllToAll, nodes: 8, mib: 1, thin: true},
	{name: "slow-port", fn: coll.AllReduce, algo: coll.Ring, proto: coll.LL128, nodes: 16, mib: 16,
		slow: true},
}

// BenchmarkUnfolded counts the engine's events where nothing is folded or skipped.
func BenchmarkUnfolded(b *testing.B) {
	for _, x := range unfolded {
		b.Run(fmt.Sprintf("%s/gpus=%d", x.name, 8*x.nodes), func(b *testing.B) {
			b.ReportAllocs()
			c := communicator(b, x.nodes)
			op := comm.Op{Func: x.fn, Count: x.mib << 18, Type: coll.Float32}
			if x.fn == coll.AllToAll { // counted by the part of each peer
				op.Count /= int64(8 * x.nodes)
			}
			p, _, err := c.Plan(op)
			if x.fn == coll.AllReduce {
				p, _, err = c.PlanAs(op, x.algo, x.proto)
			}
			if err != nil {
				b.Fatal(err)
			}
			set := sim.Config{NoSkip: true}
			if x.thin {
				net := made(fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: x.nodes, Nets: 8,
					PerLeaf: 2, Oversub: 2, Gbit: 400, Latency: 0.3}))(b)
				set.Fabric = made(net.Bind(sim.Ports(c.Cluster), 1))(b)
			}
			if x.slow {
				set.Faults = []sim.Fault{{Rank: -1, Slow: 4, Host: 0, Net: 2}}
			}
			repeat(b, c, p, set, func() trace.Sink { return trace.Discard })
		})
	}
}

// counter counts what is written and keeps nothing.
type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

// BenchmarkTrace is BenchmarkEngine writing a Chrome trace; MB/s are those of
// the finished text.
func BenchmarkTrace(b *testing.B) {
	for _, s := range sizes[:2] {
		b.Run(fmt.Sprintf("gpus=%d", s.gpus), func(b *testing.B) {
			b.ReportAllocs()
			var out counter
			simulate(b, s.nodes, 16<<20, func() trace.Sink { return chrome.New(&out, chrome.Options{}) })
			b.ReportMetric(float64(out.n)/1e6/b.Elapsed().Seconds(), "MB/s")
		})
	}
}

// simulate runs one operation again and again, each into a new sink. Multicast
// is off: the switch's work would leave the engine little to do.
func simulate(b *testing.B, nodes int, bytes int64, sink func() trace.Sink) {
	set := params()
	set.Multicast = comm.MulticastOff
	c := made(comm.New(cluster(b, nodes), set))(b)
	p, _, err := c.Plan(comm.Op{Func: coll.AllReduce, Count: bytes / 4, Type: coll.Float32})
	if err != nil {
		b.Fatal(err)
	}
	repeat(b, c, p, sim.Config{Trace: nccl.Options{Detail: nccl.DetailStep}}, sink)
}

// repeat runs a plan again and again, each by a new executor, as one remembers what it
// has simulated, and into a new sink.
func repeat(b *testing.B, c *comm.Comm, p *plan.Plan, cfg sim.Config, sink func() trace.Sink) {
	cfg.Comm, cfg.Launch, cfg.Kernels = c.Layout, sim.Graph, 1
	for i := range c.Domains {
		cfg.Systems = append(cfg.Systems, c.Domains[i].System)
	}
	var events int64
	for b.Loop() {
		x, to := made(sim.New(cfg))(b), sink()
		events += made(x.Run(context.Background(), exec.One(p), to))(b).Events
		if err := to.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}
