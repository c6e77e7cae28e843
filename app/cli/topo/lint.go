package topo

import (
	"context"
	"fmt"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/topo/lint"
	"github.com/spf13/cobra"
)

// LintOptions are the flags and arguments of lint.
type LintOptions struct {
	Files  []string
	Strict bool // warnings count as failure
}

func lintCommand(a *cli.App) *cobra.Command {
	var o LintOptions
	c := &cobra.Command{Use: "lint FILE...", Short: "Find what makes NCCL decide badly",
		Long: `lint names what is wrong or odd in topology files: swapped or missing numaid,
links without width or speed, NVLinks of one side only, bus ids used twice, nets
that no GPU reaches, what NCCL's parser cannot read; each with its place and a
remedy. Status 7 where NCCL would fail, with --strict also for warnings.`,
		Example: "  simccl topo lint dgx.xml",
		RunE:    cli.RunWith(a, &o, &o.Files)}
	c.Flags().BoolVar(&o.Strict, "strict", false, "warnings count as failure")
	return c
}

// Run prints the findings about the files, and returns an error if there are errors, with --strict also for
// warnings.
func (o *LintOptions) Run(_ context.Context, a *cli.App) error {
	if len(o.Files) == 0 {
		return fail.Usage("topo lint: name at least one file")
	}
	entries, bad := []lint.Entry{}, 0
	err := findings(o.Files, a.Options(nil), func(f *lint.Finding) {
		if f.Severity == lint.Error || o.Strict && f.Severity == lint.Warning {
			bad++
		}
		if !a.JSON {
			fmt.Fprintln(a.Out, a.Paint(a.Out).Severities(f.String()))
		}
		entries = append(entries, f.Entry())
	})
	switch {
	case err != nil:
		return err
	case a.JSON:
		if err := a.Encode("  ", true, entries); err != nil {
			return err
		}
	case len(entries) == 0:
		fmt.Fprintln(a.Notes(), "nothing to complain of")
	}
	if bad > 0 {
		return fail.Check("%d findings that make NCCL fail or decide badly", bad)
	}
	return nil
}
