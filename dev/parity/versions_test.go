package parity

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// namedOther are the nets of references that were made as if only nets called mlx, ib, bnxt
// or ionic were those of NCCL's IB plugin (../shared/golden/README.md, line 28). That plugin
// takes any name, and numbers even a single port as a virtual NIC from 2.24.3 to 2.26, so they
// are compared under the name of a network interface, which is of another plugin.
var namedOther = map[string]string{"t1000-x1-cx5-roce": "roce0"}

// asInterface is a topology file with a net renamed to eth0.
func asInterface(t *testing.T, file, net string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	data = bytes.ReplaceAll(data, []byte(`name="`+net+`"`), []byte(`name="eth0"`))
	if err := os.WriteFile(out, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestVersions compares the whole decision for every reference of another release
// than 2.28.9 with that release's and reports the equal sections.
func TestVersions(t *testing.T) {
	refs := golden.Few(golden.Versions(t), 5)
	var names []string
	type key struct{ version, section string }
	equal, total := map[key]int{}, map[key]int{}
	for i := range refs {
		r := &refs[i]
		r.Load(t)
		if net := namedOther[r.Machine]; net != "" {
			r.Topo = asInterface(t, r.Topo, net)
		}
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
