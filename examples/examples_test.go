// Package examples runs the programs below it.
package examples

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// TestExamplesRun: each program builds, ends well and prints what its comment says. Figures
// are patterns: times change as the model gets better.
func TestExamplesRun(t *testing.T) {
	says := map[string]string{
		"sweep":    `16 ranks, rules of NCCL 2\.28\.9, .*\n( +\d+ B  \w+ +\w+ +[\d.]+ us .* GB/s  node0 .*\n){4}$`,
		"grid":     `^([0-9a-f]{8}  1 nodes  (SIMPLE|LL128) .* us\n){2}([0-9a-f]{8}  4 nodes  .* us\n){2}$`,
		"job":      `^step [4-5]\.\d\d ms: computation 4\.00 ms, all_reduce alone .* hidden [1-9]\d %\n$`,
		"deadlock": `^list second: call 0 on a is all_gather .* wait for each other forever\n$`,
		"topology": `^8 GPUs, 8 NICs .*\nbefore\.xml .* GB/s.*\nafter\.xml .* GB/s, limited by .*PCI.*\n$`,
	}
	mains, err := filepath.Glob("*/main.go")
	if err != nil || len(mains) != len(says) {
		t.Fatalf("%v of %d programs: %v", mains, len(says), err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "./...").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, want := range says {
		t.Run(name, func(t *testing.T) {
			c := exec.Command(filepath.Join(bin, name))
			c.Dir = ".."
			out, err := c.CombinedOutput()
			if err != nil || !regexp.MustCompile(want).Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
