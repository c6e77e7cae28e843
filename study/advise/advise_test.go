package advise

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/tuning"
	"github.com/simccl/simccl/tuning/tunerfile"
)

const root = "../.."

// here are Options that read the tree's files, and nothing of the environment.
func here() scenario.Options {
	return scenario.Options{Files: os.DirFS(root), Settings: config.Sources{NoEnv: true}}
}

// measuredHere is a request about the GPUs that were measured.
func measuredHere(op string, gpus int, sizes ...string) Request {
	return Request{Options: here(),
		Spec: scenario.Spec{Machine: scenario.Machine{Nodes: []scenario.Nodes{{Topo: "h200x4"}}, GPUs: gpus,
			Multicast: "off"},
			Workload: scenario.Workload{Op: op, Sizes: sizes}, Engine: scenario.Engine{Launch: "graph",
				Jitter: "off"}}}
}

// times reads "PB ranks op bytes eager graph" of a file of testdata/measured/h200x4.
func times(t *testing.T, file, op string) map[int64]float64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "testdata/measured/h200x4", file))
	if err != nil {
		t.Fatal(err)
	}
	out := map[int64]float64{}
	for line := range strings.Lines(string(data)) {
		if w := strings.Fields(line); len(w) == 6 && w[0] == "PB" && w[2] == op {
			n, _ := strconv.ParseInt(w[3], 10, 64)
			us, _ := strconv.ParseFloat(w[5], 64)
			out[n] = us
		}
	}
	return out
}

// TestAdviceAgainstMeasurement: of the algorithms and protocols that were measured, the
// advised one (NCCL's own where nothing is advised) is the fastest or within 3 % of it at
// nine of ten sizes.
func TestAdviceAgainstMeasurement(t *testing.T) {
	for _, c := range []struct {
		op, short, files string
		gpus             int
		algos            []string
	}{
		{"all_reduce", "ar", "more/n2_%s_%s.txt", 2, []string{"Ring", "Tree"}},
		{"all_reduce", "ar", "procs/pb_%s_%s_4.txt", 4, []string{"Ring", "Tree"}},
		{"all_gather", "ag", "procs/pb_%sx_%s_4.txt", 4, []string{"Ring"}},
		{"reduce_scatter", "rs", "procs/pb_%sx_%s_4.txt", 4, []string{"Ring"}},
	} {
		measured := map[string]map[int64]float64{}
		for _, a := range c.algos {
			for _, p := range []string{"LL", "LL128", "Simple"} {
				measured[strings.ToUpper(a+"/"+p)] = times(t, fmt.Sprintf(c.files, a, p), c.short)
			}
		}
		q := measuredHere(c.op, c.gpus, "1K", "4K", "16K", "64K", "256K", "1M", "4M", "16M", "64M", "256M")
		r, err := New(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		good, of := 0, 0
		for i := range r.base.cells {
			chosen := r.base.cells[i]
			if x := r.chosen(i); x != nil {
				chosen = x.cells[i]
			}
			us, least := measured[chosen.algo][chosen.bytes], 1e12
			if us == 0 {
				continue // not measured with this choice
			}
			for _, m := range measured {
				if m[chosen.bytes] > 0 {
					least = min(least, m[chosen.bytes])
				}
			}
			of++
			if us <= 1.03*least {
				good++
			} else {
				t.Logf("%s, %d GPUs, %d bytes: %s, %.2f us, the fastest %.2f", c.op, c.gpus, chosen.bytes,
					chosen.algo, us, least)
			}
		}
		t.Logf("%s, %d GPUs: %d of %d", c.op, c.gpus, good, of)
		if of < 8 || 10*good < 9*of {
			t.Errorf("%s on %d GPUs: the advised choice is the fastest or within 3 %% at %d of %d sizes",
				c.op, c.gpus, good, of)
		}
	}
}

// TestTrustIsThatOfAccuracy: the errors by regime are those of docs/results/ACCURACY.md.
func TestTrustIsThatOfAccuracy(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs/results/ACCURACY.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(data)) {
		w := strings.Split(line, "|")
		if len(w) < 8 || strings.TrimSpace(w[1]) != "held out" {
			continue
		}
		r, ok := heldOut[strings.TrimSpace(w[2])]
		if !ok {
			t.Errorf("%s is not in heldOut", w[2])
		}
		for i, have := range map[int]float64{4: r.all, 6: r.large} {
			if want, _ := strconv.ParseFloat(strings.TrimSpace(w[i]), 64); fmt.Sprintf("%.1f", 100*have) !=
				fmt.Sprintf("%.1f", want) {
				t.Errorf("%s: %.1f %% here, %.1f %% in ACCURACY.md", w[2], 100*have, want)
			}
		}
		found++
	}
	if found != len(heldOut) {
		t.Errorf("%d rows of ACCURACY.md, %d regimes", found, len(heldOut))
	}
}

