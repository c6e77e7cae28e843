// Package ruletest runs conversations: files of testdata/rules in which a command and its input are
// above ----, and what it says below (cockroachdb/datadriven). A file holds one rule, and its first lines say
// which, with the place of NCCL's source that it follows where it is NCCL's.
//
//	go test ./topo -run Conversations -rewrite    writes what the commands say now; read the difference
//
// Machines is about machines: hosts and their paths, the graphs that are found on them, the
// channels of all hosts and the choice for an operation. Packages with a subject of their own bring their
// own commands (Run).
package ruletest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Run runs each file of testdata/rules of the package under test as a test of its own, with a new
// interpreter, which returns what a command says.
func Run(t *testing.T, interpreter func() func(t *testing.T, d *datadriven.TestData) string) {
	files, err := filepath.Glob("testdata/rules/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations in testdata/rules: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Fatalf("%s does not say which rule it holds: begin it with a line of # and the rule", file)
			}
			answer := interpreter()
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				said := strings.TrimRight(answer(t, d), "\n")
				if said == "" {
					return "nothing\n"
				}
				return said + "\n"
			})
		})
	}
}

// Word is the n-th argument without a value, "" without one.
func Word(d *datadriven.TestData, n int) string {
	for _, a := range d.CmdArgs {
		if len(a.Vals) > 0 {
			continue
		}
		if n == 0 {
			return a.Key
		}
		n--
	}
	return ""
}

// Value is the value of an argument, or another where there is none.
func Value(d *datadriven.TestData, key, other string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) > 0 {
			return strings.Join(a.Vals, ",")
		}
	}
	return other
}
