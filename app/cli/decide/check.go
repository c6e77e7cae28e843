package decide

import (
	"context"
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

// CheckOptions are the flags and arguments of check.
type CheckOptions struct {
	Dir           string // of stored decisions, where Log names no log
	Update, Whole bool   // write the decisions, whole documents
	// Log is the comparison with NCCL's logs. Its JUnit and GitHub also apply to stored decisions; its Env is
	// the process's.
	Log logcheck.Request
}

// Check returns `simccl check`.
func Check(a *cli.App) *cobra.Command {
	var o CheckOptions
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
and choices. Exit status 7 and the first differences if there are any. Logs of AMD's
RCCL need --topo, since their system print does not say what GPUs there are.`,
		Example: `  echo "--topo dgx.xml --nodes 2" > ci/dgx-2.args
  simccl check ci --update && git add ci
  simccl check ci
  simccl check --log nccl.log.gz`,
		Args: func(c *cobra.Command, args []string) error {
			if len(o.Log.Logs) > 0 {
				return nil
			}
			return cli.Exactly("DIR")(c, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(o.Log.Logs) == 0 {
				o.Dir = args[0]
			} else {
				o.Log.Logs = append(o.Log.Logs, args...)
			}
			return o.Run(cmd.Context(), a)
		}}
	f := c.Flags()
	f.BoolVar(&o.Update, "update", false, "write what is decided now")
	f.BoolVar(&o.Whole, "whole", false, "with --update: write whole documents")
	f.StringArrayVar(&o.Log.Logs, "log", nil,
		"compare with the log `FILE` of NCCL, and with further ones named after it")
	f.StringVar(&o.Log.Topo, "topo", "", "with --log: topology `FILE` in place of what the log says")
	f.StringVar(&o.Log.Version, "nccl-version", "", "with --log: rules of `VERSION` in place of the log's")
	f.StringVar(&o.Log.JUnit, "junit", "",
		"also write a JUnit report to `FILE`; - is standard output, with nothing else on it")
	f.BoolVar(&o.Log.GitHub, "github", false, "also print annotations for GitHub Actions")
	return c
}

// Run compares and returns an error if anything differs.
func (o *CheckOptions) Run(_ context.Context, a *cli.App) error {
	q := o.Log
	if q.JUnit == "-" && (a.JSON || q.GitHub) {
		return fail.Usage("--junit -: standard output takes one report; leave --json and --github out, or " +
			"write a file")
	}
	if len(q.Logs) == 0 {
		return o.stored(a)
	}
	q.Env = a.Env
	return checkLogs(a, &q)
}

// checkLogs compares NCCL's logs with simccl's decisions, prints the report and returns an error if they
// differ.
func checkLogs(a *cli.App, q *logcheck.Request) error {
	rep, err := q.Run(func(name string) ([]byte, error) { return readForCheck(a, q, name) }, writer(a))
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

// readForCheck reads a log, or the machine that takes the place of its system print, in any form.
func readForCheck(a *cli.App, q *logcheck.Request, name string) ([]byte, error) {
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
		err = inputs.Want(data, name, inputs.NCCLLog, inputs.SystemPrint, inputs.RCCLLog)
	}
	return data, err
}

// stored compares the decisions of the directory, or stores them.
func (o *CheckOptions) stored(a *cli.App) error {
	run := check.Run{Update: o.Update, Whole: o.Whole, JUnit: o.Log.JUnit, Write: writer(a), Now: time.Now,
		Decide:       func(words []string, dir string) ([]byte, error) { return decisionNow(a, words, dir) },
		ReadOptions:  func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxSettings) },
		ReadDocument: func(name string) ([]byte, error) { return a.ReadFile(name, process.MaxResults) }}
	if !a.JSON && run.JUnit != "-" {
		run.Print = func(v *check.Verdict) { fmt.Fprint(a.Out, v.Text(a.Paint(a.Out))) }
	}
	verdicts, err := run.Dir(o.Dir)
	switch {
	case verdicts == nil:
		return err
	case a.JSON:
		return fail.Join(err, a.PrintJSON(verdicts))
	case o.Log.GitHub:
		fmt.Fprint(a.Out, check.Report(o.Dir, verdicts).Annotations())
	}
	return err
}

// writer returns a function that writes files; "-" is standard output.
func writer(a *cli.App) func(name string, data []byte) error {
	return func(name string, data []byte) error {
		if name == "-" {
			_, err := a.Out.Write(data)
			return err
		}
		return newfile.Write(a.Path(name), data)
	}
}

// decisionNow runs inspect with options, relative to a directory, and returns the document.
func decisionNow(a *cli.App, words []string, dir string) (text []byte, err error) {
	sub := &cli.App{Process: a.Process}
	sub.Out, sub.Dir = io.Discard, dir
	var o InspectOptions
	c := cli.Nested("inspect", cli.Exactly(), func(*cobra.Command, []string) error {
		x, err := o.Machine.Load(sub)
		if err != nil {
			return err
		}
		text, err = Document(sub, x)
		return err
	})
	o.Machine.Register(c)
	sub.Given, sub.Named = c.Flags(), sub.AsFlags
	c.Flags().StringArrayVar(&sub.Env, "env", a.Env, "")
	c.SetArgs(words)
	c.SetOut(io.Discard)
	c.SetErr(io.Discard)
	return text, c.Execute()
}
