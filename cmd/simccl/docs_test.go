package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command of the documentation runs with the result that stands below
// it. Blocks are ```console; a line that begins with "$ simccl" is run, "|| true"
// allows any exit status; the lines below it must come in this order in what it
// prints, … stands for anything, and a line of … alone for any lines.
func TestDocumentedCommands(t *testing.T) {
	pages, _ := filepath.Glob("../../docs/*.md")
	repo, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, page := range append(pages, "../../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(filepath.Join(repo, "testdata"), filepath.Join(dir, "testdata")); err != nil {
				t.Skip("no symbolic links here: ", err)
			}
			t.Chdir(dir)
			for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
				commands += runBlock(t, block[1])
			}
		})
	}
	if commands == 0 {
		t.Error("no page has a command: the marks must have changed")
	}
}

// runBlock runs the commands of one block and returns their number.
func runBlock(t *testing.T, block string) int {
	t.Helper()
	n := 0
	for part := range strings.SplitSeq("\n"+block, "\n$ ") {
		line, want, _ := strings.Cut(part, "\n")
		args, ok := strings.CutPrefix(line, "simccl ")
		if !ok {
			if strings.TrimSpace(line) != "" {
				t.Errorf("not a simccl command: %s", line)
			}
			continue
		}
		n++
		args, anyStatus := strings.CutSuffix(args, " || true")
		var out, errs bytes.Buffer
		code := run(context.Background(), strings.Fields(args), &app{out: &out, err: &errs})
		if code != 0 && !anyStatus {
			t.Errorf("simccl %s: exit status %d: %s", args, code, errs.String())
			continue
		}
		rest := out.String()
		for w := range strings.Lines(want) {
			w = strings.TrimRight(w, "\n")
			if strings.TrimSpace(strings.ReplaceAll(w, "…", "")) == "" {
				continue
			}
			parts := strings.Split(w, "…")
			for i := range parts {
				parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
			}
			at := regexp.MustCompile("(?m)^ *" + strings.Join(parts, `.*`)).FindStringIndex(rest)
			if at == nil {
				t.Errorf("simccl %s: no line %q in\n%.1500s", args, w, rest)
				break
			}
			rest = rest[at[1]:]
		}
	}
	return n
}
