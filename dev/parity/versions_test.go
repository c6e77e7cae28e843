package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestVersions compares the whole decision for every reference of another release
// than 2.28.9 with that release's and reports the equal sections.
func TestVersions(t *testing.T) {
	refs := golden.Versions(t)
	var names []string
	type key struct{ version, section string }
	equal, total := map[key]int{}, map[key]int{}
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		if !slices.Contains(names, r.Version) {
			names = append(names, r.Version)
		}
		for section, diff := range Compare(t, r) {
			k := key{r.Version, section}
			total[k]++
			if diff == "" {
				equal[k]++
				continue
			}
			t.Errorf("%s, %s: %s", r.Version, r.Name, diff)
		}
		r.Doc = nil
	}
	for _, v := range names {
		var line []string
		for _, s := range Sections {
			if n := total[key{v, s}]; n > 0 {
				line = append(line, fmt.Sprintf("%s %d/%d", s, equal[key{v, s}], n))
			}
		}
		t.Logf("equal to NCCL %s: %s", v, strings.Join(line, ", "))
	}
}
