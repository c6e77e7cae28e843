package scenario

import (
	"slices"
	"testing"
)

func TestParseNodes(t *testing.T) {
	there := func(name string) bool { return name == "a.xml:4" }
	for _, c := range []struct {
		line  string
		count int
		want  []Nodes
	}{
		{"", 0, nil}, {"", 3, []Nodes{{Count: 3}}}, {"b.xml", 2, []Nodes{{Topo: "b.xml", Count: 2}}},
		{"b.xml:4,c.xml", 0, []Nodes{{Topo: "b.xml", Count: 4}, {Topo: "c.xml"}}}, {"a.xml:4", 2, []Nodes{{Topo: "a.xml:4", Count: 2}}},
	} {
		if got, err := ParseNodes(c.line, c.count, there); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q %d: %+v %v, want %+v", c.line, c.count, got, err, c.want)
		}
	}
	for _, line := range []string{"b.xml:0", "b.xml:x", "b.xml,", "b.xml:2"} {
		if got, err := ParseNodes(line, 2, there); err == nil {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

// TestWithEnv: the Spec that it is made of keeps its own.
func TestWithEnv(t *testing.T) {
	s := Spec{NCCL: NCCL{Env: map[string]string{"NCCL_ALGO": "Ring"}}}
	got := s.WithEnv([]string{"NCCL_ALGO=Tree", "word"})
	if got.NCCL.Env["NCCL_ALGO"] != "Tree" || s.NCCL.Env["NCCL_ALGO"] != "Ring" || len(got.NCCL.Env) != 1 {
		t.Error(got.NCCL.Env, s.NCCL.Env)
	}
}
