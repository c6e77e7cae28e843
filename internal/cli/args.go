package cli

import (
	"fmt"
	"strings"

	"github.com/simccl/simccl/internal/fail"
	"github.com/spf13/cobra"
)

// NoCommand refuses arguments of a command that only holds others.
func NoCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := []string{}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fail.Usage("unknown command %q; write one of %s", args[0], strings.Join(names, ", "))
}

// Group is a command that only holds others.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return fail.Usage("%s", missingCommand(cmd)) }}
	c.AddCommand(children...)
	return c
}

func missingCommand(cmd *cobra.Command) string {
	names := []string{}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Sprintf("%s what? write one of %s", cmd.CommandPath(), strings.Join(names, ", "))
}

// Exactly wants n arguments and names them when they are missing.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fail.Usage("%s: %s missing; see %s --help", cmd.CommandPath(), strings.Join(names[len(args):], ", "), cmd.CommandPath())
		case len(args) > len(names):
			return fail.Usage("%s: unexpected argument %q", cmd.CommandPath(), args[len(names)])
		}
		return nil
	}
}
