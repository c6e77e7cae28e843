package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/flags"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/simccl/simccl/app/report/sweep"
	"github.com/simccl/simccl/packet"
	"github.com/simccl/simccl/rules/release"
	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/sim/gpu"
	"github.com/simccl/simccl/sim/netpreset"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// pages are all commands and topics.
func pages() []*cobra.Command {
	all := commands(root.Command(&cli.App{}))
	for _, t := range root.Topics() {
		c := t.Command()
		c.Long = t.Text()
		all = append(all, c)
	}
	return all
}

// TestHelpFitsTerminal: no line of help is wider than the terminal.
func TestHelpFitsTerminal(t *testing.T) {
	for _, c := range pages() {
		for _, columns := range []int{80, 120} {
			for line := range strings.Lines(root.HelpPage(c, columns)) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
					t.Errorf("%s: %d columns on a terminal of %d: %s", c.CommandPath(), n, columns, line)
				}
			}
		}
	}
}

// TestFlagsInOneGroup: help shows every flag once, in a group where a command has many, and
// the word for its value leaves room for what it says.
func TestFlagsInOneGroup(t *testing.T) {
	grouped := 0
	for _, c := range commands(root.Command(&cli.App{})) {
		shown := map[string]int{}
		sections := flags.Sections(c)
		if len(sections) > 2 {
			grouped++
		}
		for _, s := range sections {
			s.Flags.VisitAll(func(f *pflag.Flag) {
				shown[f.Name]++
				if s.Title == "Flags" && len(sections) > 2 && c.Flags().Lookup("topo") == nil {
					t.Errorf("%s --%s: in no group", c.CommandPath(), f.Name)
				}
			})
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if shown[f.Name] != 1 {
				t.Errorf("%s --%s: in %d groups", c.CommandPath(), f.Name, shown[f.Name])
			}
			if word, _ := pflag.UnquoteUsage(f); len(word) > 12 {
				t.Errorf("%s --%s %s: a word of more than 12 columns", c.CommandPath(), f.Name, word)
			}
		})
	}
	if grouped < 8 {
		t.Errorf("only %d commands with groups", grouped)
	}
}

// TestLettersOfNCCLTests: who knows nccl-tests finds each of its letters (its README, version
// 2.19.6) in the help of run and bench.
func TestLettersOfNCCLTests(t *testing.T) {
	for _, name := range []string{"run", "bench", "report"} {
		c, _, err := root.Command(&cli.App{}, name).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		page := root.HelpPage(c, 80)
		for _, letter := range "tgbeifnmwNpcodrzyTGCSaRxJDVMuIK" {
			if f := c.Flags().ShorthandLookup(string(letter)); f == nil || f.Hidden ||
				!strings.Contains(page, "\n  -"+string(letter)+", --"+f.Name) {
				t.Errorf("%s --help does not list -%c", name, letter)
			}
		}
	}
}

// TestFirstScreen: the first 24 lines of run --help have what it does, three examples and the
// flags that most need.
func TestFirstScreen(t *testing.T) {
	for name, wanted := range map[string][]string{
		"run": {"simulates", "-b 8 -e", "--topo FILE", "--nodes N", "-b, --min-bytes", "-e, --max-bytes",
			"--nccl-version", "--trace FILE"},
		"bench": {"checks", "--compare", "--backend BACKEND", "-b, --min-bytes", "-e, --max-bytes",
			"-g, --gpus K"},
	} {
		c, _, err := root.Command(&cli.App{}, name).Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		screen := strings.Join(strings.SplitAfter(root.HelpPage(c, 80), "\n")[:24], "")
		for _, w := range wanted {
			if !strings.Contains(screen, w) {
				t.Errorf("the first screen of %s has no %q:\n%s", name, w, screen)
			}
		}
		if n := strings.Count(screen, "\n  simccl "+name+" "); n < 4 { // with the line of usage
			t.Errorf("%s: %d examples on the first screen", name, n-1)
		}
	}
}

// TestTopics: every topic that the help of a flag names exists, and has every name that the
// program accepts there, so that no flag lists them.
func TestTopics(t *testing.T) {
	text := map[string]string{}
	for _, topic := range root.Topics() {
		text[topic.Name] = topic.Text()
	}
	named := map[string]bool{}
	reference := regexp.MustCompile(`simccl help ([a-z-]+)`)
	for _, c := range commands(root.Command(&cli.App{})) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			for _, m := range reference.FindAllStringSubmatch(f.Usage, -1) {
				if named[m[1]] = true; text[m[1]] == "" {
					t.Errorf("%s --%s: there is no topic %s", c.CommandPath(), f.Name, m[1])
				}
			}
			if strings.Contains(f.Usage, release.Names()) || strings.Contains(f.Usage, netpreset.Names()) {
				t.Errorf("%s --%s lists what a topic has", c.CommandPath(), f.Name)
			}
		})
	}
	for _, topic := range []string{"releases", "columns", "networks", "faults", "algorithms"} {
		if !named[topic] {
			t.Errorf("no flag names the topic %s", topic)
		}
	}
	var columns []string
	for _, c := range sweep.AllColumns() {
		if columns = append(columns, c.Head.Name); c.What == "" {
			t.Errorf("column %s: nothing says what it is", c.Head.Name)
		}
	}
	for topic, names := range map[string][]string{
		"releases": strings.Split(release.Names(), ", "),
		"networks": slices.Concat(strings.Split(netpreset.Names(), ", "), gpu.NetworkNames(),
			netpreset.Models(), netpreset.Balances(), strings.Split(packet.Presets, ", ")),
		"columns": columns,
	} {
		for _, name := range names {
			if !regexp.MustCompile(`(^|[\s(])` + regexp.QuoteMeta(name) + `([\s,]|$)`).MatchString(
				text[topic]) {
				t.Errorf("help %s does not have %s", topic, name)
			}
		}
	}
}

// TestTopicsAreRight: what the topics say as examples is accepted, and means that.
func TestTopicsAreRight(t *testing.T) {
	for word, want := range map[string]string{"2.29.3": "2.29.2", "2.27.6": "2.27.7", "torch==2.8": "",
		"torch==2.6+cu126": ""} {
		r, _, err := release.Select(word)
		if err != nil || want != "" && r.Release.String() != want {
			t.Errorf("help releases: %s is answered by %v, %v", word, r, err)
		}
	}
	for _, topic := range root.Topics() {
		if topic.Name != "faults" {
			continue
		}
		text := topic.Text()
		rows := regexp.MustCompile(`(?m)^  (\S+?=\S+|down|storm\S*)  `).FindAllStringSubmatch(text, -1)
		if len(rows) < 14 {
			t.Errorf("only %d rows in help faults", len(rows))
		}
		for _, m := range rows {
			fault := m[1]
			switch device := strings.HasPrefix(fault, "rank=") || strings.HasPrefix(fault, "nic=") ||
				strings.HasPrefix(fault, "link="); {
			case strings.HasSuffix(fault, ":absent"):
			case device:
				fault += ":slow=2"
			default:
				fault = "nic=node0/2:" + fault
			}
			s := scenario.Spec{Workload: scenario.Workload{Op: "all_reduce"}, Network: scenario.Network{
				Model: "packet", Faults: []string{fault}}}
			if err := s.Validate(); err != nil {
				t.Errorf("help faults: %s: %v", fault, err)
			}
		}
	}
}
