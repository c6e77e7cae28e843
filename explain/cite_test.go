package explain_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/golden"
	"github.com/simccl/simccl/dev/site"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/rules"
	"github.com/simccl/simccl/tuning"
)

// TestReasonsCiteTheRelease: every reason of every release names a file and a line of that
// release; only that a release has no PAT is nowhere in its source.
func TestReasonsCiteTheRelease(t *testing.T) {
	cited := regexp.MustCompile(`^[a-z/]+\.(cc|cu):[1-9][0-9]* of ([0-9.]+)$`)
	reasons := map[string]bool{}
	check := func(version, rule, source string) {
		reasons[rule] = true
		m := cited.FindStringSubmatch(source)
		if none := strings.HasSuffix(rule, version+" has no PAT"); none != (source == "") ||
			source != "" && (m == nil || m[2] != version) {
			t.Errorf("%s: %s (%s)", version, rule, source)
		}
	}
	for _, c := range []struct {
		file  string
		nodes int
		env   []string
	}{
		{"dgx-h100.xml", 2, nil},
		{"dgx-h100.xml", 3, []string{"SIMCCL_COLLNET=1", "NCCL_COLLNET_ENABLE=1"}},
		{"dgx-h100.xml", 1, []string{"NCCL_PAT_ENABLE=0", "NCCL_PROTO=^LL", "NCCL_NVLS_ENABLE=0"}},
		{"dgx-2.xml", 2, []string{"SIMCCL_COLLNET=1", "NCCL_COLLNET_ENABLE=1", "NCCL_ALGO=^Tree"}},
		{"dgx-1v.xml", 2, []string{"NCCL_P2P_LEVEL=PIX"}},
		{"gb200-nvl72-tray.xml", 2, []string{"NCCL_LL128_C2C=0"}},
		{"pcie-l40s-8.xml", 2, []string{"NCCL_PXN_DISABLE=1"}},
		{"pcie-rtx4090-8.xml", 1, []string{"NCCL_SHM_DISABLE=1"}},
	} {
		for _, release := range rules.Known() {
			version := release.String()
			s, err := site.OpenFor(version, site.Nodes(golden.Root(t, "testdata", "topos", c.file), c.nodes),
				c.env...)
			if err != nil {
				t.Fatalf("%s of %s: %v", c.file, version, err)
			}
			for _, f := range coll.CollFuncs() {
				r, err := ask(t, s.Comm, s.Config, f, 1<<20)
				if none := (*tuning.NoChoiceError)(nil); err != nil && !errors.As(err, &none) {
					t.Fatalf("%s of %s: %v", c.file, version, err)
				}
				checkReport(r, func(rule, source string) { check(version, rule, source) })
			}
		}
	}
	if len(reasons) < 60 {
		t.Errorf("only %d different reasons", len(reasons))
	}
}

// checkReport passes on every rule of a report with what it cites.
func checkReport(r *explain.Report, check func(rule, source string)) {
	for _, cell := range r.Rivals {
		for _, o := range cell.Off {
			check(o.Rule, o.Source)
		}
	}
	for _, p := range r.Refused {
		check(p.Rule, p.Source)
	}
}
