package run

import (
	"bytes"
	"context"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/trace/nccl"
	"github.com/spf13/cobra"
)

// What run takes for granted: these operations take the same time in place and
// not, whatever algorithm, machine and size.
func TestSameTimeInPlace(t *testing.T) {
	for _, args := range [][]string{{"-g", "4", "--nodes", "1"}, {"--nodes", "2"},
		{"--topo", "../../../testdata/topos/pcie-a100-4.xml", "--nodes", "2"},
		{"--nodes", "2", "--env", "NCCL_ALGO=Tree;reducescatter:ring;reduce:ring"},
		{"-g", "1", "--nodes", "4"}} {
		for _, f := range []coll.Func{coll.AllReduce, coll.ReduceScatter, coll.Reduce} {
			s := prepared(t, append([]string{f.TestName(), "--no-env", "--sizes", "96,33K,5M"}, args...))
			for _, l := range s.Running.Lines() {
				var times [2]string
				for i, inPlace := range []bool{false, true} {
					p := l.Operation
					p.InPlace = inPlace
					o, err := s.Running.Simulate(context.Background(), p, trace.Discard, nccl.Options{}, nil)
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
func prepared(t *testing.T, args []string) *Prepared {
	t.Helper()
	a := &cli.App{Process: process.Process{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}
	c := &cobra.Command{Use: "run"}
	var r RunOptions
	r.Register(c)
	c.Flags().StringArrayVar(&a.Env, "env", nil, "")
	c.Flags().BoolVar(&a.NoEnv, "no-env", false, "")
	if err := c.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	r.Take(args[:1])
	s, err := r.Prepare(a)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
