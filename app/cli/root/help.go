package root

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/config"
	"github.com/simccl/simccl/internal/fail"
	"github.com/simccl/simccl/internal/terminal"
	"github.com/spf13/cobra"
)

// Widths of a page in columns: of output that is no terminal, and the limits of others.
const (
	width     = 80
	narrowest = 40
	widest    = 120
)

// InstallHelp sets the help of a root command and all commands below it.
func InstallHelp(root *cobra.Command, a *cli.App) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		fmt.Fprint(c.OutOrStdout(), a.Paint(a.Out).Headings(HelpPage(c, helpColumns(a.Out, a.Environ))))
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), HelpPage(c, width))
		return err
	})
	root.SetHelpCommand(helpCommand())
}

// helpCommand returns the command help: for a command, for a topic, or without arguments for the root.
func helpCommand() *cobra.Command {
	return &cobra.Command{Use: "help [COMMAND | TOPIC]", Short: "Help about a command or a topic",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) ([]string,
			cobra.ShellCompDirective) {
			at, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return commandNames(at), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			at, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 && (at.HasSubCommands() || at == c.Root()) {
				return unknownHelp(at, rest[0])
			}
			if err != nil {
				return err
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		}}
}

// below returns a command's subcommands and help topics.
func below(c *cobra.Command) (commands, topics []*cobra.Command) {
	for _, sub := range c.Commands() {
		switch {
		case sub.IsAvailableCommand() || sub.Name() == "help":
			commands = append(commands, sub)
		case sub.IsAdditionalHelpTopicCommand():
			topics = append(topics, sub)
		}
	}
	return commands, topics
}

// commandNames returns the words that may follow help and a command.
func commandNames(c *cobra.Command) []string {
	var out []string
	commands, topics := below(c)
	for _, sub := range append(commands, topics...) {
		out = append(out, sub.Name())
	}
	return out
}

func unknownHelp(at *cobra.Command, word string) error {
	known := commandNames(at)
	if n := config.Nearest(word, known); n != "" {
		return fail.Usage("help %s: no command or topic; did you mean %s?", word, n)
	}
	return fail.Usage("help %s: no command or topic; there are %s", word, strings.Join(known, ", "))
}

// helpColumns returns the width of a page printed to w: COLUMNS of the environment, else the terminal's
// width, else 80.
func helpColumns(w io.Writer, environ []string) int {
	n := terminal.Width(w)
	for _, kv := range environ {
		if text, ok := strings.CutPrefix(kv, "COLUMNS="); ok {
			if set, err := strconv.Atoi(text); err == nil && set > 0 {
				n = set
			}
		}
	}
	if n <= 0 {
		n = width
	}
	return max(narrowest, min(n, widest))
}

// HelpPage returns the help of a command for a terminal with a number of columns. If the command declares
// most used flags, the first screen ends with them and the rest of the text follows.
func HelpPage(c *cobra.Command, columns int) string {
	if c.IsAdditionalHelpTopicCommand() {
		return prose(strings.TrimRight(c.Long, "\n"), columns) + "\n"
	}
	text, rest := c.Long, ""
	text = cmp.Or(text, c.Short)
	most := flags.MostUsed(c)
	if most.HasFlags() {
		text, rest, _ = strings.Cut(text, "\n\n")
	}
	var b strings.Builder
	section := func(heading, body string) {
		switch body = strings.TrimRight(body, " \n"); {
		case body == "":
		case heading == "":
			fmt.Fprintf(&b, "%s\n\n", body)
		default:
			fmt.Fprintf(&b, "%s:\n%s\n\n", heading, body)
		}
	}
	section("", prose(text, columns))
	if c.Runnable() || c.HasAvailableSubCommands() {
		section("Usage", usage(c))
	}
	section("Examples", examples(c.Example, columns))
	sections := flags.Sections(c)
	at := gutter(c, columns)
	section("Most used", flagLines(most, at, columns))
	section("", prose(rest, columns))
	commands, topics := below(c)
	section("Available Commands", commandTable(commands, columns))
	for _, s := range sections {
		section(s.Title, flagLines(s.Flags, at, columns))
	}
	section("Help topics (simccl help TOPIC)", commandTable(topics, columns))
	if c.HasAvailableSubCommands() {
		section("", prose(fmt.Sprintf("Use %q for more information about a command.", c.CommandPath()+
			" [command] --help"), columns))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func usage(c *cobra.Command) string {
	out := ""
	if c.Runnable() {
		out += "  " + c.UseLine() + "\n"
	}
	if c.HasAvailableSubCommands() {
		out += "  " + c.CommandPath() + " [command]\n"
	}
	return out
}
