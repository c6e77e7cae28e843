package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/shellwords"
	"github.com/simccl/simccl/nccltests/options"
	"github.com/simccl/simccl/plan/schedule"
	"github.com/simccl/simccl/study/diff"
	"github.com/spf13/cobra"
)

// diffSizes is the default list of sizes.
const diffSizes = "1K,32K,1M,16M,256M"

// DiffOptions are the flags and arguments of diff.
type DiffOptions struct {
	Ops      []string      // operations; none: seven
	Sizes    cli.TestFlags // the sizes to time
	Both     []string      // options of both sides, a word each: machine, and how times are found
	A, B     string        // options of each side, as a command line has them
	ExitCode bool          // fail where anything differs
}

// Diff returns `simccl diff`.
func Diff(a *cli.App) *cobra.Command {
	var o DiffOptions
	var both RunOptions
	c := &cobra.Command{Use: "diff [OP...]",
		Short: "Compare two settings, machines or networks: what changes, and why",
		Long: `diff builds two communicators, A and B, and says which decisions and which times
differ between them, and why: rules that switch something off on one side, cost
terms that moved, graphs, paths, the fullest link. Options given outside --a and
--b hold for both. In them, K=V is short for --env K=V, FILE.xml for --topo,
FILE.json for --fabric, a version such as 2.21.5 for --nccl-version, and rank=…,
nic=… and link=… for --fault; quotes work as in a shell. A side that is left out, or empty, has nothing of its own.

Without OP, seven operations are compared; sizes are ` + diffSizes + ` unless
--sizes, -b, -e, -f or -i say otherwise. Exit status 0, with --exit-code 7 where
anything differs.`,
		Example: `  simccl diff all_reduce --b NCCL_NVLS_ENABLE=0
  simccl diff all_reduce --nodes 4 --a NCCL_ALGO=Ring --b NCCL_ALGO=Tree --sizes 64K,16M
  simccl diff --a "--topo old.xml --nodes 2" --b "--topo new.xml --nodes 2" --sizes 1M
  simccl diff all_reduce -g 4 --nodes 1 --sizes 64K --b "--schedule testdata/schedules/allpairs4.xml"
  simccl diff --a 2.21.5 --b 2.28.9 --nodes 2
  simccl diff alltoall --sizes 4M --fabric net.json --b link=leaf0~spine1:down`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("a") && !cmd.Flags().Changed("b") {
				return fail.Usage(
					`diff: what with what? write --a OPTIONS, --b OPTIONS or both, for example --b NCCL_NVLS_ENABLE=0`)
			}
			side := &cobra.Command{}
			registerRun(side, new(RunOptions))
			o.Ops, o.Both = args, cli.Given(cmd, side)
			return o.Run(cmd.Context(), a)
		}}
	f := c.Flags()
	f.StringVar(&o.A, "a", "", "`OPTIONS` of the first side")
	f.StringVar(&o.B, "b", "", "`OPTIONS` of the second side")
	f.BoolVar(&o.ExitCode, "exit-code", false, "status 7 where anything differs")
	registerRun(c, &both)
	o.Sizes.RegisterSizes(c)
	return c
}

// registerRun declares the flags of one side, or of both.
func registerRun(c *cobra.Command, r *RunOptions) {
	r.Machine.Register(c)
	r.Machine.RegisterClass(c)
	r.Machine.RegisterNetwork(c)
	r.RegisterTimes(c)
}

// Run simulates both sides and prints what differs, with the reason.
func (o *DiffOptions) Run(ctx context.Context, a *cli.App) error {
	d, err := o.compare(ctx, a)
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.PrintJSON(d)
	} else {
		err = a.PrintText(d.Text())
	}
	if err == nil && o.ExitCode && !d.Same() {
		err = fail.Check("A and B differ")
	}
	return err
}

