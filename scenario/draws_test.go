package scenario_test

import (
	"bytes"
	"context"
	"io/fs"
	"math"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/topo/fabric"
)

// beside opens net.json, and else what files has.
type beside struct {
	net   fstest.MapFS
	files fs.FS
}

func (b beside) Open(name string) (fs.File, error) {
	if f, err := b.net.Open(name); err == nil {
		return f, nil
	}
	return b.files.Open(name)
}

// over are two GPUs of each of four nodes over a leaf-spine network with a routing.
func over(t *testing.T, op string, routing fabric.Routing, perLeaf int) (scenario.Spec, scenario.Options) {
	t.Helper()
	n, err := fabric.Generate(fabric.Layout{Kind: "leaf-spine", Hosts: 4, Nets: 8, Gbit: 400,
		PerLeaf: perLeaf, Oversub: 4, Routing: routing})
	if err != nil {
		t.Fatal(err)
	}
	return scenario.Spec{Machine: scenario.Machine{GPUs: 2, Nodes: []scenario.Nodes{
			{Topo: "dgx-h100", Count: 4}}}, NCCL: scenario.NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}},
			Network: scenario.Network{Fabric: "net.json"}, Workload: scenario.Workload{Op: op,
				Sizes: []string{"4M"}}, Engine: scenario.Engine{Jitter: "off"}},
		scenario.Options{Files: beside{fstest.MapFS{"net.json": {Data: n.Format()}}, site.Files(t)},
			Settings: config.Sources{NoEnv: true}, Warn: func(err error) { t.Error(err) }}
}

func rowOf(t *testing.T, spec scenario.Spec, opt scenario.Options) *scenario.Row {
	t.Helper()
	r, err := scenario.Run(context.Background(), spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	return &r.Rows[0]
}

// Without a seed a row over hashed routes is the median of the draws 1 to n: what it prints
// is what those seeds take one by one, its median, least and most are theirs, and the row is that
// of one of them, in place too.
func TestARowIsTheMedianOfItsDraws(t *testing.T) {
	for _, op := range []string{"all_reduce", "alltoall"} {
		spec, opt := over(t, op, fabric.ECMP, 2)
		row := rowOf(t, spec, opt)
		d := row.Facts.Draws
		if d == nil || d.N < 5 || len(d.Simulated) < 5 {
			t.Fatalf("%s: draws %+v", op, d)
		}
		var all []float64
		for seed := range uint64(d.N) {
			one := spec
			one.Seed = seed + 1
			alone := rowOf(t, one, opt)
			if alone.Facts.Draws != nil {
				t.Errorf("seed %d has draws", one.Seed)
			}
			us := alone.Out.Time.Micros()
			all = append(all, us)
			for _, s := range d.Simulated {
				if s.Seed == one.Seed && s.Us != us {
					t.Errorf("%s, seed %d: %v us alone, %v as a draw", op, s.Seed, us, s.Us)
				}
			}
			if one.Seed == d.Seed && (row.Out.Time != alone.Out.Time || row.In.Time != alone.In.Time ||
				row.Facts.Limit != alone.Facts.Limit) {
				t.Errorf("%s: the row has %v and %v, limited by %s; seed %d alone %v and %v, %s", op,
					row.Out.Time, row.In.Time, row.Facts.Limit, d.Seed, alone.Out.Time, alone.In.Time,
					alone.Facts.Limit)
			}
		}
		slices.Sort(all)
		for what, v := range map[string][2]float64{"median": {d.MedianUs, all[len(all)/2]},
			"least": {d.LeastUs, all[0]}, "most": {d.MostUs, all[len(all)-1]}} {
			if math.Abs(v[0]/v[1]-1) > 0.03 {
				t.Errorf("%s: %s %.2f us of the draws, %.2f of all seeds %v", op, what, v[0], v[1], all)
			}
		}
		n := 0
		for _, s := range d.Simulated {
			n += s.For
		}
		if n != d.N {
			t.Errorf("draws stand for %d of %d", n, d.N)
		}
	}
}

// Where no draw matters there is one simulation: switches that choose otherwise, nodes that
// share their leaf, and NCCL's formula.
func TestOneSimulationWhereNoDrawMatters(t *testing.T) {
	for name, of := range map[string]struct {
		routing fabric.Routing
		perLeaf int
	}{"adaptive": {fabric.Adaptive, 2}, "static": {fabric.Static, 2}, "one leaf": {fabric.ECMP, 4}} {
		spec, opt := over(t, "all_reduce", of.routing, of.perLeaf)
		row := rowOf(t, spec, opt)
		if spec.Seed = 1; row.Facts.Draws != nil || row.Out != rowOf(t, spec, opt).Out {
			t.Errorf("%s: %+v", name, row.Facts.Draws)
		}
	}
}

// What spreads queue pairs is tried at the last size where the draws differ: it is not slower
// than the median, and the cable that holds up is named with its queue pairs.
func TestWhatSpreadsQueuePairs(t *testing.T) {
	spec, opt := over(t, "all_reduce", fabric.ECMP, 2)
	spec.Workload.Sizes = []string{"4M", "16M"}
	r, err := scenario.Run(context.Background(), spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	d := r.Rows[1].Facts.Draws
	if first := r.Rows[0].Facts.Draws; first != nil && first.Spread != nil {
		t.Errorf("first size: %+v", first)
	}
	if d == nil || d.Band() < 0.1 {
		t.Fatalf("draws %+v", d)
	}
	if c := d.Crowd; c == nil || c.QueuePairs < 2 || c.Of < c.QueuePairs || c.Beside < 2 {
		t.Errorf("crowd %+v", c)
	}
	if len(d.Spread) != 2 {
		t.Fatalf("tried %+v", d.Spread)
	}
	for _, s := range d.Spread {
		if s.Us > 1.02*d.MedianUs || s.Us < 0.9*d.LeastUs && s.Setting == "" {
			t.Errorf("%s takes %.2f us, the median draw %.2f", s.Setting, s.Us, d.MedianUs)
		}
	}
}

// Equal Specs give equal bytes, whatever runs side by side, and a trace is of the draw of its row.
func TestDrawsAreReproducible(t *testing.T) {
	spec, opt := over(t, "all_reduce", fabric.ECMP, 2)
	var first []byte
	for _, workers := range []int{1, 3} {
		opt.Workers = workers
		r, err := scenario.Run(context.Background(), spec, opt)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Errorf("%d workers: %s\none: %s", workers, b.Bytes(), first)
		}
	}
}
