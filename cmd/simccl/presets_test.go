package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/topo/builtin"
)

// TestEveryMachineRuns: every machine by name is decided on, simulated, explained and drawn
// on one node, two and sixteen (or two whole NVLink domains); TestMachineDecisions has their
// decisions. Without SIMCCL_ALL each command takes one of the three, another for the next
// machine.
func TestEveryMachineRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some fifty machines")
	}
	for i, m := range builtin.List() {
		for j, args := range [][]string{
			{"run", "all_reduce", "--sizes", "64K"}, {"explain", "all_reduce", "1M"}, {"graph"},
			{"inspect", "--json"},
		} {
			for k, nodes := range []int{1, 2, max(16, 2*m.Domain)} {
				if os.Getenv("SIMCCL_ALL") == "" && k != (i+j)%3 {
					continue
				}
				var out, errs bytes.Buffer
				args := append(slices.Clone(args), "--topo", m.Name, "--no-env", "--nodes", fmt.Sprint(nodes))
				if code := run(t.Context(), args, appOf(process.Process{Out: &out, Err: &errs})); code !=
					cli.StatusOK || out.Len() == 0 {
					t.Errorf("%v: status %d\n%.600s", args, code, &errs)
				}
			}
		}
	}
}

// TestAbsentTakesLonger: with one algorithm and protocol a large operation is not faster
// without a NIC or a rail; where NCCL chooses it can be (docs/FABRIC.md).
func TestAbsentTakesLonger(t *testing.T) {
	us := func(more ...string) float64 {
		var out, errs bytes.Buffer
		args := append([]string{"run", "all_reduce", "--nodes", "2", "--sizes", "1G", "-c", "0", "--launch",
			"graph", "--json", "--no-env", "--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple"}, more...)
		if code := run(t.Context(), args, appOf(process.Process{Out: &out,
			Err: &errs})); code != cli.StatusOK {
			t.Fatalf("%v: status %d\n%s", args, code, &errs)
		}
		var doc struct {
			Results []struct {
				Out struct {
					Time float64 `json:"time"`
				} `json:"out_of_place"`
			} `json:"results"`
		}
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Results) != 1 {
			t.Fatal(err, len(doc.Results))
		}
		return doc.Results[0].Out.Time
	}
	whole := us()
	for _, f := range []string{"nic=node0/mlx5_3:absent", "nic=mlx5_3:absent", "rail=3:absent"} {
		if part := us("--fault", f); part < whole {
			t.Errorf("%s: %.1f us, %.1f us with all", f, part, whole)
		}
	}
}
