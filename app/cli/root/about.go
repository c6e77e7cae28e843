package root

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/nccltests"
	"github.com/simccl/simccl/rules/release"
	"github.com/spf13/cobra"
)

// build describes a program: its version, revision and rules.
type build struct {
	Version  string `json:"simccl"`
	Rules    string `json:"nccl_rules"`
	Tests    string `json:"nccl_tests"`
	Commit   string `json:"commit"` // "" where it was built outside a checkout
	Date     string `json:"date"`   // of the commit, RFC 3339
	Modified bool   `json:"modified"`
	Rulesets string `json:"rulesets"` // releases of NCCL with rules of their own
	Go       string `json:"go"`
}

// buildOf returns the build of this program. Commit and date are those that a release's linker sets, else
// those that the compiler recorded.
func buildOf(a *cli.App) build {
	b := build{Version: a.Version, Commit: a.Commit, Date: a.Date,
		Rules: cli.Rules().String(), Tests: nccltests.Version, Rulesets: release.Names()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Text formats the build.
func (b *build) Text() string {
	s := fmt.Sprintf("simccl %s, rules of NCCL %s, tables of nccl-tests %s\n", b.Version, b.Rules, b.Tests)
	if b.Commit != "" {
		s += fmt.Sprintf("commit %.12s of %s", b.Commit, b.Date)
		if b.Modified {
			s += ", modified"
		}
		s += "\n"
	}
	return s + "rulesets " + b.Rulesets + "\n"
}

// version returns `simccl version`.
func version(a *cli.App) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version and the rules it follows",
		Example: "  simccl version --json", Args: cli.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return VersionOptions{}.Run(cmd.Context(), a) }}
}

// VersionOptions are the flags and arguments of version: nothing.
type VersionOptions struct{}

// Run prints the build of this program.
func (VersionOptions) Run(_ context.Context, a *cli.App) error {
	b := buildOf(a)
	if a.JSON {
		return a.PrintJSON(b)
	}
	return a.PrintText(b.Text())
}

// exitCodes returns the help topic of exit statuses.
func exitCodes(*cli.App) *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "What exit statuses mean",
		Long: `Exit statuses of all commands:

  0    ok
  1    an internal error: a defect of simccl
  2    the CUDA driver or a GPU failed
  3    NCCL ended with an error, or would
  4    a hang or a time limit
  5    not implemented; the message names what is missing
  6    usage: an option or argument that cannot be
  7    a check failed, values are wrong, or files differ
  8    an input is invalid: file, line, column, and what to write instead
  9    hardware or a library is absent
  75   work is left over (sweep --max-time): run the same command again
  130  ended by SIGINT
  141  what read the output closed it
  143  ended by SIGTERM`}
}
