package root

import (
	"io"
	"strings"
	"testing"

	"github.com/simccl/simccl/internal/shellwords"
)

// TestExamplesGoOn: a command line that is too long goes on in a next line as a shell reads it,
// its comment before it, and a flag stays beside its value.
func TestExamplesGoOn(t *testing.T) {
	long := `  simccl diff all_reduce --nodes 4 --a "--topo a.xml --nodes 2" --b 'K=V' --sizes 1M`
	for _, columns := range []int{40, 60, 80} {
		got := examples(long+"  # which of two\n  simccl version\n", columns)
		first, rest, _ := strings.Cut(got, "\n")
		if first != "  # which of two" {
			t.Errorf("%d columns: the comment is not first:\n%s", columns, got)
		}
		rest, last, _ := strings.Cut(rest, "\n  simccl version")
		want, err := shellwords.Split(long)
		if err != nil {
			t.Fatal(err)
		}
		have, err := shellwords.Split(strings.ReplaceAll(rest, "\\\n", ""))
		if err != nil || strings.Join(have, "|") != strings.Join(want, "|") || last != "" {
			t.Errorf("%d columns: %q, want %q: %v", columns, have, want, err)
		}
		for line := range strings.Lines(rest) {
			if len(line) > columns+1 || strings.HasSuffix(line, "--nodes \\\n") {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}

// TestProse: paragraphs are filled, lines that are indented stay, and a row that is too long
// goes on below its last column.
func TestProse(t *testing.T) {
	got := prose("one two\nthree\n\n  a    b c\n  name  words that do not fit here\nend", 24)
	want := "one two three\n\n  a    b c\n  name  words that do\n        not fit here\nend"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWidth: COLUMNS counts, else the terminal's width, else 80; nothing is wider than a
// person reads, or too narrow for a flag.
func TestWidth(t *testing.T) {
	for set, want := range map[string]int{"": 80, "100": 100, "1000": 120, "7": 40, "x": 80, "-3": 80} {
		if got := helpColumns(io.Discard, []string{"HOME=/", "COLUMNS=" + set}); got != want {
			t.Errorf("COLUMNS=%s: %d, want %d", set, got, want)
		}
	}
}
