package simfiles

import (
	"strings"
	"testing"
)

// TestWordsKnowTheirPlaces: lines and columns count from 1, all white space separates.
func TestWordsKnowTheirPlaces(t *testing.T) {
	text := splitWords("f.txt", []byte("a  bc\t\rd\n\n ef\v\fg "))
	var got []word
	for !text.Done() {
		next := text.Peek()
		w, err := text.Take("word")
		if err != nil || w != next {
			t.Fatalf("%+v after %+v: %v", w, next, err)
		}
		got = append(got, w)
	}
	for i, want := range []word{{"a", 1, 1}, {"bc", 1, 4}, {"d", 1, 8}, {"ef", 3, 2}, {"g", 3, 6}} {
		if i >= len(got) || got[i] != want {
			t.Errorf("word %d: %+v, want %+v", i, got, want)
		}
	}
	if len(got) != 5 || text.Peek() != (word{Line: 3, Col: 8}) || text.End != text.Peek() {
		t.Errorf("%d words, end %+v", len(got), text.End)
	}
	if _, err := text.Take("a rate"); err == nil || !strings.Contains(err.Error(), "f.txt:3:8") ||
		!strings.Contains(err.Error(), "ends where a rate is expected") {
		t.Error(err)
	}
	if empty := splitWords("f.txt", nil); !empty.Done() || empty.End != (word{Line: 1, Col: 1}) {
		t.Errorf("of nothing: %+v", empty)
	}
}

// TestNumbersHaveBounds: the least and the most are taken; others name their place.
func TestNumbersHaveBounds(t *testing.T) {
	for _, c := range []struct {
		text    string
		integer bool
		want    float64
		ok      bool
	}{
		{"2", true, 2, true}, {"5", true, 5, true}, {"1", true, 0, false}, {"6", true, 0, false},
		{"3.5", true, 0, false}, {"x", true, 0, false}, {"010", true, 0, false}, {"", true, 0, false},
		{"2", false, 2, true}, {"5", false, 5, true}, {"3.5", false, 3.5, true}, {"1.9", false, 0, false},
		{"5.1", false, 0, false}, {"NaN", false, 0, false}, {"x", false, 0, false}, {"", false, 0, false},
	} {
		text := splitWords("f.txt", []byte("\n  "+c.text))
		var got float64
		var err error
		if c.integer {
			var n int64
			n, err = text.Integer("count", 2, 5)
			got = float64(n)
		} else {
			got, err = text.Number("rate", 2, 5)
		}
		if got != c.want || (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(),
			"f.txt:2:3") {
			t.Errorf("%q: %g, %v", c.text, got, err)
		}
	}
}
