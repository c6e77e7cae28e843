// Package whole tests the rooms together: from a topology's text to a simulated
// operation and its trace, on every machine of the project.
package whole

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
)

// machine is a communicator with what a simulation of it needs.
type machine struct {
	comm    *comm.Comm
	systems []*topo.System
}

func load(t testing.TB, path string, nodes int) machine {
	t.Helper()
	c := site.Load(t, site.Nodes(path, nodes)).Comm
	return machine{comm: c, systems: c.Systems()}
}

func (m machine) plan(t testing.TB, f coll.Func, size units.Bytes) *plan.Plan {
	t.Helper()
	s := coll.TestSizes(f, size, coll.Float32, m.comm.NRanks)
	p, _, err := m.comm.Plan(comm.Op{Func: f, Count: s.Count, Type: coll.Float32})
	if err != nil {
		t.Fatalf("%v of %d bytes: %v", f, size, err)
	}
	return p
}

func (m machine) run(t testing.TB, p *plan.Plan, sink trace.Sink) exec.Result {
	t.Helper()
	x, err := sim.New(sim.Config{Comm: m.comm.Layout, Systems: m.systems, Launch: sim.Graph, Seed: 1,
		Trace: nccl.Options{Detail: nccl.DetailStep}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Run(context.Background(), exec.One(p), sink)
	if err != nil {
		t.Fatalf("%v %v/%v: %v", p.Req.Func, p.Req.Algo, p.Req.Proto, err)
	}
	return r
}

// everyMachine runs a test on each machine of the project and a few numbers of
// nodes; in short mode on one machine of each fabric.
func everyMachine(t *testing.T, test func(t *testing.T, m machine)) {
	paths, err := filepath.Glob(golden.Root(t, "testdata", "topos", "*.xml"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no topologies")
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".xml")
		if testing.Short() && name != "dgx-h100" && name != "dgx-1v" && name != "pcie-a100-4" {
			continue
		}
		for _, nodes := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s/nodes=%d", name, nodes), func(t *testing.T) {
				test(t, load(t, path, nodes))
			})
		}
	}
}

// TestTracesAreWholeAndTellTheTruth: the trace of every operation is a valid
// one, shows each send of the plan as an arrow, and changes no time.
func TestTracesAreWholeAndTellTheTruth(t *testing.T) {
	everyMachine(t, func(t *testing.T, m machine) {
		if m.comm.NRanks == 1 {
			t.Skip("a single rank sends nothing")
		}
		for _, f := range coll.Funcs() {
			p := m.plan(t, f, 256<<10)
			var text bytes.Buffer
			w := chrome.New(&text, chrome.Options{})
			traced := m.run(t, p, w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			silent := m.run(t, p, trace.Discard)
			// equivalent ranks, their jitter (docs/adr/0018)
			shares := silent.Account.Method != traced.Account.Method
			// Why all of it ran is no result: a trace has all of it.
			traced.Account.Reduction, silent.Account.Reduction = exec.Reduction{}, exec.Reduction{}
			if !shares && !reflect.DeepEqual(traced, silent) {
				t.Errorf("%v: watching changes the run: %v and %v", f, traced.Elapsed, silent.Elapsed)
			}
			rep, err := validate.Check(bytes.NewReader(text.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			for _, problem := range rep.Problems {
				t.Errorf("%v: %v", f, problem)
			}
			if want := sends(p); rep.Flows != want || want == 0 {
				t.Errorf("%v %v/%v: %d arrows, the plan has %d sends", f, p.Req.Algo, p.Req.Proto, rep.Flows,
					want)
			}
		}
	})
}

// sends counts what the plan puts on connections.
func sends(p *plan.Plan) (n int) {
	for op := range p.Ops() {
		if op.Do&plan.Send != 0 {
			n += len(op.To)
		}
	}
	return n
}

// TestSameInputSameBytes: the whole way, twice, on one processor and on eight,
// gives the same trace to the byte.
func TestSameInputSameBytes(t *testing.T) {
	var first []byte
	for _, procs := range []int{1, 8, 1} {
		old := runtime.GOMAXPROCS(procs)
		m := load(t, golden.Root(t, "testdata", "topos", "dgx-a100.xml"), 2)
		var text bytes.Buffer
		w := chrome.New(&text, chrome.Options{BatchBytes: 1 << 16})
		m.run(t, m.plan(t, coll.AllReduce, 1<<20), w)
		err := w.Close()
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text.Bytes()
		}
		if !bytes.Equal(first, text.Bytes()) {
			t.Errorf("with %d processors the trace differs", procs)
		}
	}
}

// TestManyAtOnce: the house keeps nothing between calls, so programs that work
// on several machines at a time, or on one shared communicator, get what they
// would get alone. Under the race detector this is the test of every pure room.
func TestManyAtOnce(t *testing.T) {
	names := []string{"dgx-1v", "dgx-h100", "gb200-nvl72-2tray", "pcie-l40s-8"}
	trace := func(m machine, f coll.Func) []byte {
		var text bytes.Buffer
		w := chrome.New(&text, chrome.Options{})
		m.run(t, m.plan(t, f, 64<<10), w)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		return text.Bytes()
	}
	path := func(name string) string { return golden.Root(t, "testdata", "topos", name+".xml") }
	for _, name := range names {
		shared := load(t, path(name), 2)
		for _, f := range []coll.Func{coll.AllReduce, coll.AllGather, coll.AllToAll} {
			t.Run(fmt.Sprintf("%s/%v", name, f), func(t *testing.T) {
				alone := trace(load(t, path(name), 2), f)
				t.Parallel()
				if at := trace(load(t, path(name), 2), f); !bytes.Equal(alone, at) {
					t.Error("beside others the trace differs")
				}
				if at := trace(shared, f); !bytes.Equal(alone, at) {
					t.Error("on a communicator shared with others the trace differs")
				}
			})
		}
	}
}

// TestPhysics: nothing is faster than its busiest link allows, and no bandwidth
// exceeds what a machine has.
func TestPhysics(t *testing.T) {
	everyMachine(t, func(t *testing.T, m machine) {
		for _, f := range coll.Funcs() {
			for _, size := range []units.Bytes{64, 64 << 10, 16 << 20} {
				if testing.Short() && size > 1<<20 {
					continue
				}
				p := m.plan(t, f, size)
				r := m.run(t, p, trace.Discard)
				if p.Req.Count > 0 && r.Elapsed <= 0 {
					t.Errorf("%v of %d: elapsed %v", f, size, r.Elapsed)
				}
				for _, l := range r.Links {
					if l.Capacity <= 0 {
						t.Errorf("%v: link %s has no capacity", f, l.Name)
						continue
					}
					if least := l.Bytes.Over(l.Capacity); least > l.Busy+units.Nanosecond+l.Busy/1000 {
						t.Errorf("%v of %d: %s moves %d bytes in %v, less than %v", f, size, l.Name, l.Bytes,
							l.Busy, least)
					}
				}
			}
		}
	})
}
