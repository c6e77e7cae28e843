package builtin

import (
	"bytes"
	"os"
	"testing"

	"github.com/simccl/simccl/internal/golden"
)

// TestBuiltinIsTheFixture: the machine that is built in is the one whose
// decisions are compared with NCCL's.
func TestBuiltinIsTheFixture(t *testing.T) {
	want, err := os.ReadFile(golden.Root(t, "testdata", "topos", DGXH100Name))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(DGXH100(), want) {
		t.Errorf("topo/builtin/%s differs from testdata/topos/%[1]s; copy it", DGXH100Name)
	}
}
