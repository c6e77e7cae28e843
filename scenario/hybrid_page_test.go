//go:build unix

package scenario

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo/builtin"
)

// hybrids are operations that docs/PACKETS.md compares frame by frame and as a hybrid, on
// DGX H100 and one switch. Those that take no time are compared with the page by each test.
var hybrids = []struct {
	op, algo string
	nodes    int
	size     string
	quick    bool
}{
	{"all_reduce", "Ring", 4, "64M", false}, {"all_reduce", "Ring", 8, "64M", false},
	{"all_reduce", "Ring", 8, "1G", false},
	{"all_reduce", "Tree", 4, "64M", true}, {"all_reduce", "Tree", 8, "64M", false},
	{"all_reduce", "NVLSTree", 4, "64M", false}, {"all_reduce", "NVLSTree", 8, "64M", false},
	{"all_gather", "", 4, "64M", false}, {"all_gather", "", 8, "64M", false},
	{"broadcast", "", 4, "64M", true}, {"broadcast", "", 8, "64M", false}, {"broadcast", "", 8, "1G", false},
	{"alltoall", "", 4, "64M", false}, {"alltoall", "", 8, "64M", false}, {"gather", "", 8, "64M", true},
	{"scatter", "", 8, "1G", false}, {"sendrecv", "", 8, "1G", false},
}

// timed runs an operation over a network and returns its time in us and what it took of the
// processor in s.
func timed(t *testing.T, op, algo string, nodes int, size, model string) (us, cpu float64) {
	t.Helper()
	s := small(op, size)
	s.Machine.Nodes = []Nodes{{Topo: "a.xml", Count: nodes}}
	s.Network.Model, s.Engine.NoProof = model, true
	if algo != "" {
		s.NCCL.Env = map[string]string{"NCCL_ALGO": algo}
	}
	used := func() float64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return float64(u.Utime.Nano()) / 1e9
	}
	before := used()
	r, err := Run(context.Background(), s, Options{Files: fstest.MapFS{"a.xml": {Data: builtin.DGXH100()}}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Rows[0].Out.Time.Micros(), used() - before
}

// TestHybridPage: a hybrid is within 1 % of frames alone, and the page says by how much;
// SIMCCL_UPDATE=1 runs all of them and writes the table.
func TestHybridPage(t *testing.T) {
	const page, mark, end = "../docs/PACKETS.md", "<!-- hybrid -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, ok := bytes.Cut(text, []byte(mark))
	table, rest, closed := bytes.Cut(after, []byte(end))
	if !ok || !closed {
		t.Fatalf("%s has no table between %q and %q", page, mark, end)
	}
	var b strings.Builder
	b.WriteString("| operation | nodes | size | `packet`, us | `hybrid`, us | difference | CPU, s | CPU, s " +
		"|\n|---|---:|---|---:|---:|---:|---:|---:|\n")
	for _, h := range hybrids {
		if !h.quick && !golden.Updating() {
			continue
		}
		frames, cpu := timed(t, h.op, h.algo, h.nodes, h.size, "packet")
		hybrid, less := timed(t, h.op, h.algo, h.nodes, h.size, "hybrid")
		row := fmt.Sprintf("| %s | %d | %s | %.1f | %.1f | %+.2f %% |", strings.TrimSpace(h.op+" "+h.algo),
			h.nodes, h.size, frames, hybrid, 100*(hybrid/frames-1))
		fmt.Fprintf(&b, "%s %.2f | %.2f |\n", row, cpu, less)
		if d := hybrid/frames - 1; d > 0.01 || d < -0.01 {
			t.Errorf("%s: more than 1 %%", row)
		}
		if !golden.Updating() && !bytes.Contains(table, []byte(row)) {
			t.Errorf("%s does not say %s: make packets writes it", page, row)
		}
	}
	if golden.Updating() {
		if err := os.WriteFile(page, []byte(string(before)+mark+b.String()+end+string(rest)), 0o644); err !=
			nil {
			t.Fatal(err)
		}
	}
}
