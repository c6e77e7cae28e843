package lint

import (
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	link    = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	mention = regexp.MustCompile(`\bdocs/[A-Za-z0-9_/.-]+\.md\b`)
)

// CheckDocs reports links of Markdown files and mentions of docs/….md in Go
// files that lead nowhere. fsys is the tree; directories whose name begins with
// a dot, bin and node_modules are no part of it.
func CheckDocs(fsys fs.FS) ([]Finding, error) {
	var found []Finding
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := path.Base(name); d.IsDir() && name != "." && (strings.HasPrefix(base, ".") ||
			base == "bin" || base == "node_modules") {
			return fs.SkipDir
		}
		markdown := strings.HasSuffix(name, ".md")
		if d.IsDir() || !markdown && (!strings.HasSuffix(name, ".go") ||
			strings.HasSuffix(name, "_test.go")) {
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, target := range targets(name, line, markdown) {
				if _, err := fs.Stat(fsys, target); err != nil {
					found = append(found, Finding{Pos: token.Position{Filename: name, Line: i + 1, Column: 1},
						Rule:    "docs",
						Message: target + " does not exist; write it or name what does"})
				}
			}
		}
		return nil
	})
	return found, err
}

// targets lists the files of the tree that a line leads to.
func targets(name, line string, markdown bool) []string {
	if !markdown {
		return mention.FindAllString(line, -1)
	}
	var out []string
	for _, m := range link.FindAllStringSubmatch(line, -1) {
		if to := m[1]; !strings.Contains(to, ":") {
			out = append(out, path.Join(path.Dir(name), to))
		}
	}
	return out
}
