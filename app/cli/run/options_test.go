package run

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
)

// unset are the options of a command line without flags.
func unset() *RunOptions {
	r := &RunOptions{}
	r.Register(&cobra.Command{})
	return r
}

// ran is what a run prints and the CSV file that it writes.
func ran(t *testing.T, csv string, run func(a *cli.App) error) (table, rows string) {
	t.Helper()
	var out bytes.Buffer
	a := &cli.App{Process: process.Process{Out: &out, Err: &bytes.Buffer{}, Args: []string{"run"}}}
	if err := run(a); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), string(text)
}

// TestOptionsAreTheCommandLine: Options that a program sets do what the same command line
// does, with the schedule, columns and files that a Spec does not hold.
func TestOptionsAreTheCommandLine(t *testing.T) {
	csv := filepath.Join(t.TempDir(), "rows.csv")
	schedule := filepath.Join("..", "..", "..", "testdata", "schedules", "allpairs4.xml")
	line, lineRows := ran(t, csv, func(a *cli.App) error {
		c := Run(a)
		c.SetArgs([]string{"all_reduce", "-g", "4", "--nodes", "1", "--sizes", "64K,96",
			"--schedule", schedule, "--columns", "+algo,limit", "--csv", csv})
		return c.ExecuteContext(t.Context())
	})
	value, valueRows := ran(t, csv, func(a *cli.App) error {
		o := unset()
		o.Op, o.Machine.GPUs, o.Machine.Nodes, o.Schedule, o.CSV = "all_reduce", 4, 1, schedule, csv
		o.Test.Sizes, o.Test.Columns = "64K,96", "+algo,limit"
		return o.Run(t.Context(), a)
	})
	if line != value || lineRows != valueRows {
		t.Errorf("the command line prints\n%s\nand its options\n%s", line, value)
	}
}

// TestSizesNeedNoCommandLine: a sweep that values describe is one, in two ways it is refused,
// and of nothing it is nccl-tests' own where a command line asks for one.
func TestSizesNeedNoCommandLine(t *testing.T) {
	o := unset()
	if o.Test.Sized() {
		t.Error("no sizes were asked for")
	}
	if o.Test.Min = "8"; !o.Test.Sized() {
		t.Error("a smallest size is a sweep")
	}
	if o.Test.Sizes = "96"; o.Test.OneWay() == nil {
		t.Error("sizes given in two ways are taken")
	}
}
