package rebuild

import (
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/job/streams"
	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/kineto"
)

// truth reads the recordings of a job beside the checkout.
func truth(t testing.TB, mode string) []*kineto.Trace {
	t.Helper()
	var out []*kineto.Trace
	for r := range 4 {
		out = append(out, open(t, filepath.Join("..", "..", "..", "shared", "workloads", "truth", mode,
			fmt.Sprintf("trace_rank%d.json.gz", r))))
	}
	return out
}

func open(t testing.TB, name string) *kineto.Trace {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Skip("the recordings beside the checkout are not there: " + err.Error())
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := kineto.Read(z, filepath.Base(name))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// stepTimes are the times between marks of the host, on average over ranks.
func stepTimes(p *workload.Program, r *streams.Result) []units.Time {
	var out []units.Time
	for rank, list := range p.Of {
		prev, n := units.Time(-1), 0
		for _, m := range p.Marks {
			if m.List != list {
				continue
			}
			at := units.Time(0)
			for s := int(m.Step) - 1; s >= 0; s-- {
				if st := p.Lists[list].Steps[s].Stream; workload.OnHost(st) {
					at = r.Spans[rank][s].End
					break
				}
			}
			if prev >= 0 {
				if n == len(out) {
					out = append(out, 0)
				}
				out[n] += (at - prev) / units.Time(len(p.Of))
				n++
			}
			prev = at
		}
	}
	return out
}

// TestReproduction: the recorded jobs, played with the recorded times of calls and
// nothing shared, take as long on every rank as they did: dependencies, launches and
// gaps are complete, and waiting is simulated.
func TestReproduction(t *testing.T) {
	for _, x := range []struct {
		name   string
		traces func(t testing.TB) []*kineto.Trace
		sizes  []Sized
		waits  WaitCounts // at least
	}{
		{"single", func(t testing.TB) []*kineto.Trace { return truth(t, "single") }, nil, WaitCounts{}},
		{"ddp", func(t testing.TB) []*kineto.Trace { return truth(t, "ddp") }, nil,
			WaitCounts{Adjacent: 208, Guessed: 208}},
		{"ep", func(t testing.TB) []*kineto.Trace { return truth(t, "ep") }, nil, WaitCounts{}},
		{"pp", func(t testing.TB) []*kineto.Trace { return truth(t, "pp") }, nil,
			WaitCounts{Adjacent: 120, Watchdog: 100}},
		{"tp", func(t testing.TB) []*kineto.Trace { return truth(t, "tp") }, nil,
			WaitCounts{Adjacent: 256, Watchdog: 200}},
		{"infer", func(t testing.TB) []*kineto.Trace { return measured(t, "trace_rank") }, nil, WaitCounts{}},
		{"graph", func(t testing.TB) []*kineto.Trace { return measured(t, "trace_graph_rank") },
			[]Sized{{Name: "allreduce", Type: "bfloat16", In: 65536, Out: 65536}}, WaitCounts{}},
	} {
		t.Run(x.name, func(t *testing.T) {
			traces := x.traces(t)
			res, err := Job(traces, Options{Sizes: map[int][]Sized{0: x.sizes, 1: x.sizes}})
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Program.Lint(); err != nil {
				t.Fatal(err)
			}
			if w := res.Waits; w.Adjacent < x.waits.Adjacent || w.Watchdog < x.waits.Watchdog ||
				w.Guessed < x.waits.Guessed || w.Unknown > 0 {
				t.Errorf("%+v, want at least %+v", w, x.waits)
			}
			r, err := streams.Run(t.Context(), streams.Apart(res.Program, streams.Recorded, 32<<20))
			if err != nil {
				t.Fatal(err)
			}
			sum, n := 0.0, 0
			for i, tr := range traces {
				one := &workload.Program{Lists: res.Program.Lists, Marks: res.Program.Marks,
					Of: res.Program.Of[i : i+1]}
				for k, got := range stepTimes(one, &streams.Result{Spans: r.Spans[i : i+1]}) {
					want := units.Time(tr.Steps[k].Dur) * 1000
					e := math.Abs(float64(got)/float64(want) - 1)
					sum, n = sum+e, n+1
					if e > 0.05 {
						t.Errorf("rank %d, %s: %v, recorded %v", i, tr.Steps[k].Name, got, want)
					}
				}
			}
			if n != 2*len(traces) || sum/float64(n) > 0.03 {
				t.Errorf("%d steps, mean error %.2f %%", n, 100*sum/float64(n))
			}
			t.Logf("%d steps, mean error %.3f %%, %+v", n, 100*sum/float64(n), res.Waits)
		})
	}
}

// measured reads the recordings of decoding on two GPUs that are in the repository.
func measured(t testing.TB, prefix string) []*kineto.Trace {
	t.Helper()
	var out []*kineto.Trace
	for r := range 2 {
		out = append(out, open(t, filepath.Join("..", "..", "testdata", "measured", "h200x2", "jobs", "infer",
			fmt.Sprintf("%s%d.json.gz", prefix, r))))
	}
	return out
}
