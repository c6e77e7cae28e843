package jsonfile

import (
	"testing"
)

// TestStrict: what a type does not have is refused at its line and column, and
// later complaints find their places by path.
func TestStrict(t *testing.T) {
	type inner struct {
		Count int               `json:"count,omitempty"`
		Env   map[string]string `json:"env"`
	}
	type doc struct {
		Nodes []inner `json:"nodes"`
		Name  string  `json:"name"`
		skip  int
	}
	for _, x := range []struct{ text, want string }{
		{"{\"nodes\": [{\"count\": 2},\n {\"cuont\": 3}]}",
			`f:2:3: unknown member "cuont"; write one of count, env`},
		{"{\"name\": \"a\",\n\"name\": \"b\"}", `f:2:1: member "name" for the second time; keep one of them`},
		{"{\"nodes\": [{\"count\":\n \"2\"}]}", "f:2:2: string where a whole number is expected"},
		{"{\"nodes\": [{\"env\": {\"A\": 1}}]}", "f:1:26: number where a string is expected"},
		{"{} 1", "f:1:4: something follows the object"},
		{"{\"nodes\": 3}", "f:1:11: a list [ … ] is expected"},
	} {
		var d doc
		if _, err := Strict([]byte(x.text), "f", &d); err == nil || err.Error() != x.want {
			t.Errorf("%q: %v, want %s", x.text, err, x.want)
		}
	}
	var d doc
	p, err := Strict([]byte("{\"nodes\": [\n {\"count\": 2, \"env\": {\"A\": \"x\"}}]}"), "f", &d)
	if err != nil || d.Nodes[0].Count != 2 || d.Nodes[0].Env["A"] != "x" || d.skip != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	for path, want := range map[string]string{"nodes[0].count": "f:2:12: bad",
		"nodes[0].env.B": "f:2:22: bad", "nodes[4]": "f:1:11: bad", "name": "f:1:1: bad"} {
		if err := p.Fail(path, "", "bad"); err.Error() != want {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
}

// TestHints: a member that differs in case, or is the begin or the continuation of one, is the one meant.
func TestHints(t *testing.T) {
	names := []string{"count", "env"}
	for key, want := range map[string]string{"COUNT": "write count", "cou": "write count",
		"environment": "write env", "vne": "write one of count, env"} {
		if got := hintFor(key, names); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}
