package jsonscan

import (
	"strings"
	"testing"
)

// TestNumbersEndAtALetter: what begins with a digit is a number to its end, and not 4 of 4x2; words that
// profilers write for numbers are read.
func TestNumbersEndAtALetter(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 4x2}`:                            "f:1:8: '}' is expected here, not 'x'",
		`{"a": 12e3, "b": 0.5E-2}`:              "",
		`{"a": NaN, "b": -Infinity, "c": null}`: "",
	} {
		s := New(strings.NewReader(text), "f")
		err := s.Object(func([]byte) error {
			_, err := s.Int()
			return err
		})
		if got := ""; err != nil {
			if got = err.Error(); !strings.HasPrefix(got, want) || want == "" {
				t.Errorf("%s: %s, want %q", text, got, want)
			}
		} else if want != "" {
			t.Errorf("%s: read, want %q", text, want)
		}
	}
}
