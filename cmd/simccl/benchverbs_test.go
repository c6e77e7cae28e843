package main

import (
	"strings"
	"testing"
)

// TestVerbsWords: what is no test is the other side.
func TestVerbsWords(t *testing.T) {
	for _, c := range []struct {
		args  string
		serve bool
		host  string
		tests string
		wrong bool
	}{
		{"", false, "", "write read send nccl", false}, {"nccl write", false, "", "nccl write", false},
		{"node1", false, "node1:18515", "write read send nccl", false}, {"read 10.0.0.1:99 nccl", false, "10.0.0.1:99", "read nccl", false},
		{"fe80::1", false, "[fe80::1]:18515", "write read send nccl", false}, {"", true, "", "write read send nccl", false},
		{"node1 node2", false, "", "", true}, {"node1", true, "", "", true},
	} {
		v := verbsFlags{iters: 5, qps: 1, depth: 1, tcp: 18515, serve: c.serve}
		host, tests, err := v.words(strings.Fields(c.args))
		if (err != nil) != c.wrong || host != c.host || strings.Join(tests, " ") != c.tests {
			t.Errorf("%q: host %q, tests %q, %v", c.args, host, tests, err)
		}
	}
}
