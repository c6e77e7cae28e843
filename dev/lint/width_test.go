package lint

import (
	"slices"
	"strings"
	"testing"
)

// TestLinesEndAt110: a tab counts four columns and a rune one; directives and comments with
// a URL may be longer.
func TestLinesEndAt110(t *testing.T) {
	long := strings.Repeat("x", 105)
	text := strings.Join([]string{long + "12345", long + "123456", "\t" + long + "1", "\t" + long + "12",
		strings.Repeat("é", 110), "//go:embed " + long, "// https://" + long, "// " + long + "123"}, "\n")
	if got, want := wide([]byte(text)), []int{2, 4, 8}; !slices.Equal(got, want) {
		t.Errorf("lines %v, want %v", got, want)
	}
}
