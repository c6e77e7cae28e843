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
// that a change of the simulator shows. With -short every fourth request is decided.
func TestPolicyDecidesAsTheTableSays(t *testing.T) {
	requests := Table()
	want, err := os.ReadFile(golden)
	if err != nil && !*update {
		t.Fatal(err)
	}
	was := strings.Split(string(want), "\n")
	if n := 2*len(requests) + 1; len(was) != n && !*update {
		t.Fatalf("%d lines, want %d: make reductions writes the table anew", len(was), n)
	}
	var got strings.Builder
	var s Sites
	for i, r := range requests {
		if testing.Short() && i%4 > 0 && !*update {
			continue
		}
		have := fmt.Sprintf("%s\n    %s\n", r, s.Row(context.Background(), r))
		got.WriteString(have)
		if *update {
			continue
		}
		if table := strings.Join(was[2*i:2*i+2], "\n") + "\n"; have != table {
			t.Errorf("decided: %stable:   %smake reductions writes the table anew", have, table)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
