package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// A page that prints whole lines of output, with their numbers, has patterns in testdata/pages: the same
// commands, and below each the lines of its output that hold whatever the numbers are. There
//
//	…       alone: lines that the page leaves out (it prints … in their place)
//	*       alone: lines that the page prints as they come
//	a … b   a line that the page prints whole; … is anything
//
// Output and page must both have the form of the patterns; numbers may differ until the page is made anew
// (go test ./cmd/simccl -run TestDocumentedCommands/GUIDE -update).

// consoleBlock is a block of commands; hardware ones need devices.
var consoleBlock = regexp.MustCompile("(?ms)^```console( hardware)?\n(.*?)^```")

// patternsOf returns the file of a page's patterns.
func patternsOf(page string) string {
	return filepath.Join("testdata", "pages", strings.TrimSuffix(filepath.Base(page), ".md")+".txt")
}

// shown is a command and the lines below it.
type shown struct{ command, lines string }

// commandsOf lists the commands of a block, or of a file of patterns.
func commandsOf(block string) (all []shown) {
	for part := range strings.SplitSeq("\n"+block, "\n$ ") {
		if line, lines, _ := strings.Cut(part, "\n"); strings.TrimSpace(line) != "" {
			all = append(all, shown{line, strings.TrimRight(lines, "\n")})
		}
	}
	return all
}

// page runs the commands of a page with patterns, and makes the page anew where golden files are updated.
func (s *shell) page(t *testing.T, page, text, patterns string) {
	t.Helper()
	want := commandsOf(patterns)
	made := consoleBlock.ReplaceAllStringFunc(text, func(block string) string {
		b := consoleBlock.FindStringSubmatch(block)
		if b[1] != "" {
			s.block(t, b[2], true)
			return block
		}
		var out strings.Builder
		for _, c := range commandsOf(b[2]) {
			if len(want) == 0 || want[0].command != c.command {
				t.Fatalf("%s: %s: not the next command of %s", filepath.Base(page), c.command,
					patternsOf(page))
			}
			lines := s.shows(t, c, want[0].lines)
			want = want[1:]
			out.WriteString("$ " + c.command + "\n")
			if lines != "" {
				out.WriteString(lines + "\n")
			}
		}
		return "```console\n" + out.String() + "```"
	})
	if len(want) > 0 {
		t.Errorf("%s: %s is not on the page", patternsOf(page), want[0].command)
	}
	if golden.Updating() && !t.Failed() {
		if err := os.WriteFile(page, []byte(made), 0o644); err != nil {
			t.Error(err)
		}
	}
}

// shows runs a command and returns the lines that its patterns show, after comparing those of the page.
func (s *shell) shows(t *testing.T, c shown, patterns string) string {
	t.Helper()
	out, errs, status := s.run(t, c.command)
	if status != 0 {
		t.Errorf("%s: exit status %d: %s", c.command, status, errs)
		return ""
	}
	lines, missing := excerpt(out, patterns)
	if missing != "" {
		t.Errorf("%s: no line %q in its place in\n%.1500s", c.command, missing, out)
	}
	if again, missing := excerpt(c.lines, patterns); !golden.Updating() &&
		(missing != "" || again != c.lines) {
		t.Errorf("%s: the page has not the form of its patterns (line %q); make it anew with -update",
			c.command,
			missing)
	}
	return lines
}

// excerpt returns the lines of an output that patterns show; missing is the first pattern without a line in
// its place, or "" if all have one. Without patterns nothing is shown.
func excerpt(out, patterns string) (text, missing string) {
	if patterns == "" {
		return "", ""
	}
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	var shown []string
	skip, all, at := false, false, 0
	take := func(to int) bool { // the lines before to, as the patterns before say
		switch {
		case all:
			shown = append(shown, lines[at:to]...)
		case skip && to > at:
			shown = append(shown, "…")
		case !skip && to > at:
			return false
		}
		skip, all = false, false
		return true
	}
	for p := range strings.SplitSeq(patterns, "\n") {
		switch p {
		case "…":
			skip = true
			continue
		case "*":
			all = true
			continue
		}
		parts := strings.Split(p, "…")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		line, k := regexp.MustCompile("^"+strings.Join(parts, ".*")+" *$"), at
		for k < len(lines) && !line.MatchString(lines[k]) {
			k++
		}
		if k == len(lines) || !take(k) {
			return "", p
		}
		shown, at = append(shown, lines[k]), k+1
	}
	if !take(len(lines)) {
		return "", "(the end)"
	}
	for i := range shown {
		shown[i] = strings.TrimRight(shown[i], " ")
	}
	return strings.Join(shown, "\n"), ""
}

// Patterns show lines whole, leave out what … leaves out, and miss a line that is not in its place.
func TestExcerpt(t *testing.T) {
	const out = "a 1\nb 2\nc 3\nd 4\n"
	for _, c := range [][3]string{
		{"*", "a 1\nb 2\nc 3\nd 4", ""},
		{"…\nc …\n…", "…\nc 3\n…", ""},
		{"a …\n*\nd …", "a 1\nb 2\nc 3\nd 4", ""},
		{"a …\nc …\n…", "", "c …"},
		{"a …\n…\nb …\na …\n…", "", "a …"},
		{"a …\nb …", "", "(the end)"},
		{"", "", ""},
	} {
		if got, missing := excerpt(out, c[0]); got != c[1] || missing != c[2] {
			t.Errorf("%q: %q, missing %q", c[0], got, missing)
		} else if again, _ := excerpt(got, c[0]); again != got {
			t.Errorf("%q: of its own excerpt %q", c[0], again)
		}
	}
}
