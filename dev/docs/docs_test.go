// Package docs tests the Go code that the documentation shows, and docs/schemas: JSON Schemas of what simccl
// reads and prints, made from the Go types and held against real documents.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// block is a fenced block of Go in a Markdown file.
type block struct {
	file string // relative to the tree's root
	line int    // of its first line of code
	code string
}

// blocks returns the Go blocks of a Markdown text. A fence may be indented and
// be of backticks or tildes; it ends with one of its own kind, at least as long.
func blocks(file, text string) []block {
	var out []block
	fence, open := "", (*block)(nil)
	for n, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		mark := bare[:len(bare)-len(strings.TrimLeft(bare, "`~"))]
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
			if words := strings.Fields(bare[len(mark):]); len(words) > 0 &&
				(words[0] == "go" || words[0] == "golang") {
				out = append(out, block{file: file, line: n + 2})
				open = &out[len(out)-1]
			}
		case fence != "" && bare == mark && strings.HasPrefix(mark, fence):
			fence, open = "", nil
		case open != nil:
			open.code += line + "\n"
		}
	}
	return out
}

// documented returns the Go blocks of all Markdown files of the tree.
func documented(t *testing.T) []block {
	t.Helper()
	var out []block
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := filepath.Base(name)
		if d.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "bin" ||
			base == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		out = append(out, blocks(filepath.ToSlash(rel), string(text))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outside makes a module that is not simccl, requires it as this checkout has
// it, and holds each block as a program of its own, in the folder of its number.
// Complaints about a block name its place in the documentation.
func outside(t *testing.T, all []block) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} { // the same versions of all that simccl requires
		text, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	if said, err := command(dir, "go", "mod", "edit", "-module=example.com/outside",
		"-require=github.com/simccl/simccl@v0.0.0", "-replace=github.com/simccl/simccl="+here); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for i, b := range all {
		folder := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, "main.go"), fmt.Sprintf("//line %s:%d\n%s", b.file, b.line, b.code))
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs a tool of Go in dir, without settings of NCCL. The module takes
// what simccl requires, in the versions that simccl has, and nothing else.
func command(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "NCCL_") && !strings.HasPrefix(v, "SIMCCL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GOWORK=off", "CGO_ENABLED=0",
		"GOFLAGS=-mod=readonly -buildvcs=false -trimpath")
	said, err := cmd.CombinedOutput()
	return string(said), err
}

// TestGoBlocksBuild builds and vets every Go block of the documentation as a
// program outside the module. So a block is a whole program: a reader can copy
// it, and it stops compiling here when it stops compiling there.
func TestGoBlocksBuild(t *testing.T) {
	all := documented(t)
	if len(all) == 0 {
		t.Fatal("the documentation shows no Go")
	}
	for _, b := range all {
		if !strings.HasPrefix(strings.TrimSpace(b.code), "package main") {
			t.Errorf("%s:%d: a fragment; write a whole program that begins with package main, so that it "+
				"can be built", b.file, b.line)
		}
	}
	if t.Failed() {
		return
	}
	dir := outside(t, all)
	for _, args := range [][]string{{"build", "-o", os.DevNull, "./..."}, {"vet", "./..."}} {
		if said, err := command(dir, "go", args...); err != nil {
			t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, said)
		}
	}
}

// TestLibraryProgramsRun runs the first two programs of docs/LIBRARY.md beside a
// topology: the sweep prints a line a size, the other one its line and a trace.
func TestLibraryProgramsRun(t *testing.T) {
	var library []block
	for _, b := range documented(t) {
		if b.file == "docs/LIBRARY.md" {
			library = append(library, b)
		}
	}
	if len(library) < 2 {
		t.Fatalf("docs/LIBRARY.md shows %d programs", len(library))
	}
	dir := outside(t, library[:2])
	topo, err := os.ReadFile(filepath.Join(root, "testdata/topos/dgx-h100.xml"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "topo.xml"), string(topo))
	for i, lines := range []int{4, 1} {
		said, err := command(dir, "go", "run", fmt.Sprintf("./%d", i))
		if err != nil || strings.Count(said, " us ")+strings.Count(said, " us, ") != lines ||
			strings.Count(said, "GB/s\n") != lines {
			t.Errorf("program %d: %v\n%s", i, err, said)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "out.json")); err != nil || info.Size() == 0 {
		t.Errorf("no trace: %v", err)
	}
}

// TestBrokenBlockIsFound: a block that names what is not there does not build,
// and the complaint names the line of the page.
func TestBrokenBlockIsFound(t *testing.T) {
	text := "text\n\n````md\n```go\nno code\n```\n````\n\n~~~go\npackage main\n\n" +
		"import \"github.com/simccl/simccl/config\"\n\n" +
		"func main() { config.FromOS(nil, false) }\n~~~\n```\ngo\n```\n"
	all := blocks("docs/PAGE.md", text)
	if len(all) != 1 || all[0].line != 10 {
		t.Fatalf("%+v", all)
	}
	said, err := command(outside(t, all), "go", "build", "-o", os.DevNull, "./...")
	if err == nil || !strings.Contains(said, "PAGE.md:14") || !strings.Contains(said, "FromOS") {
		t.Errorf("%v\n%s", err, said)
	}
}

// TestLibraryNamesEveryRoom holds docs/LIBRARY.md to the tree: each top-level folder that a
// program outside the module can import from is named there with its promise.
func TestLibraryNamesEveryRoom(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "LIBRARY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "## What to expect of the packages")
	if !ok {
		t.Fatal("docs/LIBRARY.md has no table of packages")
	}
	named := map[string]bool{".": true}
	for _, line := range strings.Split(table, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, word := range strings.Split(cells[2], ",") {
			named[strings.TrimSpace(word)] = true
		}
	}
	out, err := exec.Command("go", "list", "-f", "{{.Name}} {{.ImportPath}}",
		"github.com/simccl/simccl/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	public := 0
	for _, line := range strings.Fields(strings.ReplaceAll(string(out), "main github.com", "- github.com")) {
		rel := strings.TrimPrefix(line, "github.com/simccl/simccl/")
		if rel == line || strings.HasPrefix(rel, "tools") {
			continue
		}
		public++
		if room, _, _ := strings.Cut(rel, "/"); !named[room] {
			t.Errorf("docs/LIBRARY.md promises nothing of %s: name its room there", rel)
		}
	}
	if public < 20 {
		t.Fatalf("%d public packages found", public)
	}
}
