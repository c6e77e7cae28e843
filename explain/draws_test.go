package explain_test

import (
	"strings"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/comm"
	"github.com/simccl/simccl/explain"
	"github.com/simccl/simccl/units"
)

// Which side is faster over hashed routes is said by pairs of draws, each with each and as
// often as each represents draws: of medians that differ by chance the ratio is not printed.
func TestDrawsDecideWhichSideIsFaster(t *testing.T) {
	times := func(us ...float64) explain.Timing {
		x := explain.Timing{Choice: "Ring Simple", Channels: 16, Us: us[len(us)/2]}
		for _, t := range us {
			x.Draws = append(x.Draws, explain.DrawTime{Us: t, For: 1})
		}
		return x
	}
	one := explain.Timing{Choice: "Ring Simple", Channels: 16, Us: 200}
	weighted := times(100, 300)
	weighted.Us, weighted.Draws[0].For, weighted.Draws[1].For = 100, 3, 1
	for name, tt := range map[string]struct {
		a, b           explain.Timing
		faster, slower float64
		want, ratio    string
	}{
		"slower in all": {times(100, 110, 120), times(200, 210, 220), 0, 1, "B is slower in most",
			"1.909"},
		"faster in all": {times(200, 210, 220), times(100, 110, 120), 1, 0, "B is faster in most",
			"0.524"},
		"a faster median, by luck": {times(100, 200, 205), times(150, 190, 900), 4. / 9, 5. / 9,
			"B is slower in most", "0.950"},
		"neither in most": {times(100, 200, 300), times(100, 201, 300), 3. / 9, 3. / 9,
			"neither is faster in most", "?"},
		"one that has no draws": {one, times(100, 110, 300), 2. / 3, 1. / 3, "B is faster in most",
			"0.550"},
		"draws that stand for more": {one, weighted, 3. / 4, 1. / 4, "B is faster in most", "0.500"},
	} {
		d := &explain.Difference{}
		c := &comm.Comm{}
		d.AddTime(explain.Side{Comm: c}, explain.Side{Comm: c}, comm.Op{Func: coll.AllToAll},
			comm.Op{Func: coll.AllToAll}, units.Bytes(8), tt.a, tt.b)
		x := &d.Times[0]
		if x.Faster == nil || abs(*x.Faster-tt.faster) > 1e-9 || abs(*x.Slower-tt.slower) > 1e-9 {
			t.Errorf("%s: faster %v, slower %v", name, *x.Faster, *x.Slower)
		}
		text := d.Text()
		if !strings.Contains(text, tt.want) || !strings.Contains(text, "  "+tt.ratio+"  ") {
			t.Errorf("%s:\n%s\nwant %q and %s", name, text, tt.want, tt.ratio)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }
