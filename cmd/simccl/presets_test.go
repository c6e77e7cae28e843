package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/simccl/simccl/internal/process"
	"github.com/simccl/simccl/internal/status"
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
			{"run", "all_reduce", "--sizes", "64K"}, {"explain", "all_reduce", "1M"}, {"graph"}, {"inspect", "--json"},
		} {
			for k, nodes := range []int{1, 2, max(16, 2*m.Domain)} {
				if os.Getenv("SIMCCL_ALL") == "" && k != (i+j)%3 {
					continue
				}
				var out, errs bytes.Buffer
				args := append(slices.Clone(args), "--topo", m.Name, "--no-env", "--nodes", fmt.Sprint(nodes))
				if code := run(t.Context(), args, appOf(process.Process{Out: &out, Err: &errs})); code != status.OK || out.Len() == 0 {
					t.Errorf("%v: status %d\n%.600s", args, code, &errs)
				}
			}
		}
	}
}
