package fold

import (
	"math"
	"testing"

	"github.com/simccl/simccl/units"
)

// The margin of a chain whose channels drift apart follows from the part that its middle takes of the whole:
// it may take 30 % less. Example: of a third of 90 us, 9 us less of 81 us in all, that is 11 %.
func TestDriftingChainsAreOffByTheirMiddlesPart(t *testing.T) {
	for _, x := range []struct {
		drifts bool
		middle int64
		want   float64
	}{{false, 90, 0.08}, {true, 9, 0.08}, {true, 30, 9. / 81}, {true, 90, 27. / 63}} {
		q := Quotient{symmetry: &symmetry{skipped: &omittedChain{drifts: x.drifts}}}
		q.margin = q.skipped.margin(units.Time(x.middle), 90)
		if math.Abs(q.margin-x.want) > 1e-9 || q.Drifts() != (x.want > 0.15) {
			t.Errorf("%+v: margin %.4f, simulated whole: %t", x, q.margin, q.Drifts())
		}
	}
}
