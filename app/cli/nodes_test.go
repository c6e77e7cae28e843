package cli

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/scenario"
)

func TestParseNodes(t *testing.T) {
	there := func(name string) bool { return name == "a.xml:4" }
	for _, c := range []struct {
		line  string
		count int
		want  []scenario.Nodes
	}{
		{"", 0, nil}, {"", 3, []scenario.Nodes{{Count: 3}}},
		{"b.xml", 2, []scenario.Nodes{{Topo: "b.xml", Count: 2}}},
		{"b.xml:4,c.xml", 0, []scenario.Nodes{{Topo: "b.xml", Count: 4}, {Topo: "c.xml"}}},
		{"a.xml:4", 2, []scenario.Nodes{{Topo: "a.xml:4", Count: 2}}},
	} {
		if got, err := parseNodes(c.line, c.count, there); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q %d: %+v %v, want %+v", c.line, c.count, got, err, c.want)
		}
	}
	for _, line := range []string{"b.xml:0", "b.xml:x", "b.xml,", "b.xml:2"} {
		if got, err := parseNodes(line, 2, there); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}
