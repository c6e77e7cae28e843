package main

import (
	"strings"

	"github.com/simccl/simccl/internal/cli"
	"github.com/simccl/simccl/internal/cli/about"
	advisecmd "github.com/simccl/simccl/internal/cli/advise"
	"github.com/simccl/simccl/internal/cli/groups"
	"github.com/simccl/simccl/internal/cli/intercept"
	"github.com/simccl/simccl/internal/cli/network"
	overlapcmd "github.com/simccl/simccl/internal/cli/overlap"
	"github.com/simccl/simccl/internal/cli/replay"
	schedulecmd "github.com/simccl/simccl/internal/cli/schedule"
	"github.com/simccl/simccl/internal/cli/serve"
	sweepcmd "github.com/simccl/simccl/internal/cli/sweep"
	workloadcmd "github.com/simccl/simccl/internal/cli/workload"
	"github.com/simccl/simccl/internal/report/nccltests"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newRoot(a *app) *cobra.Command {
	build := func() about.Build { return about.Of(version, commit, date) }
	asked := false
	root := &cobra.Command{
		Use:   "simccl",
		Short: "What NCCL decides on a machine, why, and how fast it runs",
		Long: `simccl reads NCCL's topo.xml and says what NCCL ` + cli.Rules().String() + ` decides on that machine
(paths, rings and trees, channels, algorithm and protocol), why, and how long
it takes, by simulating the very schedule. It needs no GPU.`,
		Example: `  simccl run all_reduce                                  # 2 x DGX H100, built in
  simccl run all_reduce --topo topo.xml --nodes 4 -b 1K -e 1M -f 4 --trace out.json.gz
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
	root.PersistentFlags().StringArrayVar(&a.Env, "env", nil, "set an `NCCL_K=V` as if it were in the environment; repeatable")
	root.PersistentFlags().BoolVar(&a.NoEnv, "no-env", false, "ignore the environment and NCCL's configuration files")
	root.PersistentFlags().BoolVar(&a.JSON, "json", false, "print JSON instead of a table")
	// Cobra's own flag takes a template, whose package would add 4 MB to the program.
	root.Flags().BoolVarP(&asked, "version", "v", false, "print the version and the rules it follows")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v; see simccl %s --help", err, strings.TrimPrefix(cmd.CommandPath(), "simccl "))
	})
	root.SetGlobalNormalizationFunc(longNames)
	root.AddCommand(newRun(a), newInspect(a), newExplain(a), newDiff(a), advisecmd.Command(&a.App), newTopo(a), newGraph(a), newTune(a), newPlan(a),
		newCheck(a), newScenario(a), replay.Command(&a.App), sweepcmd.Command(&a.App), overlapcmd.Command(&a.App), workloadcmd.Command(&a.App), newEnv(a), newTrace(a), newBench(a), newCalibrate(a), newReport(a), network.Command(&a.Process, &a.JSON), groups.Command(&a.App), schedulecmd.Command(&a.App), intercept.Command(&a.App), serve.Command(&a.App), about.Command(&a.App, build), about.ExitCodes())
	completions(root)
	return root
}

// longNames accepts nccl-tests' long options under their own spelling and
// with dashes.
func longNames(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if alias, ok := nccltests.LongName(strings.ReplaceAll(name, "-", "_")); ok {
		return pflag.NormalizedName(alias)
	}
	return pflag.NormalizedName(name)
}
