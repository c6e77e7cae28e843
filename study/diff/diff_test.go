package diff_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/study/diff"
	"github.com/simccl/simccl/units"
)

// TestComparisons compares the two scenarios of each archive of testdata, a.json
// and b.json, for an all_reduce of 64 KiB, and checks the text. The machine class
// is that of the stories of the timing model, of round numbers.
func TestComparisons(t *testing.T) {
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives")
	}
	for _, file := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := compare(t, load(t, a, "A", "a.json"), load(t, a, "B", "b.json"))
			rest := a.Files[:0]
			for _, f := range a.Files {
				if f.Name != "want" {
					rest = append(rest, f)
				}
			}
			a.Files = append(rest, txtar.File{Name: "want", Data: []byte(d.Text())})
			golden.Text(t, file, string(txtar.Format(a)))
		})
	}
}

// load builds a side of an archive's scenario.
func load(t *testing.T, a *txtar.Archive, name, member string) *diff.Side {
	t.Helper()
	for _, f := range a.Files {
		if f.Name != member {
			continue
		}
		spec, err := scenario.Parse(f.Data, member)
		if err != nil {
			t.Fatal(err)
		}
		return side(t, name, spec)
	}
	t.Fatalf("no member %s", member)
	return nil
}

func side(t *testing.T, name string, spec scenario.Spec) *diff.Side {
	t.Helper()
	s, err := diff.Load(diff.Side{Name: name, Spec: spec}, scenario.Options{Files: site.Files(t),
		Settings: config.Sources{NoEnv: true}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compare(t *testing.T, a, b *diff.Side) *diff.Document {
	t.Helper()
	d, err := diff.New(context.Background(), a, b, []coll.Func{coll.AllReduce},
		[]scenario.Size{{Asked: 64 << 10}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestSameSidesDoNotDiffer: a side compared with itself has no difference of any
// kind, and two sides that are swapped have each other's figures.
func TestSameSidesDoNotDiffer(t *testing.T) {
	spec := func(nodes int, env map[string]string) scenario.Spec {
		return scenario.Spec{
			Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml", Count: nodes}}},
			NCCL:    scenario.NCCL{Env: env}}
	}
	one, other := side(t, "A", spec(1, nil)), side(t, "B", spec(2, map[string]string{"NCCL_PROTO": "Simple"}))
	same := compare(t, one, one)
	if len(same.Inputs) != 0 || len(same.Topology) != 0 || same.A != same.B {
		t.Errorf("a side differs from itself:\n%s", same.Text())
	}
	ab, ba := compare(t, one, other), compare(t, other, one)
	if ab.A != ba.B || ab.B != ba.A || len(ab.Inputs) != len(ba.Inputs) || len(ab.Inputs) == 0 {
		t.Fatalf("swapped sides:\n%s\n%s", ab.Text(), ba.Text())
	}
	for i := range ab.Inputs {
		if x, y := ab.Inputs[i], ba.Inputs[i]; x.What != y.What || x.A != y.B || x.B != y.A {
			t.Errorf("input %d: %+v, swapped %+v", i, x, y)
		}
	}
	if _, err := json.Marshal(ab); err != nil {
		t.Error(err)
	}
}

// TestASideThatFailsIsNamed: an error of a simulation says of which side it is.
func TestASideThatFailsIsNamed(t *testing.T) {
	nodes := scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4-4.xml", Count: 1}}}
	good := side(t, "A", scenario.Spec{Machine: nodes})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := diff.New(ctx, good, side(t, "B", scenario.Spec{Machine: nodes}), []coll.Func{coll.AllReduce},
		[]scenario.Size{{Asked: units.Bytes(1 << 20)}}, nil)
	var of *diff.SideError
	if !errors.As(err, &of) || of.Name != "A" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want side A's, cancelled", err)
	}
}
