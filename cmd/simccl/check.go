package main

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/newfile"
	"github.com/simccl/simccl/study/check"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/workload/inputs"
	"github.com/spf13/cobra"
)

func newCheck(a *app) *cobra.Command {
	var run check.Run
	var q logcheck.Request
	c := &cobra.Command{Use: "check DIR | --log FILE...",
		Short: "Compare decisions with stored ones, or with NCCL's log",
		Long: `check is for continuous integration. For every DIR/NAME.args, which holds the
options of an inspect command (file names relative to DIR, # begins a comment),
it compares the decision with DIR/NAME.json. Exit status 7 and the differences
if there are any.

--update writes the documents instead: the choices by ranges of sizes and a hash
of each other section. With --whole it writes all that inspect --json prints, of
which check compares numbers to 1e-5 of themselves and names each difference.

With --log it reads NCCL's own logs of one job (NCCL_DEBUG=INFO
NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH,TUNING; a file of all ranks or one of each, also
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
			return cli.Exactly("DIR")(c, args)
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if q.JUnit == "-" && (a.JSON || q.GitHub) {
				return usage("--junit -: standard output takes one report; leave --json and --github out, " +
					"or write a file")
			}
			if len(q.Logs) == 0 {
				run.JUnit = q.JUnit
				return a.check(args[0], &run, q.GitHub)
			}
			q.Logs, q.Env = append(q.Logs, args...), a.Env
			return a.checkLogs(&q)
		}}
	f := c.Flags()
	f.BoolVar(&run.Update, "update", false, "write what is decided now")
	f.BoolVar(&run.Whole, "whole", false, "with --update: write whole documents")
	f.StringArrayVar(&q.Logs, "log", nil,
		"compare with the log `FILE` of NCCL, and with further ones named after it")
	f.StringVar(&q.Topo, "topo", "", "with --log: topology `FILE` in place of what the log says")
	f.StringVar(&q.Version, "nccl-version", "", "with --log: rules of `VERSION` in place of the log's")
	f.StringVar(&q.JUnit, "junit", "",
		"also write a JUnit report to `FILE`; - is standard output, with nothing else on it")
	f.BoolVar(&q.GitHub, "github", false, "also print annotations for GitHub Actions")
	return c
}

// checkLogs compares with NCCL's logs.
func (a *app) checkLogs(q *logcheck.Request) error {
	rep, err := q.Run(func(name string) ([]byte, error) { return a.readChecked(q, name) }, a.writeReport)
	switch {
	case err != nil:
		return fail.Input(err)
	case q.JUnit == "-":
	case a.JSON:
		err = a.PrintJSON(rep)
	default:
		err = a.PrintText(rep.Text())
	}
	if err == nil && !rep.Equal {
		err = fail.Printed("the log differs from what simccl decides")
	}
	return err
}

// readChecked reads a log, or the machine that takes the place of its system print, in any form.
func (a *app) readChecked(q *logcheck.Request, name string) ([]byte, error) {
	if name == q.Topo {
		opt := a.Options(nil)
		f, err := opt.ReadTopology(name)
		if err != nil {
			return nil, err
		}
		return f.Data, nil
	}
	data, err := a.ReadFile(name, process.MaxLog)
	if err == nil && slices.Contains(q.Logs, name) {
		err = inputs.Want(data, name, inputs.NCCLLog, inputs.SystemPrint)
	}
	return data, err
}

// check compares the decisions of a directory, or stores them.
func (a *app) check(dir string, run *check.Run, github bool) error {
	run.Decide, run.Write, run.Now = a.decide, a.writeReport, time.Now
	run.ReadOptions = func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxSettings) }
	run.ReadDocument = func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxResults) }
	if !a.JSON && run.JUnit != "-" {
		run.Print = func(v *check.Verdict) { fmt.Fprint(a.Out, v.Text(a.Paint(a.Out))) }
	}
	verdicts, err := run.Dir(dir)
	switch {
	case verdicts == nil:
		return err
	case a.JSON:
		return fail.Join(err, a.PrintJSON(verdicts))
	case github:
		fmt.Fprint(a.Out, check.Report(dir, verdicts).Annotations())
	}
	return err
}

// writeReport writes a file; "-" is standard output.
func (a *app) writeReport(name string, data []byte) error {
	if name == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	return newfile.Write(a.Path(name), data)
}

// decide runs inspect with options, in a directory.
func (a *app) decide(words []string, dir string) (text []byte, err error) {
	sub := appOf(a.Process)
	sub.Out, sub.Dir = io.Discard, dir
	var m cli.Machine
	c := nested("inspect", cli.Exactly(), func(*cobra.Command, []string) error {
		x, err := m.Load(&sub.App)
		if err != nil {
			return err
		}
		text, err = sub.document(x)
		return err
	})
	m.Register(c)
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
