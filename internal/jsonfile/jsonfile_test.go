package jsonfile

import (
	"strings"
	"testing"
)

// TestPlaces: every fault has its line and column.
func TestPlaces(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"{\"a\": [1,\n 2, \"x\"]}", "f:2:5: string where a whole number is expected"},
		{"{\"a\": [1,\n 2, 3]} {}", "f:2:9: something follows the object"},
		{"{\"a\": {}}", "f:1:7: a list [ … ] is expected"},
		{"{\n\"b\": 1}", "f:2:1: no b; write a"},
		{"{\"a\": [1", "f:1:9: the file ends too early"},
		{"{\"a\": [1;", "f:1:8: not JSON"},
		{"7", "f:1:1: an object { … } is expected"},
		{"", "f:1:1: the file ends too early"},
	} {
		r := New([]byte(x.text), "f")
		sum := 0
		err := r.Object(func(key string, at int64) error {
			if key != "a" {
				return r.Fail(at, "write a", "no %s", key)
			}
			return r.List(func(int64) error {
				var v int
				err := r.Decode(&v)
				sum += v
				return err
			})
		})
		if err == nil {
			err = r.End()
		}
		if err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%q: %v, want %s", x.text, err, x.want)
		}
	}
}

// TestControlCharactersAreRefused: a name is printed in tables and messages.
func TestControlCharactersAreRefused(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{`"a\u001b[2J"`,
			"f:1:1: a text holds the control character U+001B; write names without control characters"},
		{"\n" + `{"Name": "a\u202e"}`,
			"f:2:1: a text holds the control character U+202E; write names without control characters"},
		{`{"List": ["a", "b\n"]}`,
			"f:1:1: a text holds the control character U+000A; write names without control characters"},
		{`{"Name": "µs · 数"}`, ""},
	} {
		r := New([]byte(x.text), "f")
		var v any = new(string)
		if x.text[0] != '"' {
			v = &struct {
				Name string
				List []string
			}{}
		}
		got := ""
		if err := r.Decode(v); err != nil {
			got = err.Error()
		}
		if got != x.want {
			t.Errorf("%s: %q, want %q", x.text, got, x.want)
		}
	}
}
