package explain

import (
	"slices"
	"strings"
	"testing"
)

// TestEntries: each entry has five lines of 80 columns at most, a command that shows it, links that lead to
// entries, and a name that no other has; they are in the order of the alphabet.
func TestEntries(t *testing.T) {
	seen := map[string]string{}
	for _, w := range Words() {
		if n := strings.Count(w.Text, "\n") + 1; n > 5 || w.Text == "" {
			t.Errorf("%s has %d lines", w.Name, n)
		}
		for line := range strings.Lines(w.Text) {
			if len([]rune(strings.TrimSuffix(line, "\n"))) > 80 {
				t.Errorf("%s is wider than 80 columns: %s", w.Name, line)
			}
		}
		if !strings.HasPrefix(w.Try, "simccl ") {
			t.Errorf("%s: no command shows it", w.Name)
		}
		for _, name := range append([]string{w.Name}, w.Aliases...) {
			if seen[wordKey(name)] != "" {
				t.Errorf("%s is of %s and of %s", name, seen[wordKey(name)], w.Name)
			}
			seen[wordKey(name)] = w.Name
		}
		for _, to := range w.See {
			if _, ok := FindWord(to); !ok {
				t.Errorf("%s links to %s, which is no entry", w.Name, to)
			}
		}
		if strings.Contains(w.Text, "](") {
			t.Errorf("%s: a link is printed as one: %s", w.Name, w.Text)
		}
	}
	if len(Words()) < 40 || !slices.IsSortedFunc(Words(), func(a, b Word) int {
		return strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	}) {
		t.Error("entries are out of order, or lost:", WordNames())
	}
}

// TestFind: a word is found by its alias, with other case, hyphens and plural.
func TestFind(t *testing.T) {
	for word, want := range map[string]string{"ring": "ring", "Rings": "ring",
		"double-binary-tree": "double binary tree",
		"ll128":              "LL128", "GPUDirect RDMA": "GDR", "sharp": "CollNet", "all_reduce": "",
		"": ""} {
		if w, _ := FindWord(word); w.Name != want {
			t.Errorf("%q is found as %q", word, w.Name)
		}
	}
}

// TestWalk: each station has a text of five lines at most whose links are entries, and a command; explain
// walk prints all of them.
func TestWalk(t *testing.T) {
	all, _ := FindWord("walk")
	if len(Walk()) < 8 {
		t.Errorf("%d stations", len(Walk()))
	}
	for _, w := range Walk() {
		if n := strings.Count(w.Text, "\n") + 1; n > 5 || !strings.HasPrefix(w.Try, "simccl ") {
			t.Errorf("%s has %d lines, and the command %q", w.Name, n, w.Try)
		}
		for _, to := range w.See {
			if _, ok := FindWord(to); !ok {
				t.Errorf("%s links to %s, which is no entry", w.Name, to)
			}
		}
		if strings.Contains(w.Text, "](") || !strings.Contains(all.Print(), w.Text) {
			t.Errorf("%s is not printed, or with a link: %s", w.Name, w.Text)
		}
	}
}
