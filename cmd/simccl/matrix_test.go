package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// matrixDoc is what the matrix looks at in -J's document.
type matrixDoc struct {
	Results []struct {
		Size   int64                      `json:"size"`
		Out    map[string]json.RawMessage `json:"out_of_place"`
		In     map[string]json.RawMessage `json:"in_place"`
		Simccl struct {
			Limit  string  `json:"limiting_link"`
			IdealU float64 `json:"ideal_us"`
			Over   string  `json:"overfull_link"`
			SimUs  float64 `json:"sim_us"`
		} `json:"simccl"`
	} `json:"results"`
}

// Every operation on every machine, on one, two and four nodes: it runs, its
// numbers are numbers, no link carries more than it can, and none would have
// needed longer than the operation took.
func TestEveryOperationOnEveryMachine(t *testing.T) {
	files, _ := filepath.Glob("../../testdata/topos/*.xml")
	more, _ := filepath.Glob("../../../shared/topos/nvidia/*.xml")
	sizes, nodes := "8,4K,1M", []int{1, 2, 4}
	if testing.Short() {
		files, more, nodes = []string{"../../testdata/topos/dgx-a100.xml",
			"../../testdata/topos/h200x4-h2x2.xml"}, nil, []int{1, 2}
	}
	for _, f := range append(files, more...) {
		for _, n := range nodes {
			for _, op := range coll.Funcs() {
				matrixCase(t, f, n, op, sizes)
			}
		}
	}
}

func matrixCase(t *testing.T, file string, nodes int, op coll.Func, sizes string) {
	t.Helper()
	var out, errs bytes.Buffer
	name := fmt.Sprintf("%s N=%d %s", filepath.Base(file), nodes, op.TestName())
	a := appOf(process.Process{Out: &out, Err: &errs, Environ: nil})
	code := run(context.Background(), []string{"run", op.TestName(), "--topo", file, "--nodes",
		fmt.Sprint(nodes), "--sizes", sizes, "-c", "0", "--no-env", "--json"}, a)
	if code != 0 {
		t.Errorf("%s: exit status %d: %s", name, code, strings.TrimSpace(errs.String()))
		return
	}
	var doc matrixDoc
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, r := range doc.Results {
		for _, half := range []map[string]json.RawMessage{r.Out, r.In} {
			for _, key := range []string{"time", "alg_bw", "bus_bw"} {
				var v float64
				if err := json.Unmarshal(half[key], &v); err != nil || math.IsNaN(v) || math.IsInf(v, 0) ||
					v < 0 {
					t.Errorf("%s, %d bytes: %s is %s", name, r.Size, key, half[key])
				}
			}
		}
		if s := r.Simccl; s.Over != "" || s.IdealU > s.SimUs*(1+1e-6) {
			t.Errorf("%s, %d bytes: %.3f us, but %s needs %.3f us; overfull: %q", name, r.Size, s.SimUs,
				s.Limit, s.IdealU, s.Over)
		}
	}
}

// What run takes for granted: these operations take the same time in place and
// not, whatever algorithm, machine and size.
func TestSameTimeInPlace(t *testing.T) {
	for _, args := range [][]string{{"-g", "4", "--nodes", "1"}, {"--nodes", "2"},
		{"--topo", "../../testdata/topos/pcie-a100-4.xml", "--nodes", "2"},
		{"--nodes", "2", "--env", "NCCL_ALGO=Tree;reducescatter:ring;reduce:ring"},
		{"-g", "1", "--nodes", "4"}} {
		for _, f := range []coll.Func{coll.AllReduce, coll.ReduceScatter, coll.Reduce} {
			s := prepared(t, new(runFlags), append([]string{f.TestName(), "--no-env", "--sizes", "96,33K,5M"},
				args...))
			for _, l := range s.r.Lines() {
				var times [2]string
				for i, inPlace := range []bool{false, true} {
					p := l.Operation
					p.InPlace = inPlace
					o, err := s.r.Simulate(context.Background(), p, trace.Discard, nccl.Options{}, nil)
					if err != nil {
						t.Fatal(err)
					}
					times[i] = o.Result.Elapsed.String()
				}
				if times[0] != times[1] {
					t.Errorf("%v %v, %d bytes: %s, in place %s", args, f, l.Shown, times[0], times[1])
				}
			}
		}
	}
}

// prepared parses the arguments of run.
func prepared(t *testing.T, r *runFlags, args []string) *tableRun {
	t.Helper()
	a := appOf(process.Process{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})
	c := &cobra.Command{Use: "run"}
	r.register(c)
	c.Flags().StringArrayVar(&a.Env, "env", nil, "")
	c.Flags().BoolVar(&a.NoEnv, "no-env", false, "")
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	s, err := r.prepare(a, c, args[:1])
	if err != nil {
		t.Fatal(err)
	}
	return s
}
