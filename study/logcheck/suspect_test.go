package logcheck_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/study/logcheck"
	"github.com/simccl/simccl/study/ncclog"
)

// TestSuspect: of a log that its release does not explain, check says which release prints
// lines that differ as they are, and the first rule of it that does so alone.
func TestSuspect(t *testing.T) {
	for _, x := range []struct{ wrote, says, machine, want string }{
		{"2.27.7", "2.28.9", "hgx-a100-4", `NCCL 2.27.7 prints 3 of 3 differing lines as the log has them; the ` +
			`first rule that does so alone is "least channels of NVLS graphs" (Tuning.NVLSLeast, ` +
			`docs/VERSIONS.md), for 2 of them`},
		{"2.23.4", "2.24.3", "gh200", "NCCL 2.23.4 prints 2 of 7 differing lines as the log has them; no " +
			"rule does so alone"},
	} {
		on, err := site.OpenFor(x.wrote, site.Nodes(golden.Root(t, "testdata", "topos", x.machine+".xml"), 2))
		if err != nil {
			t.Fatal(err)
		}
		text := bytes.ReplaceAll(logOf(on.Comm), []byte("NCCL version "+x.wrote),
			[]byte("NCCL version "+x.says))
		rep, err := logcheck.Check(logcheck.Input{Log: parse(t, text)})
		if err != nil {
			t.Fatal(err)
		}
		if notes := strings.Join(rep.Notes, "\n"); rep.Equal || !strings.Contains(notes, x.want) {
			t.Errorf("a log of %s as one of %s: %s\nwant %s", x.wrote, x.says, notes, x.want)
		}
	}
}

// TestSuspectOfManyRanks: of a large communicator all releases are tried and, of the rules,
// as many as its size allows, which the note says.
func TestSuspectOfManyRanks(t *testing.T) {
	on, err := site.OpenFor("2.27.7", site.Nodes(golden.Root(t, "testdata", "topos", "hgx-a100-4.xml"), 64))
	if err != nil {
		t.Fatal(err)
	}
	prefix := []byte(ncclog.RankPrefix(on.Comm, 0))
	var text []byte
	for line := range bytes.Lines(logOf(on.Comm)) {
		if bytes.HasPrefix(line, prefix) {
			text = append(text, line...)
		}
	}
	text = bytes.ReplaceAll(text, []byte("NCCL version 2.27.7"), []byte("NCCL version 2.29.7"))
	rep, err := logcheck.Check(logcheck.Input{Log: parse(t, text)})
	if err != nil {
		t.Fatal(err)
	}
	wants := []string{"; 16 of its ", " rules that differ were tried and none does so alone"}
	for _, want := range wants {
		if notes := strings.Join(rep.Notes, "\n"); rep.Equal || !strings.Contains(notes, want) {
			t.Errorf("%s\nwant %s", notes, want)
		}
	}
}
