package lint

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLongFilesSayHowTheyWereChecked: a golden of thousands of lines is not read, so that each text file of
// testdata of more than 200 lines has in testdata/long.txt what it is and how it was checked.
func TestLongFilesSayHowTheyWereChecked(t *testing.T) {
	table, err := os.ReadFile("testdata/long.txt")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	patterns, reason := []string(nil), false
	for line := range strings.Lines(string(table)) {
		switch text := strings.TrimSpace(line); {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.HasPrefix(line, "\t"):
			reason = true
		default:
			patterns, reason, used[text] = append(patterns, text), false, false
		}
	}
	if !reason {
		t.Error("long.txt: the last files have no reason")
	}
	root := os.DirFS("../..")
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "fuzz", "rapid", "node_modules", "bin", "out"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains("/"+path.Dir(name)+"/", "/testdata/") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil || bytes.IndexByte(text, 0) >= 0 || bytes.Count(text, []byte("\n")) <= 200 {
			return err
		}
		for _, p := range patterns {
			if ok, _ := path.Match(p, name); ok {
				used[p] = true
				return nil
			}
		}
		t.Errorf("%s has more than 200 lines: say in dev/lint/testdata/long.txt how it was checked", name)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for p, is := range used {
		if !is {
			t.Errorf("long.txt: no file of more than 200 lines is %s", p)
		}
	}
}
