package reductions

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table anew")

const golden = "testdata/table.txt"

// TestPolicyDecidesAsTheTableSays: what is left out of each request, and the margin, is a decision
// that a change of the simulator shows.
func TestPolicyDecidesAsTheTableSays(t *testing.T) {
	var got strings.Builder
	var s Sites
	for _, r := range Table() {
		fmt.Fprintf(&got, "%s\n    %s\n", r, s.Row(context.Background(), r))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have, was := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
	for i := range min(len(have), len(was)) {
		if have[i] != was[i] {
			t.Errorf("%s\ndecided: %s\ntable:   %s\nmake reductions writes the table anew",
				have[max(0, i-1)], have[i], was[i])
		}
	}
	if len(have) != len(was) {
		t.Errorf("%d lines, the table has %d", len(have), len(was))
	}
}
