// Package root has the program's root command with the flags that all commands share, the list of commands,
// and the commands that are about the program itself: version, serve, the topics of help, and what shells
// complete.
//
// What it must not know: what a command does.
package root

import (
	"context"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/bench"
	"github.com/simccl/simccl/app/cli/decide"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/jobs"
	"github.com/simccl/simccl/app/cli/run"
	"github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/cli/sweep"
	"github.com/simccl/simccl/app/cli/topo"
	"github.com/simccl/simccl/app/cli/trace"
	"github.com/simccl/simccl/app/process"
	"github.com/simccl/simccl/nccltests"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands lists every command, which is made when it is asked for: the flags of all of them
// take longer than a decision of a small machine.
func commands() []command {
	all := []command{
		{"run", run.Run}, {"inspect", decide.Inspect}, {"explain", decide.Explain},
		{"diff", run.Diff}, {"diagnose", bench.Diagnose}, {"advise", jobs.Advise},
		{"topo", topo.Command},
		{"graph", decide.Graph}, {"tune", decide.Tune}, {"plan", decide.Plan},
		{"check", decide.Check}, {"scenario", run.Scenario}, {"replay", jobs.Replay},
		{"sweep", sweep.Command}, {"overlap", bench.Overlap}, {"workload", jobs.Workload},
		{"env", decide.Env}, {"trace", trace.Command}, {"bench", bench.Command},
		{"calibrate", bench.Calibrate}, {"report", run.Report}, {"identify", Identify},
		{"groups", decide.Groups}, {"schedule", schedule.Command}, {"class", bench.Classes},
		{"intercept", jobs.Intercept}, {"serve", Serve}, {"network", run.Network},
		{"version", version}, {"exit-codes", exitCodes},
	}
	for _, t := range Topics() {
		all = append(all, command{t.Name, func(*cli.App) *cobra.Command { return t.Command() }})
	}
	return all
}

// command is the name and the constructor of one command.
type command struct {
	name string
	make func(*cli.App) *cobra.Command
}

// Command returns the tree of all commands, or only the command that args ask for.
func Command(a *cli.App, args ...string) *cobra.Command {
	one := named(args)
	asked := false
	root := &cobra.Command{
		Use:   "simccl",
		Short: "What NCCL decides on a machine, why, and how fast it runs",
		Long: `simccl reads NCCL's topo.xml and says what NCCL ` + cli.Rules().String() +
			` decides on that machine
(paths, rings and trees, channels, algorithm and protocol), why, and how long
it takes, by simulating the very schedule. It needs no GPU.`,
		Example: `  simccl run all_reduce  # 2 x DGX H100, built in
  simccl run all_reduce --topo topo.xml --nodes 4 -b 1K -e 1M -f 4 --trace a.json
  simccl explain all_reduce 2M --topo topo.xml --nodes 4
  simccl inspect --topo topo.xml --json
  simccl trace validate a.json`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				return VersionOptions{}.Run(cmd.Context(), a)
			}
			return cmd.Help()
		},
	}
	flags.Register(root.PersistentFlags(), flags.In("", flags.Of(&a.Env, "env", "", nil,
		"set an `NCCL_K=V` as if it were in the environment; repeatable", "nccl.env")))
	root.PersistentFlags().BoolVar(&a.NoEnv, "no-env", false,
		"ignore the environment and NCCL's configuration files")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON instead of a table")
	root.PersistentFlags().BoolVar(&a.Quiet, "quiet", false, "print no notes, warnings and progress")
	// Cobra's own flag takes a template, whose package would add 4 MB to the program.
	root.Flags().BoolVarP(&asked, "version", "v", false, "print the version and the rules it follows")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetGlobalNormalizationFunc(longNames)
	InstallHelp(root, a)
	for _, c := range commands() {
		if one == "" || one == c.name {
			root.AddCommand(c.make(a))
		}
	}
	if one == "" {
		registerCompletion(root)
	}
	return root
}

// Execute runs a command line.
func Execute(ctx context.Context, a *cli.App, args []string) error {
	c := Command(a, args...)
	c.SetArgs(args)
	c.SetOut(a.Out)
	c.SetErr(a.Err)
	profile := &process.CPUProfile{}
	profileFlag(a, c, profile)
	err := c.ExecuteContext(ctx)
	if lost := profile.Stop(&a.Process); err == nil {
		err = lost
	}
	return err
}

// profileFlag declares --cpuprofile on the root: every command has it. Users of
// simulated times look for --profile, so help does not list this one.
func profileFlag(a *cli.App, root *cobra.Command, c *process.CPUProfile) {
	root.PersistentFlags().StringVar(&c.Name, "cpuprofile", "",
		"write a pprof CPU profile of simccl itself to `FILE` (.pb.gz)")
	_ = root.PersistentFlags().MarkHidden("cpuprofile")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		a.Given = cmd.Flags()
		return c.Start(&a.Process)
	}
}

// named returns the command that a line begins with, or "" if its first word is no command. Then all commands
// are constructed: for help, completion, and the error about an unknown command.
func named(args []string) string {
	for _, c := range commands() {
		if len(args) > 0 && args[0] == c.name {
			return c.name
		}
	}
	return ""
}

// longNames accepts nccl-tests' long options under their own spelling and
// with dashes.
func longNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if alias, ok := nccltests.LongName(strings.ReplaceAll(name, "-", "_")); ok {
		return pflag.NormalizedName(alias)
	}
	return pflag.NormalizedName(name)
}
