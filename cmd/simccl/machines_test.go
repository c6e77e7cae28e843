package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo/builtin"
)

// TestMachineDecisions: what NCCL decides on the machines that are generated is what
// testdata/machines keeps, at 1, 2 and 16 nodes (-short: 2 alone). simccl check testdata/machines
// --update writes it anew.
func TestMachineDecisions(t *testing.T) {
	for _, m := range builtin.NVIDIA() {
		for _, nodes := range []int{1, 2, 16} {
			if _, err := os.Stat(golden.Root(t, "testdata", "machines", fmt.Sprintf("%s.n%d.json", m.Name,
				nodes))); err != nil {
				t.Errorf("no decision of %s on %d nodes: %v", m.Name, nodes, err)
			}
		}
	}
	dir := golden.Root(t, "testdata", "machines")
	if testing.Short() {
		files, err := filepath.Glob(filepath.Join(dir, "*.n2.*"))
		if err != nil {
			t.Fatal(err)
		}
		dir = t.TempDir()
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"check", dir, "--no-env"},
		appOf(process.Process{Out: &out, Err: &errs})); code != cli.StatusOK {
		t.Errorf("status %d\n%s%s", code, &out, &errs)
	}
}

// TestMachinesByName: a machine is taken by name, with or without .xml; hosts of an NVL72
// become one NVLink domain; a mistyped name leads to the right one.
func TestMachinesByName(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"explain", "all_reduce", "1M", "--topo", "dgx-a100"}, cli.StatusOK, "8 ranks"},
		{[]string{"inspect", "--topo", "dgx-a100.xml:2,dgx-h100:1"}, cli.StatusOK, ""},
		{[]string{"run", "all_reduce", "--topo", "aws-p5en", "--nodes", "2", "--sizes", "8"}, cli.StatusOK,
			""},
		{[]string{"graph", "--topo", "gb300-nvl72", "--nodes", "4"}, cli.StatusOK, ""},
		{[]string{"inspect", "--topo", "gb200-nvl72", "--nodes", "20"}, cli.StatusOK, "80 ranks on 2 nodes"},
		{[]string{"inspect", "--topo", "dgx-h10"}, cli.StatusInput, "did you mean dgx-h100?"},
		{[]string{"topo", "list", "nothing-like-it"}, cli.StatusUsage, "no built-in machine"},
		{[]string{"topo", "gen", "dgx-h100", "--spec"}, cli.StatusOK, `"kind": "h100-sxm"`},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append(c.args, "--no-env"), appOf(process.Process{Out: &out, Err: &errs}))
		if text := out.String() + errs.String(); code != c.code || !bytes.Contains([]byte(text),
			[]byte(c.want)) {
			t.Errorf("%v: status %d, want %d and %q\n%.600s", c.args, code, c.code, c.want, text)
		}
	}
}
