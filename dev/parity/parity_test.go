package parity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestDecisions compares the whole decision for every available reference with
// NCCL 2.28.9's and reports the equal sections.
func TestDecisions(t *testing.T) {
	refs := golden.All(t)
	if testing.Short() {
		refs = golden.Few(golden.Own(t), 3)
	}
	equal, total := map[string]int{}, map[string]int{}
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		for key, diff := range Compare(t, r) {
			total[key]++
			if diff == "" {
				equal[key]++
				continue
			}
			t.Errorf("%s: %s", r.Name, diff)
		}
		r.Doc = nil
	}
	var line []string
	for _, key := range Sections {
		if total[key] > 0 {
			line = append(line, fmt.Sprintf("%s %d/%d", key, equal[key], total[key]))
		}
	}
	t.Logf("equal to NCCL 2.28.9: %s", strings.Join(line, ", "))
}
