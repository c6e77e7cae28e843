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
		middle int64
		want   float64
	}{{0, 0.08}, {9, 0.08}, {30, 9. / 81}, {90, 27. / 63}} {
		margin, tooMuch := DriftMargin(units.Time(x.middle), 90)
		if math.Abs(margin-x.want) > 1e-9 || tooMuch != (x.want > 0.15) {
			t.Errorf("%+v: margin %.4f, simulated whole: %t", x, margin, tooMuch)
		}
	}
}
