package parity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// namedOther are references made as if only nets called mlx, ib, bnxt or ionic were
// those of NCCL's IB plugin (../shared/golden/README.md, line 28); that plugin takes
// any name, and numbers even a single port as a virtual NIC from 2.24.3 to 2.26.
var namedOther = map[string]bool{"2.25.1 t1000-x1-cx5-roce": true, "2.26.2 t1000-x1-cx5-roce": true}

// TestVersions compares the whole decision for every reference of another release
// than 2.28.9 with that release's and reports the equal sections.
func TestVersions(t *testing.T) {
	refs := golden.Versions(t)
	var names []string
	type key struct{ version, section string }
	equal, total := map[key]int{}, map[key]int{}
	for i := range refs {
		r := &refs[i]
		if namedOther[r.Version+" "+r.Machine] {
			continue
		}
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
