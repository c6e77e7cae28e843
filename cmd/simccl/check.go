package main

import (
	"fmt"
	"io"

	"github.com/simccl/simccl/internal/check"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/logcheck"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/internal/process"
	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	update := false
	var q logcheck.Request
	c := &cobra.Command{Use: "check DIR | --log FILE...", Short: "Compare decisions with stored ones, or with NCCL's log",
		Long: `check is for continuous integration. For every DIR/NAME.args, which holds the
options of an inspect command (file names relative to DIR, # begins a comment),
it compares the decision with DIR/NAME.json: numbers to 1e-5 of themselves, all
else exactly. Exit status 7 and the differences if there are any.

--update writes the documents instead.

With --log it reads NCCL's own logs of one job (NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,ENV,GRAPH,TUNING; a file of all ranks or one of each, also
gzip), takes version, settings and topology out of them, decides by itself and
compares every line: system, graphs, trees, rings, channels, cost table, routes
and choices. Exit status 7 and the first differences if there are any.`,
		Example: `  echo "--topo dgx.xml --nodes 2" > ci/dgx-2.args
  simccl check ci --update && git add ci
  simccl check ci
  simccl check --log nccl.log.gz`,
		Args: func(c *cobra.Command, args []string) error {
			if len(q.Logs) > 0 {
				return nil
			}
			return exactly("DIR")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(q.Logs) == 0 {
				return a.check(args[0], update)
			}
			q.Logs, q.Env = append(q.Logs, args...), a.Env
			return a.checkLogs(&q)
		}}
	f := c.Flags()
	f.BoolVar(&update, "update", false, "write what is decided now")
	f.StringArrayVar(&q.Logs, "log", nil, "compare with the log `FILE` of NCCL, and with further ones named after it")
	f.StringVar(&q.Topo, "topo", "", "with --log: topology `FILE` in place of what the log says")
	f.StringVar(&q.Version, "nccl-version", "", "with --log: rules of `VERSION` in place of the log's")
	f.StringVar(&q.JUnit, "junit", "", "with --log: also write a JUnit report to `FILE`")
	f.BoolVar(&q.GitHub, "github", false, "with --log: also print annotations for GitHub Actions")
	return c
}

// checkLogs compares with NCCL's logs.
func (a *app) checkLogs(q *logcheck.Request) error {
	rep, err := q.Run(func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxLog) },
		func(name string, data []byte) error { return newfile.Write(a.Path(name), data) })
	switch {
	case err != nil:
		return fail.Input(err)
	case a.json:
		err = a.PrintJSON(rep)
	default:
		err = a.PrintText(rep.Text())
	}
	if err == nil && !rep.Equal {
		err = fail.Printed("the log differs from what simccl decides")
	}
	return err
}

// check compares the decisions of a directory, or stores them.
func (a *app) check(dir string, update bool) error {
	cases, err := check.Cases(dir)
	if err != nil {
		return err
	}
	run := check.Run{Update: update, Decide: a.decide,
		ReadOptions:  func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxSettings) },
		ReadDocument: func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxResults) }}
	var errs []error
	verdicts := []check.Verdict{}
	for _, c := range cases {
		v, err := run.Check(c)
		errs = append(errs, err)
		if verdicts = append(verdicts, v); !a.json {
			fmt.Fprint(a.Out, v.Text(a.Paint(a.Out)))
		}
	}
	if a.json {
		errs = append(errs, a.PrintJSON(verdicts))
	}
	return fail.Join(errs...)
}

// decide runs inspect with options, in a directory.
func (a *app) decide(words []string, dir string) (text []byte, err error) {
	sub := &app{Process: a.Process}
	sub.Out, sub.Dir = io.Discard, dir
	var m machineFlags
	c := nested("inspect", exactly(), func(*cobra.Command, []string) error {
		x, err := m.load(sub)
		if err != nil {
			return err
		}
		text, err = sub.document(x)
		return err
	})
	m.register(c)
	c.Flags().StringArrayVar(&sub.Env, "env", a.Env, "")
	c.SetArgs(words)
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	return text, c.Execute()
}

// nested is a command whose options are in a file or in another option.
func nested(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, SilenceUsage: true, SilenceErrors: true, Args: args, RunE: run}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	return c
}
