package root

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// prose wraps paragraphs. A line that is indented stays a line; one that is too long goes on
// below its last column.
func prose(text string, columns int) string {
	var out, words []string
	end := func() {
		if len(words) > 0 {
			out = append(out, fill(words, "", "", columns)...)
		}
		words = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case line != "" && line[0] != ' ' && line[0] != '\t':
			words = append(words, strings.Fields(line)...)
			continue
		case utf8.RuneCountInString(line) <= columns:
			end()
			out = append(out, line)
		default:
			end()
			at := len(line) - len(strings.TrimLeft(line, " \t"))
			if gap := strings.LastIndex(line, "  "); gap >= at && gap < columns/2 {
				at = gap + 2
			}
			rest := strings.Fields(line[at:])
			rest[0] = line[:at] + rest[0]
			out = append(out, fill(rest, strings.Repeat(" ", utf8.RuneCountInString(line[:at])), "",
				columns)...)
		}
	}
	end()
	return strings.Join(out, "\n")
}

// fill wraps words to lines of at most `columns` columns. All lines but the first begin with indent, all but
// the last end with more. A longer word has its own line.
func fill(words []string, indent, more string, columns int) []string {
	var out []string
	line := ""
	for i, w := range words {
		end := ""
		if i < len(words)-1 {
			end = more
		}
		switch {
		case line == "":
			line = w
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(w+end) <= columns:
			line += " " + w
		default:
			out = append(out, line+more)
			line = indent + w
		}
	}
	return append(out, line)
}

// examples wraps command lines. A long one continues on the next line after a backslash; its comment precedes
// it.
func examples(text string, columns int) string {
	var out []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if utf8.RuneCountInString(line) <= columns {
			out = append(out, line)
			continue
		}
		line, comment, _ := strings.Cut(line, " # ")
		if words := strings.Fields(comment); len(words) > 0 {
			words[0] = "  # " + words[0]
			out = append(out, fill(words, "  # ", "", columns)...)
		}
		out = append(out, fill(arguments(strings.TrimRight(line, " ")), "      ", ` \`, columns)...)
	}
	return strings.Join(out, "\n")
}

// arguments divides a command line where it may go on in a next line: not within quotes, nor
// between a flag and its value. The first has the indent.
func arguments(line string) []string {
	var words []string
	var quote rune
	word := ""
	for _, r := range line {
		switch {
		case quote == 0 && r == ' ' && strings.TrimSpace(word) != "":
			words, word = append(words, word), ""
			continue
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		}
		word += string(r)
	}
	var out []string
	for _, w := range append(words, word) {
		if n := len(out) - 1; n >= 0 && strings.HasPrefix(out[n], "-") && !strings.Contains(out[n], " ") &&
			!strings.HasPrefix(w, "-") {
			out[n] += " " + w
		} else {
			out = append(out, w)
		}
	}
	return out
}

// widestFlag is the width of the flag column; the usage of a wider flag begins on the next line.
const widestFlag = 29

// flagRow returns a flag's name and usage as pflag formats them.
func flagRow(f *pflag.Flag) (name, usage string) {
	one := pflag.NewFlagSet("", pflag.ContinueOnError)
	one.AddFlag(f)
	line := strings.TrimRight(one.FlagUsages(), "\n")
	indent := len(line) - len(strings.TrimLeft(line, " "))
	name, usage, _ = strings.Cut(line[indent:], "   ")
	return line[:indent] + name, usage
}

// gutter returns the column at which usages start on a command's page, at most the middle.
func gutter(c *cobra.Command, columns int) int {
	longest := 0
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if name, _ := flagRow(f); len(name) <= widestFlag && !f.Hidden {
			longest = max(longest, len(name))
		}
	})
	return min(longest+2, columns/2)
}

// flagLines lists flags, with usages starting at column at.
func flagLines(set *pflag.FlagSet, at, columns int) string {
	var out []string
	indent := strings.Repeat(" ", at)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := flagRow(f)
		words := strings.Fields(usage)
		if len(name)+2 > at {
			out = append(out, name)
			name = ""
		}
		if len(words) > 0 {
			words[0] = fmt.Sprintf("%-*s", at, name) + words[0]
		}
		out = append(out, fill(words, indent, "", columns)...)
	})
	return strings.Join(out, "\n")
}

// commandTable lists commands with their short descriptions.
func commandTable(commands []*cobra.Command, columns int) string {
	longest := 0
	for _, c := range commands {
		longest = max(longest, len(c.Name()))
	}
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-*s  %s\n", longest, c.Name(), c.Short)
	}
	return prose(b.String(), columns)
}
