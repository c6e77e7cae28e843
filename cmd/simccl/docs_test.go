package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/app/cli"
	"github.com/simccl/simccl/app/cli/root"
	"github.com/simccl/simccl/dev/golden"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// documents are the pages whose commands are held to.
func documents(t *testing.T) []string {
	t.Helper()
	pages, _ := filepath.Glob(golden.Root(t, "docs", "*.md"))
	results, _ := filepath.Glob(golden.Root(t, "docs", "results", "*.md"))
	pages = append(pages, results...)
	pages = append(pages, golden.Root(t, "README.md"), golden.Root(t, "CONTRIBUTING.md"))
	if len(pages) < 10 {
		t.Fatalf("only %d pages", len(pages))
	}
	return pages
}

// Every command of the documentation runs with the result that is printed below
// it. Blocks are ```console; what follows "$ " goes to a shell in a directory of
// the page's own. The lines below it must come in this order in what it prints,
// … matches anything, and a line of … alone for any lines. "|| true" allows
// any exit status. A block ```console hardware needs devices: without them its
// commands end with status 9. A page with patterns beside it prints whole lines (docs_patterns_test.go).
func TestDocumentedCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: the commands of all pages take half a minute")
	}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			blocks := consoleBlock.FindAllStringSubmatch(string(text), -1)
			if len(blocks) == 0 {
				return
			}
			t.Parallel()
			s := newShell(t)
			if patterns, err := os.ReadFile(patternsOf(page)); err == nil {
				s.page(t, page, string(text), string(patterns))
				return
			}
			for _, b := range blocks {
				s.block(t, b[2], b[1] != "")
			}
		})
	}
}

// block runs the commands of one block.
func (s *shell) block(t *testing.T, block string, hardware bool) {
	t.Helper()
	for part := range strings.SplitSeq("\n"+block, "\n$ ") {
		line, want, _ := strings.Cut(part, "\n")
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case hardware:
			s.checkAbsent(t, line)
			continue
		}
		out, errs, status := s.run(t, line)
		if status != 0 {
			t.Errorf("%s: exit status %d: %s", line, status, errs)
			continue
		}
		if missing := firstMissing(out, want); missing != "" {
			t.Errorf("%s: no line %q in\n%.1500s", line, missing, out)
		}
	}
}

// firstMissing is the first of the wanted lines that does not come in its
// place, "" where all do.
func firstMissing(out, want string) string {
	for w := range strings.Lines(want) {
		w = strings.TrimRight(w, "\n")
		if strings.TrimSpace(strings.ReplaceAll(w, "…", "")) == "" {
			continue
		}
		parts := strings.Split(w, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
		}
		at := regexp.MustCompile("(?m)^ *" + strings.Join(parts, `.*`)).FindStringIndex(out)
		if at == nil {
			return w
		}
		out = out[at[1]:]
	}
	return ""
}

// No page has a block of commands that is not run, and what is named in the
// running text is a command with options that there are.
func TestNoCommandIsOnlyText(t *testing.T) {
	tree := root.Command(&cli.App{})
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(page)
		rest := regexp.MustCompile("(?ms)^```console.*?^```").ReplaceAllString(string(text), "")
		for _, l := range regexp.MustCompile(`(?m)^\s*(\$ )?(bin/)?simccl .*$`).FindAllString(rest, -1) {
			t.Errorf("%s: not run: %q; put it into a block marked console", name, strings.TrimSpace(l))
		}
		for _, m := range regexp.MustCompile("`simccl ([^`]*)`").FindAllStringSubmatch(rest, -1) {
			if problem := unknownTo(tree, strings.Fields(m[1])); problem != "" {
				t.Errorf("%s: `simccl %s`: %s", name, m[1], problem)
			}
		}
	}
}

// unknownTo says which word of a command line names no command or option.
func unknownTo(root *cobra.Command, words []string) string {
	at := slices.IndexFunc(words, func(w string) bool {
		return w != strings.ToLower(w) || strings.HasPrefix(w, "-") || w == "…"
	})
	if at < 0 {
		at = len(words)
	}
	c, _, err := root.Find(words[:at])
	if err != nil {
		return err.Error()
	}
	c.InitDefaultHelpFlag()                         // as running it does
	if end := slices.Index(words, "--"); end >= 0 { // what follows is another program's
		words = words[:end]
	}
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		var f *pflag.Flag
		switch {
		case strings.HasPrefix(w, "--"):
			if f = c.Flags().Lookup(name); f == nil {
				f = c.InheritedFlags().Lookup(name)
			}
		case strings.HasPrefix(w, "-") && len(w) == 2:
			f = c.Flags().ShorthandLookup(w[1:])
		default:
			continue
		}
		if f == nil {
			return c.CommandPath() + " has no option " + w
		}
	}
	return ""
}

// Every target of make that a page names is there.
func TestDocumentedTargets(t *testing.T) {
	makefile, err := os.ReadFile(golden.Root(t, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`|&& )make ([a-z0-9-]+)").FindAllStringSubmatch(
			string(text), -1) {
			if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
				t.Errorf("%s: make %s: no such target", filepath.Base(page), m[1])
			}
		}
	}
}
