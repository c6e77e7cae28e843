package golden

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Input is a right file, and what reads it.
type Input struct {
	Name, Text string
	Read       func(text string) error
	// Instead is what a number becomes: "4x2", where that is no syntax at all a text in quotes.
	Instead string
	// Free says of a place in a line whether the reader may take any text there; nil: nowhere.
	Free func(line string, at int) bool
}

// Quoted reports whether a place in a line is in a string.
func Quoted(line string, at int) bool {
	return strings.Count(strings.ReplaceAll(line[:at], `\"`, ""), `"`)%2 == 1
}

// most bounds the damages of a file; of more, every so many.
const most = 150

// number is one by itself: not a part of a name, a version or a time.
var number = regexp.MustCompile(`(^|[\s,\[:>=("])(-?\d+(?:\.\d+)?)($|[\s,\]})"<])`)

// DamageEach is Damage of every file that a pattern of filepath.Glob matches, as f says of it.
func DamageEach(t testing.TB, pattern string, f func(name string) Input) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatalf("%v", err)
		}
		in := f(name)
		in.Name, in.Text = name, string(text)
		Damage(t, in)
	}
}

// Damage checks that the file is read, and that it is refused at the line of any number of it that becomes
// none.
func Damage(t testing.TB, f Input) {
	t.Helper()
	if err := f.Read(f.Text); err != nil {
		t.Fatalf("%s: %v", f.Name, err)
	}
	instead := cmp.Or(f.Instead, "4x2")
	type place struct{ line, from, to int }
	var places []place
	lines := strings.SplitAfter(f.Text, "\n")
	for i, line := range lines {
		for at := 0; ; {
			m := number.FindStringSubmatchIndex(line[at:])
			if m == nil {
				break
			}
			from, to := at+m[4], at+m[5]
			if at = to; f.Free == nil || !f.Free(line, from) {
				places = append(places, place{i, from, to})
			}
		}
	}
	if len(places) == 0 {
		t.Fatalf("%s: has no number", f.Name)
	}
	for k := 0; k < len(places); k += 1 + len(places)/most {
		p := places[k]
		bad := append([]string(nil), lines...)
		bad[p.line] = lines[p.line][:p.from] + instead + lines[p.line][p.to:]
		err := f.Read(strings.Join(bad, ""))
		if want := fmt.Sprintf("%s:%d:", f.Name, p.line+1); err == nil || !strings.Contains(err.Error(),
			want) {
			t.Errorf("%s%d: %s for %s: %v", want, p.from+1, instead, lines[p.line][p.from:p.to], err)
		}
	}
}
