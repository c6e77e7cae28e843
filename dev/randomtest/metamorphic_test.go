package whole

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/units"
)

// sequence is a machine with operations that run on it one after the other. Its
// times are a function of it alone: not of how they are found.
type sequence struct {
	spec   scenario.Spec
	ops    []comm.Op
	jitter bool
}

// String prints a sequence as a scenario and a list of operations, so that what
// rapid shrinks a failure to can be run again.
func (s *sequence) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%sjitter %v\n", s.spec.JSON(), s.jitter)
	for _, op := range s.ops {
		fmt.Fprintf(&b, "%v of %d %v, %v, root %d, in place %v\n", op.Func, op.Count, op.Type, op.RedOp,
			op.Root, op.InPlace)
	}
	return b.String()
}

// took is what became of an operation.
type took struct {
	elapsed units.Time
	finish  []units.Time
	method  exec.Method // not compared
	err     string
}

func (a took) equal(b took) bool {
	return a.elapsed == b.elapsed && a.err == b.err && slices.Equal(a.finish, b.finish)
}

// kind says how a time was found.
func (a took) kind() string {
	if a.err != "" {
		return "an error"
	}
	return a.method.String()
}

// way is how the times of a sequence are found.
type way struct {
	name   string
	fold   sim.Folding
	traced bool
	shared bool // one simulator runs all operations
	back   bool // the last operation first
	procs  int  // GOMAXPROCS, each operation in a goroutine; 0: one after the other
	fresh  bool // another communicator, made for this
}

// ways are compared with the first of them.
var ways = []way{
	{name: "rank by rank", fold: sim.Unfolded},
	{name: "folded exactly", fold: sim.FoldExact},
	{name: "folded by default", fold: sim.FoldAuto},
	{name: "traced", fold: sim.Unfolded, traced: true},
	{name: "traced and folded", fold: sim.FoldExact, traced: true},
	{name: "by one simulator, last first", fold: sim.Unfolded, shared: true, back: true},
	{name: "by one simulator, folded", fold: sim.FoldExact, shared: true},
	{name: "at once on 4 processors", fold: sim.FoldExact, procs: 4},
	{name: "on a new communicator, at once on 2 processors", fold: sim.Unfolded, procs: 2, fresh: true},
}

// siteOf loads the machine of a Spec, and keeps it.
func siteOf(t *rapid.T, spec *scenario.Spec, kept map[string]*scenario.Site) *scenario.Site {
	key := fmt.Sprint(spec.Machine, spec.NCCL)
	if s := kept[key]; s != nil {
		return s
	}
	s, err := scenario.Load(spec, scenario.Options{Files: renamed{os.DirFS(topos)}})
	if err != nil {
		t.Fatalf("%s%v", spec.JSON(), err)
	}
	if kept != nil {
		kept[key] = s
	}
	return s
}

var topos = path.Join("..", "..", "testdata", "topos")

// renamed is a directory whose files have a second and third name, and so on:
// "other-2-a.xml" is "a.xml". Bus ids of "swap-03-a.xml" are exchanged between
// the GPUs 0 and 3.
type renamed struct{ fs.FS }

var (
	otherName = regexp.MustCompile(`^other-\d+-`)
	swapName  = regexp.MustCompile(`^swap-(\d)(\d)-`)
	gpuBus    = regexp.MustCompile(`<pci busid="([^"]+)"[^>]*>\s*<gpu dev="(\d)"`)
)

func (r renamed) Open(name string) (fs.File, error) {
	swap := swapName.FindStringSubmatch(name)
	if swap == nil {
		return r.FS.Open(otherName.ReplaceAllString(name, ""))
	}
	data, err := fs.ReadFile(r.FS, strings.TrimPrefix(name, swap[0]))
	if err != nil {
		return nil, err
	}
	bus := map[string]string{}
	for _, m := range gpuBus.FindAllSubmatch(data, -1) {
		bus[string(m[2])] = string(m[1])
	}
	a, b := bus[swap[1]], bus[swap[2]]
	text := strings.NewReplacer(a, b, b, a).Replace(string(data))
	return fstest.MapFS{name: {Data: []byte(text)}}.Open(name)
}

// run finds the times of a sequence in one way.
func (s *sequence) run(t *rapid.T, w way, kept map[string]*scenario.Site) []took {
	if w.procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(w.procs))
	}
	if w.fresh {
		kept = nil
	}
	m := siteOf(t, &s.spec, kept)
	make := func() *sim.Executor {
		cfg, err := m.SimConfig(&s.spec)
		if err != nil {
			t.Fatalf("%s%v", s, err)
		}
		cfg.Fold, cfg.NoJitter, cfg.Trace = w.fold, !s.jitter, nccl.Options{Detail: nccl.DetailPacket,
			Deps: true}
		x, err := sim.New(cfg)
		if err != nil {
			t.Fatalf("%s%v", s, err)
		}
		return x
	}
	shared := make()
	out := slices.Repeat([]took{{}}, len(s.ops))
	var all sync.WaitGroup
	for n := range s.ops {
		i := n
		if w.back {
			i = len(s.ops) - 1 - n
		}
		x := shared
		if !w.shared {
			x = make()
		}
		if w.procs > 0 {
			all.Go(func() { out[i] = one(x, m, s.ops[i], w.traced) })
		} else {
			out[i] = one(x, m, s.ops[i], w.traced)
		}
	}
	all.Wait()
	return out
}

