package topo_test

import (
	"bufio"
	"compress/gzip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/topo"
	"github.com/simccl/simccl/topo/show"
)

var logLine = regexp.MustCompile(`^(\S+ \[\d+\]) NCCL INFO (.*)$`)

// systemsOf cuts the printed systems out of a log, one of each process or
// thread.
func systemsOf(t *testing.T, file string) [][]string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	open := map[string][]string{}
	var out [][]string
	sc := bufio.NewScanner(z)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		m := logLine.FindStringSubmatch(sc.Text())
		if m == nil {
			continue
		}
		who, text := m[1], m[2]
		got, inside := open[who]
		switch {
		case strings.HasPrefix(text, "=== System"):
			open[who] = []string{text}
		case inside && regexp.MustCompile(`^(\s*\+ |CPU/|GPU/|NET/|=+$)`).MatchString(text):
			open[who] = append(got, text)
		case inside:
			out = append(out, got)
			delete(open, who)
		}
	}
	return out
}

// TestLogsShowTheSameSystem compares with what NCCL 2.28.9 itself printed on
// 4 x H200 (NCCL_DEBUG_SUBSYS=GRAPH): tree and paths, line by line.
func TestLogsShowTheSameSystem(t *testing.T) {
	for _, c := range []struct {
		log, machine string
		nRanks       int
	}{{"info_2", "h200x4-2", 2}, {"info_4", "h200x4-4", 4}, {"host_2x2", "h200x4-h2x2", 4},
		{"host_4x1", "h200x4-h4x1", 4}} {
		logs := systemsOf(t, golden.Root(t, "testdata", "measured", "h200x4", "logs", c.log+".log.gz"))
		if len(logs) == 0 {
			t.Errorf("%s: no system in the log", c.log)
			continue
		}
		p := topo.DefaultParams()
		p.NRanks = c.nRanks
		h, err := topo.Build(ownSpec(t, c.machine), p)
		if err != nil {
			t.Fatal(err)
		}
		got := show.Log(h.Systems[0], 0)
		equal := 0
		for _, want := range logs {
			if slices.Equal(want, got) {
				equal++
			} else if equal == 0 {
				t.Logf("%s: %s", c.log, cmp.Diff(want, got))
			}
		}
		t.Logf("%s: %d of %d printed systems are equal", c.log, equal, len(logs))
		if equal == 0 {
			t.Errorf("%s: no printed system is equal", c.log)
		}
	}
}