// compare loads the machines of --a and --b, simulates the operations and sizes on each, and returns where
// decisions and times differ.
func (o *DiffOptions) compare(ctx context.Context, a *cli.App) (*diff.Document, error) {
	ops, err := diff.Ops(o.Ops)
	if err != nil {
		return nil, err
	}
	if !o.Sizes.Sized() {
		o.Sizes.Sizes = diffSizes
	}
	sizes, err := o.Sizes.List()
	if err != nil {
		return nil, err
	}
	var stderr bytes.Buffer
	s := [2]*diff.Side{}
	for i := range s {
		if s[i], err = o.side(quietly(a, &stderr), string(rune('A'+i)), [2]string{o.A, o.B}[i]); err != nil {
			return nil, fmt.Errorf("--%c: %w", 'a'+i, err)
		}
	}
	reportOnce(a, stderr.String())
	progress := a.Progress("sizes", len(ops)*len(sizes))
	defer progress.End()
	d, err := diff.New(ctx, s[0], s[1], ops, sizes, progress.Step)
	var of *diff.SideError
	if errors.As(err, &of) {
		err = fmt.Errorf("--%s: %w", strings.ToLower(of.Name), a.AsFlags(of.Err))
	}
	return d, err
}

// quietly returns a copy of the app with its own settings, whose error output goes to stderr.
func quietly(a *cli.App, stderr *bytes.Buffer) *cli.App {
	sub := *a
	sub.Err, sub.JSON = stderr, false
	sub.Env = slices.Clone(a.Env)
	return &sub
}

// reportOnce prints lines that were not printed before: both sides may have the same notes.
func reportOnce(a *cli.App, lines string) {
	seen := map[string]bool{}
	for l := range strings.Lines(lines) {
		if !seen[l] {
			seen[l] = true
			fmt.Fprint(a.Notes(), l)
		}
	}
}

// side builds a side: it parses the side's options on top of the common ones.
func (o *DiffOptions) side(a *cli.App, name, text string) (s *diff.Side, err error) {
	own, err := shellwords.Split(text)
	if err != nil {
		return nil, fail.Argument(err)
	}
	var env []string
	var side RunOptions
	c := cli.Nested("diff", cobra.ArbitraryArgs, func(c *cobra.Command, bare []string) error {
		for _, w := range bare {
			if err := setBare(c, w); err != nil {
				return err
			}
		}
		a.Env = append(a.Env, env...)
		side.Op = "all_reduce"
		spec, err := side.Spec(a)
		if err == nil {
			err = spec.Validate()
		}
		if err == nil {
			of := diff.Side{Name: name, Spec: spec, Options: strings.Join(own, " ")}
			if side.Schedule != "" {
				var sched *schedule.Schedule
				if sched, err = schedulecmd.Prove(a, side.Schedule); err != nil {
					return err
				}
				of.PlansOf, of.Planner = sched.Func, schedulecmd.Planner(sched, side.Schedule)
			}
			s, err = diff.Load(of, a.Options(nil))
		}
		return flags.Name(c.Flags(), err)
	})
	registerRun(c, &side)
	side.RegisterSchedule(c)
	side.Test.Options = options.Options{Op: "sum", DataType: "float", Check: 1, Threads: 1, Cycles: 1, Agg: 1}
	c.Flags().StringArrayVar(&env, "env", nil, "")
	c.Flags().BoolVar(&a.NoEnv, "no-env", a.NoEnv, "")
	c.SetArgs(append(append([]string{}, o.Both...), own...)) // nil would mean the arguments of the process
	return s, c.Execute()
}

// setBare sets the option that a bare setting, file or fault is short for.
func setBare(c *cobra.Command, w string) error {
	option := diff.Option(w)
	if option == "" {
		return fail.Usage("unexpected %q: write options as run has them, or NCCL_K=V, FILE.xml, FILE.json, "+
			"a version of NCCL, or a fault", w)
	}
	return c.Flags().Set(option, w)
}
