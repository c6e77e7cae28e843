package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/fail"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// NoCommand returns a usage error for a group of commands that is called without a subcommand or with an
// unknown one.
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
	if n := config.Nearest(args[0], names); n != "" {
		return fail.Usage("unknown command %q; did you mean %s? there are %s", args[0], n,
			strings.Join(names, ", "))
	}
	return fail.Usage("unknown command %q; write one of %s", args[0], strings.Join(names, ", "))
}

// Group returns a command that only has subcommands.
func Group(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: NoCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return fail.Usage("%s", missingCommand(cmd)) }}
	c.AddCommand(children...)
	return c
}

// Long sets the help text of a command and returns it.
func Long(c *cobra.Command, text string) *cobra.Command {
	c.Long = text
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
func Exactly(names ...string) cobra.PositionalArgs { return Arguments(len(names), names...) }

// Arguments wants at least so many arguments and names them when they are missing, and at most as many as
// there are names, unless the last one ends with dots: FILE...
func Arguments(least int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return fail.Usage("%s: %s missing; see %s --help", path(cmd),
				strings.Join(names[len(args):least], ", "), cmd.CommandPath())
		case len(args) > len(names) && !(len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...")):
			return fail.Usage("%s: unexpected argument %q%s", path(cmd), args[len(names)],
				joined(cmd, args[len(names)]))
		}
		return nil
	}
}

// joined is a hint where an argument may be the value of a flag before it that takes values after = alone.
func joined(cmd *cobra.Command, arg string) (hint string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.String() == f.NoOptDefVal {
			hint = fmt.Sprintf("; did you mean --%s=%s?", f.Name, arg)
		}
	})
	return hint
}

// path returns a command's path without the program's name, for errors.
func path(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), "simccl ")
}

// FlagError converts an error about a flag to a usage error with the likely flag, or an example.
func FlagError(cmd *cobra.Command, err error) error {
	see := "see simccl " + path(cmd) + " --help"
	if name, ok := strings.CutPrefix(err.Error(), "unknown flag: --"); ok {
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
		if n := config.Nearest(name, known); n != "" {
			return fail.Usage("unknown flag --%s; did you mean --%s? %s", name, n, see)
		}
	}
	var bad *pflag.InvalidValueError
	var num *strconv.NumError
	if errors.As(err, &bad) && errors.As(err, &num) {
		kind := "a number"
		if strings.HasSuffix(num.Func, "Int") || strings.HasSuffix(num.Func, "Uint") || num.Func == "Atoi" {
			kind = "a whole number"
		}
		return fail.Usage("--%s %s: write %s; %s", bad.GetFlag().Name, bad.GetValue(), kind, see)
	}
	return fail.Usage("%v; %s", err, see)
}

// Nested returns a command for flags that are read from a file or from another flag's value.
func Nested(use string, args cobra.PositionalArgs, run func(*cobra.Command, []string) error) *cobra.Command {
	c := &cobra.Command{Use: use, SilenceUsage: true, SilenceErrors: true, Args: args, RunE: run}
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fail.Usage("%v", err) })
	return c
}

// Given returns the flags that the user gave to one command and that another command also has, as words. It
// excludes flags of all commands; those are in the App.
func Given(from, to *cobra.Command) []string {
	words := []string{}
	from.Flags().Visit(func(f *pflag.Flag) {
		if to.Flags().Lookup(f.Name) == nil || from.InheritedFlags().Lookup(f.Name) != nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			for _, v := range list.GetSlice() {
				words = append(words, "--"+f.Name+"="+v)
			}
			return
		}
		words = append(words, "--"+f.Name+"="+f.Value.String())
	})
	return words
}

// Runner is a command's options: its flags and arguments as values.
type Runner interface {
	Run(ctx context.Context, a *App) error
}

// RunWith is the RunE of a command whose arguments are a list of its options.
func RunWith(a *App, o Runner, list *[]string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		*list = args
		return o.Run(cmd.Context(), a)
	}
}

// RunWithOne is the RunE of a command whose argument is a value of its options.
func RunWithOne(a *App, o Runner, value *string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		*value = args[0]
		return o.Run(cmd.Context(), a)
	}
}

// RunOf is the RunE of a command without flags of its own, whose options are made of its arguments.
func RunOf(a *App, of func(args []string) Runner) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error { return of(args).Run(cmd.Context(), a) }
}
