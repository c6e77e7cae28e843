package whole

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/exec"
	"github.com/simccl/simccl/sim"
	"github.com/simccl/simccl/trace/chrome"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/simccl/simccl/trace/validate"
	"github.com/simccl/simccl/units"
)

// drawn is a run that is drawn at random.
type drawn struct {
	machine string
	nodes   int
	op      comm.Op
	config  sim.Config
}

func (d *drawn) String() string {
	return fmt.Sprintf("%s x %d, %v of %d x %v, fold %v, seed %d, jitter %t, faults %v",
		d.machine, d.nodes, d.op.Func, d.op.Count, d.op.Type, d.config.Fold, d.config.Seed,
		!d.config.NoJitter, d.config.Faults)
}

// draw chooses machine, nodes, operation, size, folding, jitter and a slow rank.
func draw(rng *rand.Rand, ranksOf func(name string, nodes int) int) drawn {
	names := []string{"dgx-h100", "dgx-a100", "hgx-a100-4", "pcie-a100-4", "pcie-l40s-8", "gh200-4-alps",
		"h200x4-4", "pcie-rtx4090-8", "dgx-1v"}
	d := drawn{machine: names[rng.IntN(len(names))], nodes: 1 + rng.IntN(4)}
	ranks := ranksOf(d.machine, d.nodes)
	funcs := coll.Funcs()
	d.op = comm.Op{Func: funcs[rng.IntN(len(funcs))], Type: coll.Float32}
	size := units.Bytes(8 << rng.IntN(21)) // 8 B to 8 MiB
	if ranks <= 8 {
		size *= 8
	}
	d.op.Count = max(1, coll.TestSizes(d.op.Func, size, d.op.Type, ranks).Count)
	d.config = sim.Config{Launch: sim.Graph, Seed: rng.Uint64N(1 << 20), NoJitter: rng.IntN(2) == 0,
		Fold:  []sim.Folding{sim.FoldAuto, sim.Unfolded, sim.FoldExact, sim.FoldNear}[rng.IntN(4)],
		Trace: nccl.Options{Detail: nccl.DetailStep}}
	if rng.IntN(2) == 0 {
		d.config.Faults = []sim.Fault{{Rank: rng.IntN(ranks), Slow: float64(int(1) << (1 + rng.IntN(4)))}}
	}
	return d
}

// arrows checks that the trace of a run is valid and has one arrow for each send
// of its plan.
func (m machine) arrows(t *testing.T, d *drawn) {
	t.Helper()
	cfg := d.config
	cfg.Comm, cfg.Systems = m.comm.Layout, m.systems
	p, _, err := m.comm.Plan(d.op)
	if err != nil {
		t.Fatalf("%v: %v", d, err)
	}
	x, err := sim.New(cfg)
	if err != nil {
		t.Fatalf("%v: %v", d, err)
	}
	var text bytes.Buffer
	w := chrome.New(&text, chrome.Options{})
	if _, err := x.Run(context.Background(), exec.One(p), w); err != nil {
		t.Fatalf("%v: %v", d, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rep, err := validate.Check(&text)
	if err != nil {
		t.Fatalf("%v: %v", d, err)
	}
	for _, problem := range rep.Problems {
		t.Errorf("%v: %v", d, problem)
	}
	if want := sends(p); rep.Flows != want {
		t.Errorf("%v: %d arrows, the plan has %d sends", d, rep.Flows, want)
	}
}

// TestRandomTracesAreValid: whatever is simulated, its trace is valid and shows
// each send of the plan once.
func TestRandomTracesAreValid(t *testing.T) {
	n := 240
	if testing.Short() {
		n = 24
	}
	machines := map[string]machine{}
	get := func(name string, nodes int) machine {
		key := fmt.Sprint(name, nodes)
		if _, ok := machines[key]; !ok {
			machines[key] = load(t, golden.Root(t, "testdata", "topos", name+".xml"), nodes)
		}
		return machines[key]
	}
	rng := rand.New(rand.NewPCG(14, 4))
	for range n {
		d := draw(rng, func(name string, nodes int) int { return get(name, nodes).comm.NRanks })
		get(d.machine, d.nodes).arrows(t, &d)
	}
}

// TestALateReceiverKeepsItsArrows: the sender of a connection over the network
// may be two FIFOs ahead of the kernel that receives.
func TestALateReceiverKeepsItsArrows(t *testing.T) {
	m := load(t, golden.Root(t, "testdata", "topos", "dgx-h100.xml"), 2)
	list := []coll.Func{coll.AllReduce, coll.SendRecv, coll.AllGather, coll.AllToAll}
	if testing.Short() {
		list = list[:1]
	}
	for _, f := range list {
		d := drawn{machine: "dgx-h100", nodes: 2,
			op: comm.Op{Func: f, Count: coll.TestSizes(f, 32<<20, coll.Float32, m.comm.NRanks).Count,
				Type: coll.Float32},
			config: sim.Config{Launch: sim.Graph, Seed: 1, Fold: sim.Unfolded,
				Trace:  nccl.Options{Detail: nccl.DetailStep},
				Faults: []sim.Fault{{Rank: 8, Slow: 20}}}}
		m.arrows(t, &d)
	}
}
