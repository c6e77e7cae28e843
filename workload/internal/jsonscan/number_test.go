package jsonscan

import (
	"encoding/json"
	"math"
	"testing"
)

// TestParseIntReads63Bits: all of them, and no more.
func TestParseIntReads63Bits(t *testing.T) {
	for text, want := range map[string]struct {
		n  int64
		ok bool
	}{"9223372036854775807": {math.MaxInt64, true}, "9223372036854775800": {9223372036854775800, true},
		"-9223372036854775807": {-math.MaxInt64, true},
		"9223372036854775808":  {math.MaxInt64, false}, "92233720368547758070": {math.MaxInt64, false},
		"-99999999999999999999": {-math.MaxInt64, false}, "12x": {12, true}, "x": {0, false}} {
		if n, ok := ParseInt([]byte(text)); n != want.n || ok != want.ok {
			t.Errorf("%s: %d %v, want %d %v", text, n, ok, want.n, want.ok)
		}
	}
}

// TestUnescapeKeepsWhatIsNoEscape: and reads the others as encoding/json does.
func TestUnescapeKeepsWhatIsNoEscape(t *testing.T) {
	for raw, want := range map[string]string{`a\qb`: `a\qb`, `\u12`: `\u12`, `a\`: `a\`, `\x41`: `\x41`} {
		if got := string(unescape(nil, []byte(raw))); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
	for _, raw := range []string{`\"\\\/\b\f\n\r\t`, `\u00e9\u4e2d`, `\ud83d\ude00`, `\ud800A`,
		`\ud800\u0041`, `\udc00\ud83d\ude00`} {
		var want string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := string(unescape(nil, []byte(raw))); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
