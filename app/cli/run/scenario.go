package run

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/scenario"
	"github.com/spf13/cobra"
)

// Scenario returns `simccl scenario`.
func Scenario(a *cli.App) *cobra.Command {
	return cli.Long(cli.Group("scenario", "Show and check scenario files", showScenario(a), checkScenario(a)),
		`A scenario file holds a whole run as JSON: machine, network, NCCL's settings and
workload. run --save-scenario writes one, run --scenario carries it out. check
names every mistake in a file with its line; show prints a file as a Spec is
written, and how many points its grid has.`)
}

// ScenarioShowOptions are the flags and arguments of show.
type ScenarioShowOptions struct{ File string }

func showScenario(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "show FILE", Short: "Print a scenario as it is understood",
		Long: `show prints a scenario file as a Spec is written, with how many points its grid has
and the digest of the first: equal digests give equal results, with any file
are called.`,
		Example: "  simccl run all_reduce --nodes 4 --sizes 1M --save-scenario four.json\n" +
			"  simccl scenario show four.json",
		Args: cli.Exactly("FILE"),
		RunE: cli.RunOf(a, func(args []string) cli.Runner { return &ScenarioShowOptions{args[0]} })}
}

// Run prints the scenario.
func (o *ScenarioShowOptions) Run(_ context.Context, a *cli.App) error {
	s, placed, err := a.ReadScenario(o.File)
	if err != nil {
		return err
	}
	points, digest, err := describe(&s, a.Options(nil))
	if err != nil {
		return placed(err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"points": points, "digest": digest, "spec": s})
	}
	_, err = fmt.Fprintf(a.Out, "%s# points %d, digest %s\n", s.JSON(), points, digest)
	return err
}

// ScenarioCheckOptions are the flags and arguments of check.
type ScenarioCheckOptions struct{ Files []string }

func checkScenario(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "check FILE…", Short: "Check scenario files and the files they name",
		Example: "  simccl run all_reduce --sizes 1M --save-scenario two.json && simccl scenario check " +
			"two.json", Args: cobra.ArbitraryArgs,
		RunE: cli.RunOf(a, func(args []string) cli.Runner { return &ScenarioCheckOptions{args} })}
}

// Run checks the files; --json prints the verdicts as a list.
func (o *ScenarioCheckOptions) Run(_ context.Context, a *cli.App) error {
	if len(o.Files) == 0 {
		return fail.Usage("simccl scenario check: FILE missing")
	}
	type verdict struct {
		File  string `json:"file"`
		OK    bool   `json:"ok"`
		Error string `json:"error,omitempty"`
	}
	var errs []error
	var doc []verdict
	for _, name := range o.Files {
		s, placed, err := a.ReadScenario(name)
		if err == nil {
			err = placed(checkFirst(&s, a.Options(nil)))
		}
		v := verdict{File: name, OK: err == nil}
		if err != nil {
			v.Error = err.Error()
		} else if !a.JSON {
			fmt.Fprintf(a.Out, "%s %s\n", a.Paint(a.Out).Green("ok"), name)
		}
		errs, doc = append(errs, err), append(doc, v)
	}
	if a.JSON {
		if err := a.PrintJSON(doc); err != nil {
			return err
		}
	}
	return fail.Join(errs...)
}

// describe counts the points of a Spec and returns the Digest of the first.
func describe(s *scenario.Spec, opt scenario.Options) (points int, digest string, err error) {
	if points, err = s.Points(); err != nil {
		return 0, "", err
	}
	first, err := s.Point(0)
	if err == nil {
		digest, err = scenario.Digest(&first, opt)
	}
	return points, digest, err
}

// checkFirst prepares the first point of a Spec, which reads its files.
func checkFirst(s *scenario.Spec, opt scenario.Options) error {
	first, err := s.Point(0)
	if err == nil {
		_, err = scenario.Prepare(first, opt)
	}
	return err
}
