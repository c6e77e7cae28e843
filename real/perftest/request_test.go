package perftest

import (
	"strings"
	"testing"
)

// TestWords: what is no test is the other side.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		args  string
		serve bool
		host  string
		tests string
		wrong bool
	}{
		{"", false, "", "write read send nccl", false}, {"nccl write", false, "", "nccl write", false},
		{"node1", false, "node1:18515", "write read send nccl", false}, {"read 10.0.0.1:99 nccl", false,
			"10.0.0.1:99", "read nccl", false},
		{"fe80::1", false, "[fe80::1]:18515", "write read send nccl", false},
		{"", true, "", "write read send nccl", false},
		{"node1 node2", false, "", "", true}, {"node1", true, "", "", true},
	} {
		r := Request{Words: strings.Fields(c.args), Size: "8", Iters: 5, QPs: 1, Depth: 1, TCP: 18515,
			Serve: c.serve}
		p, err := r.Plan()
		if err != nil {
			p = &Plan{}
		}
		if (err != nil) != c.wrong || p.Host != c.host || strings.Join(p.Tests, " ") != c.tests {
			t.Errorf("%q: host %q, tests %q, %v", c.args, p.Host, p.Tests, err)
		}
	}
}
