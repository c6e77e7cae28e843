package jobs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/jobs"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload/gen"
)

// made writes a job to a file.
func made(t *testing.T, c gen.Config) string {
	t.Helper()
	j, err := gen.Make(c)
	if err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	name := filepath.Join(t.TempDir(), "job.txt")
	if err := os.WriteFile(name, []byte(j.Folded.Format()), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

// random is a job of eight ranks.
func random(r *rand.Rand) gen.Config {
	pick := func(of ...int) int { return of[r.IntN(len(of))] }
	c := gen.Config{Model: gen.Model{Layers: 4, Hidden: 512, Heads: 8, KVHeads: 8, FFN: 2048, Vocab: 1024,
		TopK: 1},
		Seq:        256,
		MicroBatch: 1, Type: coll.BFloat16, GradType: coll.BFloat16,
		TP: pick(1, 2, 4), PP: pick(1, 2), Virtual: 1, Bucket: units.Bytes(pick(1<<20, 4<<20)), Prefetch: 1,
		EP: 1, Capacity: 1, CP: 1, Iterations: pick(1, 2)}
	c.DP = 8 / (c.TP * c.PP)
	c.SequenceParallel = c.TP > 1 && r.IntN(2) == 0
	c.Schedule = gen.Schedule(pick(0, 1, 3))
	if c.PP == 1 && c.DP > 1 {
		c.FSDP = pick(0, 1, 2, 3)
	}
	c.NoOverlap = r.IntN(2) == 0
	c.GlobalBatch = int64(c.DP * pick(2, 4))
	c.GPU, _ = gen.Peak([]string{"h100", "gb200", "a100", "h200"}[r.IntN(4)], c.Type)
	return c
}

// printed is what a command prints as JSON.
func printed(t *testing.T, run func(a *cli.App) error) map[string]any {
	t.Helper()
	var out bytes.Buffer
	if err := run(&cli.App{Process: process.Process{Out: &out, Err: io.Discard}, JSON: true}); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	return got
}

func replayed(t *testing.T, words ...string) map[string]any {
	t.Helper()
	return printed(t, func(a *cli.App) error {
		c := jobs.Replay(a)
		c.SetArgs(words)
		return c.ExecuteContext(context.Background())
	})
}

// TestReplayIsItsSimulation: a made job takes in replay what it takes in run --scenario, in every figure:
// iterations, bounds, groups, calls, memory, the GPU that it was made for.
func TestReplayIsItsSimulation(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 41))
		file, machine := made(t, random(r)), []string{"dgx-h100", "dgx-b200", "dgx-a100"}[r.IntN(3)]
		a := replayed(t, file, "--topo", machine, "--nodes", "1")
		b := printed(t, func(a *cli.App) error {
			spec := scenario.Spec{
				Machine:  scenario.Machine{Nodes: []scenario.Nodes{{Topo: machine, Count: 1}}},
				Workload: scenario.Workload{Job: file}}
			return jobs.ReplayScenario(t.Context(), a, spec, func(err error) error { return err })
		})
		if diff := cmp.Diff(a, b); diff != "" {
			t.Errorf("seed %d: %s", seed, diff)
		}
		if bound, ok := a["boundUs"].(float64); !ok || bound <= 0 || a["memoryBytesPerGpu"] == nil {
			t.Errorf("seed %d: at least %v, memory %v", seed, a["boundUs"], a["memoryBytesPerGpu"])
		}
	}
}

// TestMadeForTheMachine: on one machine a job computes the same, whichever GPU it was made for, and says how
// it was scaled; for the machine's own it says nothing.
func TestMadeForTheMachine(t *testing.T) {
	c := random(rand.New(rand.NewPCG(1, 1)))
	of := func(name string) map[string]any {
		c.GPU, _ = gen.Peak(name, c.Type)
		return replayed(t, made(t, c), "--topo", "dgx-h100", "--nodes", "1")
	}
	own, other := of("h100"), of("gb200")
	if own["gpu"] != nil || other["gpu"] == nil {
		t.Errorf("made for it %v, for another %v", own["gpu"], other["gpu"])
	}
	for _, k := range []string{"iterationUs", "computeUs", "exposedUs"} {
		a, _ := own[k].(float64)
		b, _ := other[k].(float64)
		if math.Abs(a/b-1) > 1e-6 {
			t.Errorf("%s is %v, made for another GPU %v", k, a, b)
		}
	}
}

// TestHostByMachine: where nothing asks for a host, a profiler's recording runs with its own on its own
// machine and with the one without a profiler on another, and so do all that are compared.
func TestHostByMachine(t *testing.T) {
	dir := golden.Root(t, "testdata", "measured", "h200x2", "jobs", "infer")
	files, err := filepath.Glob(filepath.Join(dir, "trace_graph*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	files = append(files, filepath.Join(dir, "meta.json"))
	for _, c := range []struct {
		words []string
		host  string
	}{
		{nil, "recorded"}, {[]string{"--topo", "dgx-h200", "-g", "2", "--nodes", "1"}, "recorded"},
		{[]string{"--topo", "dgx-b200", "-g", "2", "--nodes", "1"}, "ideal"},
		{[]string{"--gpu", "B200"}, "ideal"}, {[]string{"--topo", "dgx-h200", "-g", "1", "--nodes", "2"},
			"ideal"}, {[]string{"--gpu", "B200", "--host", "recorded"}, "recorded"},
		{[]string{"--vs", "dgx-b200 -g 2 --nodes 1"}, "ideal"},
	} {
		got := replayed(t, append(files[:len(files):len(files)], c.words...)...)
		if got["host"] != c.host {
			t.Errorf("%q: host %v, want %s", c.words, got["host"], c.host)
		}
		if as, _ := got["recordedAs"].(string); (as == "") != (c.host == "recorded" &&
			(len(c.words) < 2 || c.words[0] != "--gpu")) {
			t.Errorf("%q: recorded %s", c.words, as)
		}
	}
}