// one simulates an operation.
func one(x *sim.Executor, m *scenario.Site, op comm.Op, traced bool) took {
	p, _, err := m.Comm.Plan(op)
	if err != nil {
		return took{err: err.Error()}
	}
	sink := trace.Discard
	if traced {
		sink = new(trace.Memory)
	}
	r, err := x.Run(context.Background(), exec.One(p), sink)
	if err != nil {
		return took{err: err.Error()}
	}
	return took{elapsed: r.Elapsed, finish: r.Finish, method: r.Account.Method}
}

// kinds are the machines that sequences are drawn from: behind a switch, with a
// mesh of NVLinks, over PCIe and host memory, over RDMA, sockets and chips that
// share memory.
var kinds = []struct {
	topo        string
	gpus, nodes int // the most
}{
	{"h200x4-4.xml", 4, 1}, {"dgx-h100.xml", 8, 3}, {"gh200.xml", 1, 6}, {"hgx-a100-4.xml", 4, 3},
	{"dgx-1v.xml", 8, 2},
	{"pcie-l40s-8.xml", 8, 1}, {"h200x4-h2x2.xml", 2, 2}, {"dgx-a100.xml", 8, 2},
}

// drawMachine draws a machine and settings that bear on its times.
func drawMachine(t *rapid.T) scenario.Spec {
	k := rapid.SampledFrom(kinds).Draw(t, "machine")
	spec := scenario.Spec{
		Machine: scenario.Machine{
			Nodes: []scenario.Nodes{
				{Topo: k.topo, Count: min(k.nodes, rapid.IntRange(1, 2*k.nodes).Draw(t, "nodes"))}},
			GPUs: min(k.gpus, rapid.IntRange(1, 2*k.gpus).Draw(t, "GPUs"))},
		NCCL:   scenario.NCCL{Env: map[string]string{}},
		Engine: scenario.Engine{Launch: rapid.SampledFrom([]string{"graph", "eager"}).Draw(t, "launch")},
		Seed:   1}
	for _, set := range []struct {
		name   string
		values []string
	}{
		{"NCCL_PROTO", []string{"", "LL", "LL128", "Simple"}},
		{"NCCL_ALGO", []string{"", "Ring", "Ring;allreduce:Tree", "Ring;allreduce:NVLS",
			"Ring;allreduce:NVLSTree", "Ring;allgather:PAT;reducescatter:PAT"}},
		{"NCCL_MAX_NCHANNELS", []string{"", "1", "2", "5"}},
		{"NCCL_BUFFSIZE", []string{"", "65536"}},
		{"NCCL_IB_QPS_PER_CONNECTION", []string{"", "2"}},
	} {
		if v := rapid.SampledFrom(set.values).Draw(t, set.name); v != "" {
			spec.NCCL.Env[set.name] = v
		}
	}
	return spec
}

// drawOps draws some operations for so many ranks.
func drawOps(t *rapid.T, ranks int) []comm.Op {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) comm.Op {
		f := rapid.SampledFrom(coll.Funcs()).Draw(t, "operation")
		bytes := int64(8) << rapid.IntRange(0, 15).Draw(t, "doublings")
		if rapid.Bool().Draw(t, "of each rank") {
			bytes = min(bytes*int64(ranks), 1<<18)
		}
		op := comm.Op{Func: f, Type: rapid.SampledFrom([]coll.DataType{coll.Float32, coll.Int8,
			coll.Float16}).Draw(t, "type"),
			InPlace: rapid.Bool().Draw(t, "in place"),
			RedOp:   rapid.SampledFrom([]coll.RedOp{coll.Sum, coll.Avg}).Draw(t, "reduction")}
		if f.Rooted() {
			op.Root = int32(rapid.IntRange(0, ranks-1).Draw(t, "root"))
		}
		op.Count = coll.ExactSizes(f,
			units.Bytes(bytes+rapid.SampledFrom([]int64{0, 0, 0, 4, 20, 64, 100}).Draw(t, "bytes more")),
			op.Type, ranks).Count
		return op
	}), 1, 4).Draw(t, "operations")
}

