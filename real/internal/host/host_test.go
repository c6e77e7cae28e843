package host

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/config/netcfg"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/internal/require"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/plan/build"
	"github.com/simccl/simccl/real/internal/ibv"
	"github.com/simccl/simccl/real/internal/sock"
	"github.com/simccl/simccl/real/internal/transport"
	"github.com/simccl/simccl/real/internal/verbs"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

// machine is a communicator of some GPUs of our own topologies, with few
// channels and small buffers, so that loops and slices wrap often.
func machine(t *testing.T, name string, gpus, nodes int) *comm.Comm {
	t.Helper()
	m := site.Nodes(golden.Root(t, "testdata", "topos", name+".xml"), nodes)
	m.GPUs, m.Multicast = gpus, "off"
	c := site.Load(t, m).Comm
	c.BuffSizes = [3]units.Bytes{32 << 10, 8 * 5760 * 8, 64 << 10}
	c.P2PChunkSize = 8 << 10
	c.P2PChannels, c.P2PChannelsPerPeer = 1, 1
	return c
}

// job is one operation with everything that may vary.
type job struct {
	f       coll.Func
	algo    coll.Algorithm
	proto   coll.Protocol
	typ     coll.DataType
	red     coll.RedOp
	count   int64
	root    int32
	inPlace bool
}

func (j job) String() string {
	return fmt.Sprintf("%v %v %v %v %v count %d root %d in place %v", j.f, j.algo, j.proto, j.typ, j.red,
		j.count, j.root, j.inPlace)
}

// jobs are all operations on all algorithms that fit, over sizes, types,
// reductions, roots, in place and not.
func jobs(c *comm.Comm, counts []int64) []job {
	var out []job
	protos := []coll.Protocol{coll.LL, coll.LL128, coll.Simple}
	for _, count := range counts {
		for i, pr := range protos {
			inPlace := (int(count)+i)%2 == 0
			root := int32((int(count) + i) % c.NRanks)
			out = append(out,
				job{coll.AllReduce, coll.Ring, pr, coll.Float32, coll.Sum, count, 0, inPlace},
				job{coll.AllReduce, coll.Tree, pr, coll.Float32, coll.Sum, count, 0, inPlace},
				job{coll.AllGather, coll.Ring, pr, coll.Float32, 0, count, 0, inPlace},
				job{coll.ReduceScatter, coll.Ring, pr, coll.Int32, coll.Max, count, 0, inPlace},
				job{coll.Broadcast, coll.Ring, pr, coll.Int8, 0, count, root, inPlace},
				job{coll.Reduce, coll.Ring, pr, coll.Float64, coll.Prod, count, root, inPlace})
		}
		for _, f := range []coll.Func{coll.SendRecv, coll.AllToAll, coll.Gather, coll.Scatter} {
			out = append(out, job{f: f, typ: coll.Float32, count: count, root: int32(int(count) % c.NRanks)})
		}
		if c.NRanks == c.NNodes {
			out = append(out, job{coll.AllGather, coll.PAT, coll.Simple, coll.Float32, 0, count, 0, false},
				job{coll.ReduceScatter, coll.PAT, coll.Simple, coll.Float32, coll.Sum, count, 0, false})
		}
	}
	return out
}

func (j job) plan(t *testing.T, c *comm.Comm, channels int) *plan.Plan {
	t.Helper()
	r := plan.Request{Func: j.f, Count: j.count, Type: j.typ, Op: j.red, Root: j.root, InPlace: j.inPlace,
		Algo: j.algo, Proto: j.proto, Channels: min(channels, c.NChannels), Warps: 8}
	p, err := build.Plan(c.Layout, r)
	if err != nil {
		t.Fatalf("%v: %v", j, err)
	}
	return p
}

func runAll(t *testing.T, e *Executor, c *comm.Comm, list []job, channels int) {
	t.Helper()
	for _, j := range list {
		res, err := e.Run(context.Background(), exec.One(j.plan(t, c, channels)), trace.Discard)
		if err != nil {
			t.Fatalf("%v: %v", j, err)
		}
		if res.Wrong != 0 {
			t.Errorf("%v: %d wrong elements", j, res.Wrong)
		}
	}
	t.Logf("%d operations over %d ranks of %d nodes, every element right", len(list), c.NRanks, c.NNodes)
}

