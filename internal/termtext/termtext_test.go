package termtext

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

const hostile = "a\x1b[2Jb\u009b31mc\x7fd\u202ee\u2066f\u200fg\u2028h\u061ci\x00j\rk\nl\tm"

func TestEscapeLeavesNoControlCharacter(t *testing.T) {
	want := `a\u001b[2Jb\u009b31mc\u007fd\u202ee\u2066f\u200fg\u2028h\u061ci\u0000j\rk\nl\tm`
	if got := Escape(hostile); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Escape("µs · 10 °C, 数"); got != "µs · 10 °C, 数" {
		t.Errorf("letters changed: %q", got)
	}
	if got := Escape("a\x9bb\xff"); got != "a\ufffdb\ufffd" {
		t.Errorf("bytes that are no UTF-8: %q", got)
	}
}

func TestQuoteCuts(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want string
	}{
		{`plain`, 10, `"plain"`},
		{"a\x1b", 10, `"a\u001b"`},
		{`a"b\c`, 10, `"a\"b\\c"`},
		{strings.Repeat("9", 1000), 4, `"9999…" (1000 bytes)`},
		{"ééé", 3, `"ééé"`},
		{"éééé", 3, `"ééé…" (8 bytes)`},
	} {
		if got := Quote(c.in, c.n); got != c.want {
			t.Errorf("Quote(%q, %d) = %s, want %s", c.in, c.n, got, c.want)
		}
	}
	if got := Quote(strings.Repeat("x", 15<<20), 0); utf8.RuneCountInString(got) > DefaultCut+30 {
		t.Errorf("%d characters", utf8.RuneCountInString(got))
	}
	if got := Short("ab\ncdef", 4); got != `ab\nc… (7 bytes)` {
		t.Errorf("Short: %s", got)
	}
}

// written is what a Writer makes of text that comes in pieces of n bytes.
func written(t testing.TB, text, mark string, n int) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, mark)
	for len(text) > 0 {
		k := min(n, len(text))
		if got, err := w.Write([]byte(text[:k])); got != k || err != nil {
			t.Fatalf("%d of %d bytes, %v", got, k, err)
		}
		text = text[k:]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWriterEscapesInAnyPieces(t *testing.T) {
	text := hostile + "é\x9b 数 \x1bKEY[31mred\x1bKEY[0m \x1b[31m \x1bKE"
	want := "a\\u001b[2Jb\\u009b31mc\\u007fd\\u202ee\\u2066f\\u200fg\\u2028h\\u061ci\\u0000j\\rk\nl\tm" +
		"é\ufffd 数 \x1b[31mred\x1b[0m \\u001b[31m \\u001bKE"
	for n := range len(text) {
		if got := written(t, text, "KEY", n+1); got != want {
			t.Fatalf("in pieces of %d: %q, want %q", n+1, got, want)
		}
	}
	if got := written(t, "\x1bKEY[31m", "", 100); got != `\u001bKEY[31m` {
		t.Errorf("without a mark: %q", got)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestWriterPassesErrorsOn(t *testing.T) {
	for _, text := range []string{"plain", "a\x1bb"} {
		if _, err := NewWriter(full{}, "").Write([]byte(text)); err == nil {
			t.Errorf("%q was written to a full disk", text)
		}
	}
}

// A JSON document stays the same document.
func FuzzWriter(f *testing.F) {
	f.Add(hostile, 3)
	f.Fuzz(func(t *testing.T, s string, n int) {
		doc, err := json.Marshal(map[string]string{"name": s})
		if err != nil {
			t.Skip()
		}
		var want, got map[string]string
		if err := json.Unmarshal(doc, &want); err != nil {
			t.Skip()
		}
		n = max(1, min(n, 64))
		if err := json.Unmarshal([]byte(written(t, string(doc), "MARK", n)), &got); err != nil ||
			got["name"] != want["name"] {
			t.Fatalf("%q became %q: %v", want["name"], got["name"], err)
		}
		for _, r := range written(t, s, "MARK-that-is-not-in-it", n) {
			if Control(r) && r != '\n' && r != '\t' {
				t.Fatalf("%U passed", r)
			}
		}
		if one := Escape(s); !clean(one) {
			t.Fatalf("%q is not clean", one)
		}
	})
}
