package main

import (
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/about"
	advisecmd "github.com/simccl/simccl/app/cli/advise"
	"github.com/simccl/simccl/app/cli/classes"
	"github.com/simccl/simccl/app/cli/completion"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/groups"
	"github.com/simccl/simccl/app/cli/help"
	identifycmd "github.com/simccl/simccl/app/cli/identify"
	"github.com/simccl/simccl/app/cli/intercept"
	"github.com/simccl/simccl/app/cli/network"
	overlapcmd "github.com/simccl/simccl/app/cli/overlap"
	"github.com/simccl/simccl/app/cli/replay"
	reportcmd "github.com/simccl/simccl/app/cli/report"
	runcmd "github.com/simccl/simccl/app/cli/run"
	scenariocmd "github.com/simccl/simccl/app/cli/scenario"
	schedulecmd "github.com/simccl/simccl/app/cli/schedule"
	"github.com/simccl/simccl/app/cli/serve"
	sweepcmd "github.com/simccl/simccl/app/cli/sweep"
	"github.com/simccl/simccl/app/cli/topics"
	workloadcmd "github.com/simccl/simccl/app/cli/workload"
	"github.com/simccl/simccl/nccltests"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot is the whole tree of commands, or with the name of one, that one alone.
func newRoot(a *app, named string) *cobra.Command {
	build := func() about.Build { return about.Of(version, commit, date) }
	asked := false
	root := &cobra.Command{
		Use:   "simccl",
		Short: "What NCCL decides on a machine, why, and how fast it runs",
		Long: `simccl reads NCCL's topo.xml and says what NCCL ` + cli.Rules().String() + ` decides on that machine
(paths, rings and trees, channels, algorithm and protocol), why, and how long
it takes, by simulating the very schedule. It needs no GPU.`,
		Example: `  simccl run all_reduce  # 2 x DGX H100, built in
  simccl run all_reduce --topo topo.xml --nodes 4 -b 1K -e 1M -f 4 --trace a.json
  simccl explain all_reduce 2M --topo topo.xml --nodes 4
  simccl inspect --topo topo.xml --json
  simccl trace validate out.json.gz`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              cli.NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asked {
				return about.Print(&a.App, build())
			}
			return cmd.Help()
		},
	}
	flags.Register(root.PersistentFlags(), flags.In("", flags.Of(&a.Env, "env", "", nil,
		"set an `NCCL_K=V` as if it were in the environment; repeatable", "nccl.env")))
	root.PersistentFlags().BoolVar(&a.NoEnv, "no-env", false, "ignore the environment and NCCL's configuration files")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON instead of a table")
	// Cobra's own flag takes a template, whose package would add 4 MB to the program.
	root.Flags().BoolVarP(&asked, "version", "v", false, "print the version and the rules it follows")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetGlobalNormalizationFunc(longNames)
	help.Install(root, &a.App)
	for _, c := range commandsOf(a, build) {
		if named == "" || named == c.name {
			root.AddCommand(c.make())
		}
	}
	if named == "" {
		completion.Register(root)
	}
	return root
}

// command is one command of the root, which is made when it is asked for: the flags of
// all of them take longer than a decision of a small machine.
type command struct {
	name string
	make func() *cobra.Command
}

// commandsOf lists every command.
func commandsOf(a *app, build func() about.Build) []command {
	// own is a command of this package, other one of another.
	own := func(name string, of func(*app) *cobra.Command) command {
		return command{name, func() *cobra.Command { return of(a) }}
	}
	other := func(name string, of func(*cli.App) *cobra.Command) command {
		return command{name, func() *cobra.Command { return of(&a.App) }}
	}
	all := []command{
		other("run", runcmd.Command), own("inspect", newInspect), own("explain", newExplain), own("diff", newDiff),
		other("advise", advisecmd.Command), own("topo", newTopo), own("graph", newGraph), own("tune", newTune),
		own("plan", newPlan), own("check", newCheck), other("scenario", scenariocmd.Command), other("replay", replay.Command),
		other("sweep", sweepcmd.Command), other("overlap", overlapcmd.Command), other("workload", workloadcmd.Command),
		own("env", newEnv), own("trace", newTrace), own("bench", newBench), own("calibrate", newCalibrate),
		other("report", reportcmd.Command), other("identify", identifycmd.Command), other("groups", groups.Command), other("schedule", schedulecmd.Command),
		other("class", classes.Command), other("intercept", intercept.Command), other("serve", serve.Command),
		{"network", func() *cobra.Command { return network.Command(&a.App) }},
		{"version", func() *cobra.Command { return about.Command(&a.App, build) }},
		{"exit-codes", about.ExitCodes},
	}
	for _, t := range topics.All() {
		all = append(all, command{t.Name, t.Make})
	}
	return all
}

// named is the command that a line asks for, if its first word is the name of one; else
// none, and all are made: for help, completion, and what is unknown.
func (a *app) named(args []string) string {
	for _, c := range commandsOf(a, nil) {
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
