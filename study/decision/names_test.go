package decision

import (
	"testing"

	"github.com/simccl/simccl/coll"
)

// TestCellNames: two indices within the tables name an algorithm and a protocol; anything else names none,
// as a document may have more of either than this release.
func TestCellNames(t *testing.T) {
	last := []any{len(algorithms) - 1, len(protocols) - 1}
	want := algorithms[last[0].(int)].String() + " " + protocols[last[1].(int)].String()
	if got, ok := cellName(last); !ok || got != want {
		t.Errorf("%v: %q, want %q", last, got, want)
	}
	if got, ok := cellName([]any{0, 0}); !ok || got != algorithms[0].String()+" "+coll.LL.String() {
		t.Errorf("the first: %q", got)
	}
	for _, at := range [][]any{nil, {0}, {0, 0, 0}, {len(algorithms), 0}, {0, len(protocols)}, {"0", 0},
		{0, "0"}} {
		if got, ok := cellName(at); ok || got != "" {
			t.Errorf("%v: %q", at, got)
		}
	}
}
