package main

import (
	"fmt"
	"io"

	"github.com/simccl/simccl/internal/check"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/process"
	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	update := false
	c := &cobra.Command{Use: "check DIR", Short: "Compare decisions with stored ones",
		Long: `check is for continuous integration. For every DIR/NAME.args, which holds the
options of an inspect command (file names relative to DIR, # begins a comment),
it compares the decision with DIR/NAME.json: numbers to 1e-5 of themselves, all
else exactly. Exit status 7 and the differences if there are any.

--update writes the documents instead.`,
		Example: `  echo "--topo dgx.xml --nodes 2" > ci/dgx-2.args
  simccl check ci --update && git add ci
  simccl check ci`,
		Args: exactly("DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.check(args[0], update)
		}}
	c.Flags().BoolVar(&update, "update", false, "write what is decided now")
	return c
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