// TestEveryOperationInProcess runs all operations over shared FIFOs; with -short,
// as the race detector does, on half of the machines and sizes.
func TestEveryOperationInProcess(t *testing.T) {
	machines := []struct {
		name        string
		gpus, nodes int
	}{{"h200x4-4", 4, 1}, {"dgx-h100", 3, 2}, {"dgx-h100", 1, 5}, {"h200x4-4", 2, 1}, {"dgx-h100", 1, 8},
		{"dgx-a100", 8, 1}}
	counts := []int64{7, 40_001, 1, 1000}
	if testing.Short() {
		machines, counts = machines[1:3], counts[:1]
	}
	for _, m := range machines {
		t.Run(fmt.Sprintf("%s %d GPUs %d nodes", m.name, m.gpus, m.nodes), func(t *testing.T) {
			c := machine(t, m.name, m.gpus, m.nodes)
			runAll(t, New(Config{Seed: 5}), c, jobs(c, counts), 3)
		})
	}
}

// TestEveryTypeAndReduction runs all types and reductions on a small ring and
// tree.
func TestEveryTypeAndReduction(t *testing.T) {
	c := machine(t, "dgx-h100", 2, 2)
	var list []job
	for typ := range coll.NumDataTypes {
		for red := range coll.NumRedOps {
			for _, a := range []coll.Algorithm{coll.Ring, coll.Tree} {
				list = append(list, job{coll.AllReduce, a, coll.Simple, typ, red, 777, 0, false})
			}
			list = append(list, job{coll.ReduceScatter, coll.Ring, coll.LL, typ, red, 333, 0, false})
		}
	}
	runAll(t, New(Config{}), c, list, 2)
}

// TestVerifyCanFail damages a result and expects it to be counted.
func TestVerifyCanFail(t *testing.T) {
	c := machine(t, "h200x4-4", 2, 1)
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 100, 0, false}
	p := j.plan(t, c, 1)
	k, err := newKernel(coll.Float32, coll.Sum)
	if err != nil {
		t.Fatal(err)
	}
	x := &run{p: p, k: k, mem: map[int32]*memory{0: newMemory(p, 0, k, 0)}}
	if wrong := x.verify(0); wrong != 100 {
		t.Errorf("an output never written has %d wrong elements, want 100", wrong)
	}
}

