package logcheck_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/study/logcheck"
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
