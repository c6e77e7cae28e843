package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/process"
	"github.com/simccl/simccl/internal/status"
	"github.com/simccl/simccl/topo/builtin"
)

// TestEveryMachineRuns: every machine by name is simulated and explained, over two
// nodes and over sixteen, or two whole NVLink domains; TestMachineDecisions has their decisions.
func TestEveryMachineRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some fifty machines")
	}
	for _, m := range builtin.List() {
		for _, args := range [][]string{
			{"run", "all_reduce", "--nodes", "2", "--sizes", "64K"},
			{"explain", "all_reduce", "1M", "--nodes", fmt.Sprint(max(16, 2*m.Domain))},
			{"graph", "--nodes", "1"},
		} {
			var out, errs bytes.Buffer
			args = append(args, "--topo", m.Name, "--no-env")
			if code := run(t.Context(), args, appOf(process.Process{Out: &out, Err: &errs})); code != status.OK || out.Len() == 0 {
				t.Errorf("%v: status %d\n%.600s", args, code, &errs)
			}
		}
	}
}

// TestConvertRefusesByName: files that describe a machine in a way that is not read say
// so, and what to give instead.
func TestConvertRefusesByName(t *testing.T) {
	for _, text := range []string{"<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\"/>\n", "h:1:2 [0] NCCL INFO Bootstrap\n"} {
		file := filepath.Join(t.TempDir(), "machine")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"topo", "convert", file}, appOf(process.Process{Out: &out, Err: &errs}))
		if code != status.NotImplemented || !strings.Contains(errs.String(), "nvidia-smi topo -m") {
			t.Errorf("%q: status %d, %s", text, code, &errs)
		}
	}
}
