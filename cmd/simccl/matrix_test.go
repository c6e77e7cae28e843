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