func TestCancelledRunEnds(t *testing.T) {
	c := machine(t, "h200x4-4", 4, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	j := job{coll.AllReduce, coll.Ring, coll.Simple, coll.Float32, coll.Sum, 1 << 20, 0, false}
	if _, err := New(Config{}).Run(ctx, exec.One(j.plan(t, c, 2)), trace.Discard); !errors.Is(err,
		context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// loopback is sockets on the loopback interface, each message split over two.
func loopback(t *testing.T) *Wire {
	t.Helper()
	n, err := sock.NewNet(netcfg.Socket{IfName: "lo", Threads: units.Some(1), SocksPerThread: units.Some(2),
		MinTask: units.Some(1000)})
	if errors.Is(err, exec.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &Wire{Net: n, Device: func(int32, int32) int { return 0 }, Exchange: NewInProcess().Of}
}

// verbsWire opens the RDMA devices, or skips unless SIMCCL_REQUIRE names ib.
func verbsWire(t *testing.T, set netcfg.IB) *Wire {
	t.Helper()
	n, err := ibv.NewNet(set)
	require.Hardware(t, "ib", err, exec.ErrUnsupported)
	t.Cleanup(func() { n.Close() })
	devs, err := n.Devices()
	if err != nil {
		t.Fatal(err)
	}
	ex := NewInProcess()
	return &Wire{Net: n, Device: func(r, nic int32) int { return int(r+max(nic, 0)) % len(devs) },
		Exchange: ex.Of,
		Memory:   verbs.HostMemory}
}

// matrix is every operation once on every algorithm that connections carry,
// for any number of ranks; protocol, type, reduction, root and place go on from
// number to number, so that 2 to 8 ranks see them all.
func matrix(c *comm.Comm, count int64) []job {
	protos := []coll.Protocol{coll.LL, coll.LL128, coll.Simple}
	types := coll.DataTypes()
	var out []job
	add := func(f coll.Func, a coll.Algorithm) {
		i := len(out) + c.NRanks
		j := job{f: f, algo: a, proto: protos[i%3], typ: types[(5*i)%len(types)], count: count + int64(i),
			root: int32(i % c.NRanks), inPlace: i%2 == 0}
		if f == coll.AllReduce || f == coll.ReduceScatter || f == coll.Reduce {
			j.red = coll.RedOp((i + len(out)) % int(coll.NumRedOps))
		}
		if a == coll.PAT || f.IsP2P() {
			j.proto, j.inPlace = coll.Simple, false
		}
		if a == coll.PAT && j.red == coll.Avg {
			j.red = coll.Sum // PAT does not scale
		}
		out = append(out, j)
	}
	for _, f := range coll.CollFuncs() {
		add(f, coll.Ring)
	}
	add(coll.AllReduce, coll.Tree)
	add(coll.AllGather, coll.PAT)
	add(coll.ReduceScatter, coll.PAT)
	for _, f := range coll.P2PFuncs() {
		add(f, coll.Ring)
	}
	return out
}

// crowd is n hosts of one GPU: of GPUs whose received data has to be flushed,
// and of others.
func crowd(t *testing.T, n int) *comm.Comm {
	t.Helper()
	return machine(t, []string{"dgx-h100", "dgx-a100"}[n%2], 1, n)
}

// TestMatrixSeesAll: over 2 to 8 ranks every operation meets every protocol
// that it has, and every type and reduction takes part; some data is flushed.
func TestMatrixSeesAll(t *testing.T) {
	type pair struct {
		f coll.Func
		a coll.Algorithm
		p coll.Protocol
	}
	seen, types, reds := map[pair]bool{}, map[coll.DataType]bool{}, map[coll.RedOp]bool{}
	for n := 2; n <= 8; n++ {
		c := crowd(t, n)
		if p := matrix(c, 100)[0].plan(t, c, 1); p.Conn(0).Route.Flush != (n%2 == 1) {
			t.Errorf("data of %d ranks is flushed: %t", n, n%2 == 0)
		}
		for _, j := range matrix(c, 100) {
			seen[pair{j.f, j.algo, j.proto}], types[j.typ] = true, true
			if j.f == coll.AllReduce {
				reds[j.red] = true
			}
		}
	}
	// Five collectives by rings and all_reduce by trees on three protocols; two
	// of PAT; four without an algorithm.
	if want := 3*6 + 2 + 4; len(seen) != want || len(types) != len(coll.DataTypes()) ||
		len(reds) != int(coll.NumRedOps) {
		t.Errorf("%d combinations of %d, %d types of %d, %d reductions of %d", len(seen), want, len(types),
			len(coll.DataTypes()), len(reds), coll.NumRedOps)
	}
}

// TestEveryOperationOverVerbs runs all operations over 2 to 8 ranks with every
// connection on the wire. Hosts take the RDMA devices in turn; of 3 ranks each
// connection has two QPs, of 4 both devices, fused into one.
func TestEveryOperationOverVerbs(t *testing.T) {
	for n := 2; n <= 8; n++ {
		set := netcfg.IB{}
		if n == 3 {
			set = netcfg.IB{QPs: units.Some(2), SplitData: true}
		}
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			w := verbsWire(t, set)
			if n == 4 {
				w.Device = fused(t, w.Net)
			}
			c := crowd(t, n)
			runAll(t, New(Config{Wire: w, Seed: 9}), c, matrix(c, 6_007/int64(n)), 1)
		})
	}
}

// fused makes one device of the first two ports, once in each order: hosts
// take them in turn, so that their data crosses the wire.
func fused(t *testing.T, n transport.Net) func(rank, nic int32) int {
	t.Helper()
	var v [2]int
	for i := range v {
		var err error
		if v[i], err = n.(*ibv.Net).Fuse(i, 1-i); err != nil {
			t.Fatal(err)
		}
	}
	return func(rank, _ int32) int { return v[rank%2] }
}

// TestEveryOperationOverSockets is the same over the loopback interface.
func TestEveryOperationOverSockets(t *testing.T) {
	for n := 2; n <= 8; n += 3 {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			c := crowd(t, n)
			runAll(t, New(Config{Wire: loopback(t), Seed: 9}), c, matrix(c, 4001), 1)
		})
	}
}
