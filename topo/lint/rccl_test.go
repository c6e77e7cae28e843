package lint_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/simccl/simccl/dev/golden"
)

// TestFilesOfAMD: files of AMD's GPUs are checked as others, in RCCL's terms: our machines have no fault, and
// each fault that is put into one is found.
func TestFilesOfAMD(t *testing.T) {
	files, err := filepath.Glob(golden.Root(t, "testdata", "topos", "rccl", "*.xml"))
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if found := check(t, data, f); len(found) > 0 {
			t.Errorf("%s:\n%s", f, text(found))
		}
	}
	data, err := os.ReadFile(golden.Root(t, "testdata", "topos", "rccl", "mi300x-8-thor2-genoa.xml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, fault, want string }{
		{`<xgmi target="0000:25:00.0" count="1" tclass="0x120000"/>`, "", "XGMI links to"},
		{`<xgmi target="0000:25:00.0" count="1"`, `<xgmi target="0000:25:00.0" count="2"`, "[xgmi-asymmetric]"},
		{`<xgmi target="0000:25:00.0"`, `<xgmi target="0000:26:00.0"`, "where no GPU is declared: RCCL ignores them"},
		{`link_speed="32.0 GT/s PCIe"`, `link_speed="2.5 GT/s PCIe"`, "[uplink]"},
		{`numaid="1"`, `numaid="0"`, "numaid 0 is"},
		{`speed="400000"`, `speed="0"`, "RCCL takes 10 Gb/s"},
	} {
		if !strings.Contains(string(data), c.old) {
			t.Fatalf("no %s", c.old)
		}
		found := text(check(t, []byte(strings.Replace(string(data), c.old, c.fault, 1)), "amd.xml"))
		if !strings.Contains(found, c.want) || strings.Contains(found, "NCCL ") &&
			!strings.Contains(found, "RCCL ") || strings.Contains(found, "NVLink") {
			t.Errorf("%s in place of %s:\n%swant %s", c.fault, c.old, found, c.want)
		}
	}
}
