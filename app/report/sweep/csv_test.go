package sweep

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/simccl/simccl/scenario"
	"github.com/simccl/simccl/units"
)

// TestBandwidthsAreInColumnsOfTheirUnit: each column of _gbps, which holds GB/s, has one
// beside it that is named so.
func TestBandwidthsAreInColumnsOfTheirUnit(t *testing.T) {
	r := scenario.Row{Func: "all_reduce", Bytes: 1 << 20, Count: 1 << 18, Type: "float", RedOp: "sum"}
	r.Out.Time, r.Out.AlgBW, r.Out.BusBW = units.FromMicros(50), 20.97, 30.87
	r.In.Time, r.In.AlgBW, r.In.BusBW = units.FromMicros(49), 21.4, 31.5
	r.Facts.Expect = 40
	var b bytes.Buffer
	if err := CSV(&b, []scenario.Row{r}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 {
		t.Fatal(err)
	}
	named := 0
	for i, name := range rows[0] {
		if unit, ok := strings.CutSuffix(name, "_gbps"); ok {
			named++
			if at := slices.Index(rows[0], unit+"_GBps"); at < 0 || rows[1][at] != rows[1][i] {
				t.Errorf("%s holds GB/s and has no %s_GBps with the same number", name, unit)
			}
		}
	}
	if named != 5 {
		t.Errorf("%d columns of bandwidth", named)
	}
}
