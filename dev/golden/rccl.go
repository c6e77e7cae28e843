package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// RCCL returns the references of a release of RCCL: those of ../shared where that is present, which include
// the project's own, else the project's (testdata/topos/rccl).
func RCCL(t testing.TB, version string) []Reference {
	t.Helper()
	own := Root(t, "testdata", "topos", "rccl")
	dir, topos := filepath.Join(own, "golden-"+version), []string{own}
	shared := filepath.Join(Root(t), "..", "shared", "rccl")
	if _, err := os.Stat(shared); err == nil {
		dir, topos = filepath.Join(shared, "golden"), []string{filepath.Join(shared, "topos"),
			filepath.Join(shared, "topos", "own")}
		if version != "2.30.4" {
			dir += "-" + version
		}
	}
	refs := load(t, dir, topos)
	for i := range refs {
		refs[i].Version = "rccl-" + version
	}
	return refs
}
