package topo_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	topoxml "github.com/simccl/simccl/topo/xml"
)

// TestDumps compares the fused tree with NCCL's NCCL_TOPO_DUMP_FILE, line by
// line, host hashes apart: those are of the machine that wrote the file.
func TestDumps(t *testing.T) {
	refs := references(t)
	same := 0
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		var want string
		r.Section(t, "topoXml", &want)
		got := string(topoxml.Write(hostOf(t, r).Dump))
		if d := cmp.Diff(lines(want), lines(got)); d != "" {
			t.Errorf("%s: %s", r.Name, d)
			continue
		}
		same++
		r.Doc = nil
	}
	t.Logf("topoXml %d/%d", same, len(refs))
}

func lines(text string) []string {
	out := strings.Split(text, "\n")
	for i, l := range out {
		if at := strings.Index(l, ` host_hash="`); at >= 0 {
			end := at + len(` host_hash="`)
			end += strings.IndexByte(l[end:], '"') + 1
			out[i] = l[:at] + l[end:]
		}
	}
	return out
}
