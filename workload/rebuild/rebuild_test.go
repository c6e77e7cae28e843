package rebuild

import (
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/units"
	"github.com/simccl/simccl/workload"
	"github.com/simccl/simccl/workload/kineto"
	"github.com/simccl/simccl/workload/play"
)

// truth reads the recordings of a job beside the checkout.
func truth(t testing.TB, mode string) []*kineto.Trace {
	t.Helper()
	var out []*kineto.Trace
	for r := range 4 {
		name := filepath.Join("..", "..", "..", "shared", "workloads", "truth", mode, fmt.Sprintf("trace_rank%d.json.gz", r))
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
		out = append(out, tr)
	}
	return out
}

// stepTimes are the times between marks of the host, on average over ranks.
func stepTimes(p *workload.Program, r *play.Result) []units.Time {
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
					at = r.End[rank][s]
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

// TestReproduction: the recorded jobs, played with the recorded times of calls, take
// as long as they did.
func TestReproduction(t *testing.T) {
	for _, mode := range []string{"single", "ddp", "ep", "pp", "tp"} {
		t.Run(mode, func(t *testing.T) {
			traces := truth(t, mode)
			res, err := Job(traces, Options{})
			var ranksSteps [][]int64
			for _, tr := range traces {
				var l []int64
				for _, s := range tr.Steps {
					l = append(l, s.Dur)
				}
				ranksSteps = append(ranksSteps, l)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Program.Lint(); err != nil {
				t.Fatal(err)
			}
			r, err := play.Play(res.Program, play.Options{Cost: play.Recorded, Buffered: 32 << 20})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%+v %+v", res.Waits, res.Clocks)
			for _, n := range res.Notes {
				t.Log(n)
			}
			for i, got := range stepTimes(res.Program, r) {
				want := res.Steps[i].Mean
				t.Logf("%s: %.3f ms, recorded %.3f (%+.2f %%)", res.Steps[i].Name, float64(got)/1e9, float64(want)/1e9, 100*(float64(got)/float64(want)-1))
			}
			for i, rk := range res.Clocks {
				var rec []string
				for _, s := range ranksSteps[i] {
					rec = append(rec, fmt.Sprintf("%.3f", float64(s)/1e6))
				}
				one := *res.Program
				t.Log(rk.Rank, rec, perRank(&one, r, i))
			}
			ideal := *res.Program
			ideal.Lists = nil
			for _, l := range res.Program.Lists {
				steps := append([]workload.Step{}, l.Steps...)
				for i := range steps {
					if workload.OnHost(steps[i].Stream) {
						steps[i].Time = 0
					}
				}
				ideal.Lists = append(ideal.Lists, workload.List{Name: l.Name, Steps: steps})
			}
			if r, err = play.Play(&ideal, play.Options{Cost: play.Recorded, Buffered: 32 << 20}); err != nil {
				t.Fatal(err)
			}
			t.Logf("ideal host: %v ms", stepTimes(&ideal, r))
		})
	}
}

func perRank(p *workload.Program, r *play.Result, i int) []units.Time {
	q := &workload.Program{Lists: p.Lists, Marks: p.Marks, Of: p.Of[i : i+1]}
	return stepTimes(q, &play.Result{End: r.End[i : i+1]})
}
