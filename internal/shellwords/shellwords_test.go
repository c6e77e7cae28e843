package shellwords

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                        nil,
		"  a  b ":                 {"a", "b"},
		`--env "A=1 2" '"x"'y ''`: {"--env", "A=1 2", `"x"y`, ""},
		"a\tb\u00a0c":             {"a", "b", "c"},
	} {
		if got, err := Split(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q %v, want %q", line, got, err, want)
		}
	}
	if _, err := Split(` --topo 'x `); err == nil || err.Error() != "--topo 'x: a quote ' is not closed" {
		t.Errorf("an open quote: %v", err)
	}
}

func TestSplitFile(t *testing.T) {
	got, err := SplitFile("# all\n--nodes 2 # two\n\n-g 4\n")
	if err != nil || !slices.Equal(got, []string{"--nodes", "2", "-g", "4"}) {
		t.Errorf("%q %v", got, err)
	}
	if got, err := SplitFile("# nothing\n"); got == nil || len(got) != 0 || err != nil {
		t.Errorf("%q %v, want an empty list", got, err)
	}
}
