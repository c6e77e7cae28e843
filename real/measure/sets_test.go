package measure

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/config"
)

// TestSets: every set has a name of its own, operations and sizes, and
// the settings they name are ones that NCCL reads.
func TestSets(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range slices.Concat(Sets(), unseen(), fresh()) {
		if seen[s.Name] || len(s.Ops) == 0 || s.Max < 8 || s.Factor < 2 {
			t.Errorf("set %+v", s)
		}
		seen[s.Name] = true
		if _, _, err := config.Load(config.Sources{Flags: s.Env, NoEnv: true}); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		for _, f := range s.Ops {
			for _, x := range s.sizes(f, 3) {
				size := int64(x.op.Type.Size())
				if s.Skew == (x.op.Sizes.SendCount*size%16 == 0 && x.op.Sizes.RecvCount*size%16 == 0) &&
					f == coll.AllGather {
					t.Errorf("%s: %v of %d bytes", s.Name, f, x.shown)
				}
			}
		}
	}
}

// TestTry: settings as advise prints them are a set of their own; what is none is refused.
func TestTry(t *testing.T) {
	sets, err := Pick([]string{"NCCL_ALGO=Tree,NCCL_PROTO=LL", "default"})
	if err != nil || len(sets) != 2 || len(sets[0].Env) != 2 || sets[0].Env[1] != "NCCL_PROTO=LL" ||
		sets[1].Name != "default" {
		t.Errorf("%+v, %v", sets, err)
	}
	if n := len(sets[0].sizes(sets[0].Ops[0], 2)); n != 10 {
		t.Errorf("%d sizes", n)
	}
	for _, bad := range []string{"=", "NCCL_ALGO=", "ALGO=Ring", "NCCL_ALGO=Ring,", "NCCL_ALGO=../x"} {
		if _, err := Pick([]string{bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