// TestTunerFile: rows that advise writes gain what advice says; rows of every kind of
// fault are found.
func TestTunerFile(t *testing.T) {
	q := measuredHere("all_reduce", 2, "64K", "4M", "64M")
	r, err := New(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := r.Tuner()
	if err != nil {
		t.Fatal(err)
	}
	check := func(data string) *Check {
		name := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		q.Options.Files = os.DirFS("/")
		c, err := CheckTuner(context.Background(), q, strings.TrimPrefix(name, "/"), []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := check(string(tunerfile.Write(rows)))
	if len(c.Findings) > 0 || c.Gain < 1.05 {
		t.Errorf("the file that advise writes: gain %.3f, %v", c.Gain, c.Findings)
	}
	for i, x := range r.base.cells {
		if best := r.chosen(i); best != nil {
			if g := best.gain(r.base, i); g < worthwhile {
				t.Errorf("%d bytes: chosen with a gain of %.3f", x.bytes, g)
			}
		}
	}
	for text, want := range map[string]string{
		"allreduce,0,1000000000,ring,simple,4,1,2": "loses",
		// others run on one channel
		"allreduce,0,100,ring,ll,4,1,2":             "loses",
		"allreduce,0,1000000000,ring,ll,24,2,2":     "never matches: it is for 2 nodes and there are 1",
		"allreduce,0,1000000000,ring,ll,24,1,8":     "never matches: it is for 8 ranks and there are 2",
		"allreduce,0,1000000000,nvls,simple,24,1,2": "never matches: NVLS Simple is off",
		"allreduce,0,99,ring,ll,4,1,2\n" +
			"allreduce,7,50,tree,ll,4,1,2": "never matches: rows before it, the last in line 1",
		"allreduce,0,49,ring,ll,4,-1,2\nallreduce,50,99,ring,ll,4,1,2\n" +
			"allreduce,7,98,tree,ll,4,1,2": "never matches: rows before it, the last in line 2",
		"allreduce,9,8,ring,ll,4,1,2": "its least size is above its most",
		"alreduce,0,99,ring,ll,4,1,2": "does not know it and takes allreduce",
		"allreduce,0,99,ring":         "drops the row",
	} {
		all := ""
		for _, f := range check(text + "\n").Findings {
			all += f.What + "\n"
		}
		if !strings.Contains(all, want) {
			t.Errorf("%q: found %q, not %q", text, all, want)
		}
	}
}

// TestPluginDecides: rows steer NCCL's choice, and what no row is for runs on one channel.
func TestPluginDecides(t *testing.T) {
	spec := measuredHere("all_reduce", 4, "1M").Spec
	site, err := scenario.Load(&spec, here())
	if err != nil {
		t.Fatal(err)
	}
	m := *site.Comm.Model
	m.Params.Plugin = tunerfile.Parse(
		[]byte("# rows\nallreduce,0,1048575,tree,ll128,7,-1,-1\nallreduce,1048577,4194304,tree,simple,-1,"+
			"1,4,1,-1\n"), "rows").Plugin()
	for _, x := range []struct {
		bytes    int64
		algo     coll.Algorithm
		proto    coll.Protocol
		channels int
	}{{1 << 19, coll.Tree, coll.LL128, 7}, {1 << 20, coll.Ring, coll.LL, 1}, {2 << 20, coll.Tree, coll.Simple,
		1}} {
		c, err := m.Choose(tuning.Op{Func: coll.AllReduce, Count: x.bytes / 4, Type: coll.Float32})
		if err != nil || c.Algo != x.algo || c.Proto != x.proto || c.MaxChannels != x.channels {
			t.Errorf("%d bytes: %s %s on %d channels, %v", x.bytes, c.Algo, c.Proto, c.MaxChannels, err)
		}
	}
	segments, err := m.Segments(tuning.Op{Func: coll.AllReduce, Type: coll.Float32}, 8<<20)
	if err != nil {
		t.Fatal(err)
	}
	if s := segments[0]; s.Algo != coll.Tree || s.Proto != coll.LL128 || s.To != 1048575&^3 {
		t.Errorf("the first segment ends at %d with %s %s", s.To, s.Algo, s.Proto)
	}
}

// TestJob: a job is tried as a whole.
func TestJob(t *testing.T) {
	dir := t.TempDir()
	text := "workload 1\nranks 4\ncomm w *\nlist a 0-3\n  call 0 w all_reduce float sum 16777216\n" +
		"  call 0 w all_gather float sum 4096\n"
	if err := os.WriteFile(filepath.Join(dir, "job.txt"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	q := measuredHere("", 4)
	q.Spec.Workload, q.Spec.Engine, q.Options.Files = scenario.Workload{Job: "job.txt"}, scenario.Engine{},
		os.DirFS(dir)
	r, err := New(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 || r.job[1] != 64<<20 || len(r.Advice) == 0 {
		t.Errorf("rows %v, sizes %v, advice %v", r.Rows, r.job, r.Advice)
	}
	for _, a := range r.Advice {
		if a.Gain < worthwhile || a.Sizes != r.job {
			t.Errorf("%+v", a)
		}
	}
}

// TestKernelsAreAdvised: kernels that applications call are tried where they are asked for, and say what to
// call; a setting of NCCL gains less for a decode's all_reduce of eight GPUs.
func TestKernelsAreAdvised(t *testing.T) {
	q := Request{Kernels: true, Spec: scenario.Spec{
		Machine:  scenario.Machine{Nodes: []scenario.Nodes{{Topo: "dgx-h200", Count: 1}}},
		Workload: scenario.Workload{Op: "all_reduce", Types: []string{"bfloat16"}, Sizes: []string{"64K"}},
		Engine:   scenario.Engine{Launch: "graph"}}}
	r, err := New(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Advice) == 0 || r.Advice[0].Setting != "kernel" || !strings.Contains(r.Advice[0].Line,
		"docs/SERVING.md") ||
		r.Advice[0].Uncertainty <= 0 || r.Rows[0].BestUs >= r.Rows[0].Us {
		t.Errorf("%+v %+v", r.Advice, r.Rows)
	}
	q.Kernels = false
	if r, err = New(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Advice {
		if a.Setting == "kernel" || a.Setting == "buffers" {
			t.Errorf("not asked for: %+v", a)
		}
	}
}