// Every way to find the times of a sequence of operations gives the same times,
// to the picosecond: rank by rank and folded, traced and silent, by one simulator
// for all operations and by one each, in any order, on any number of processors,
// and where equal nodes are given one by one under different names. rapid shrinks
// a sequence that fails.
func TestTimesDependOnTheSequenceAlone(t *testing.T) {
	kept, found := map[string]*scenario.Site{}, map[string]int{}
	defer func() { t.Logf("how times were found: %v", found) }()
	rapid.Check(t, func(t *rapid.T) {
		s := &sequence{spec: drawMachine(t), jitter: rapid.IntRange(0, 3).Draw(t, "jitter") == 3}
		ranks := siteOf(t, &s.spec, kept).Comm.NRanks
		s.ops = drawOps(t, ranks)
		if rapid.IntRange(0, 3).Draw(t, "straggler") == 3 {
			s.spec.Network.Faults = []string{
				fmt.Sprintf("rank=%d:slow=1.5", rapid.IntRange(0, ranks-1).Draw(t, "which"))}
		}
		want := s.run(t, ways[0], kept)
		for _, w := range ways[1:] {
			got := s.run(t, w, kept)
			s.same(t, want, got, w.name)
			for _, g := range got {
				found[g.kind()]++
			}
		}
		other := *s
		other.spec = s.spec.Clone()
		other.spec.Machine.Nodes = nil
		for n := range s.spec.Machine.Nodes[0].Count {
			other.spec.Machine.Nodes = append(other.spec.Machine.Nodes,
				scenario.Nodes{Topo: fmt.Sprintf("other-%d-%s", n, s.spec.Machine.Nodes[0].Topo)})
		}
		s.same(t, want, other.run(t, ways[0], kept), "with nodes one by one")
	})
}

// same fails where two ways give different times.
func (s *sequence) same(t *rapid.T, want, got []took, how string) {
	for i := range want {
		if !want[i].equal(got[i]) {
			t.Fatalf("%s\n%v of %d takes %v rank by rank, %v %s\n%v %s\n%v %s", s, s.ops[i].Func,
				s.ops[i].Count, want[i].elapsed, got[i].elapsed, how,
				want[i].finish, want[i].err, got[i].finish, got[i].err)
		}
	}
}

// Four GPUs behind one switch are equivalent: whichever bus each is on, an operation
// takes as long, and the ranks end at the same times in some order.
func TestTimesDoNotDependOnBusIDs(t *testing.T) {
	kept := map[string]*scenario.Site{}
	rapid.Check(t, func(t *rapid.T) {
		s := &sequence{spec: drawMachine(t)}
		s.spec.Machine.Nodes = []scenario.Nodes{{Topo: "h200x4-4.xml"}}
		s.spec.Machine.GPUs = 4
		s.ops = drawOps(t, 4)
		want := s.run(t, ways[0], kept)
		other := *s
		other.spec = s.spec.Clone()
		other.spec.Machine.Nodes[0].Topo = rapid.SampledFrom([]string{"swap-01-", "swap-02-", "swap-03-",
			"swap-12-", "swap-13-", "swap-23-"}).Draw(t, "swap") + "h200x4-4.xml"
		got := other.run(t, ways[0], kept)
		for i := range want {
			slices.Sort(want[i].finish)
			slices.Sort(got[i].finish)
		}
		s.same(t, want, got, "with other bus ids")
	})
}

// A ring of equal nodes looks the same from each of them: an operation whose
// root (or straggler) is k nodes further takes as long, and each rank ends when
// the one k nodes before did.
func TestRingsOfNodesCanBeRotated(t *testing.T) {
	kept := map[string]*scenario.Site{}
	rapid.Check(t, func(t *rapid.T) {
		s := &sequence{spec: drawMachine(t)}
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		s.spec.Machine.Nodes[0] = scenario.Nodes{
			Topo: rapid.SampledFrom([]string{"gh200.xml", "hgx-a100-4.xml"}).Draw(t, "machine"), Count: nodes}
		s.spec.Machine.GPUs = 1
		s.spec.NCCL.Env["NCCL_ALGO"] = "Ring"
		s.ops = drawOps(t, nodes)
		for i := range s.ops {
			op := &s.ops[i]
			if !op.Func.Rooted() {
				op.Func = coll.Broadcast
			}
			if op.Func.IsP2P() { // parts that lie differently in their lines take different times
				op.Count = (op.Count + 127) / 128 * 128
			}
		}
		k := rapid.IntRange(1, nodes-1).Draw(t, "by")
		other := *s
		other.ops = slices.Clone(s.ops)
		for i := range other.ops {
			other.ops[i].Root = (s.ops[i].Root + int32(k)) % int32(nodes)
		}
		want, got := s.run(t, ways[0], kept), other.run(t, ways[0], kept)
		for i := range got {
			if n := len(got[i].finish); n > 0 {
				got[i].finish = append(slices.Clone(got[i].finish[k:]), got[i].finish[:k]...)
			}
		}
		s.same(t, want, got, fmt.Sprintf("with the root %d nodes further", k))
	})
}
