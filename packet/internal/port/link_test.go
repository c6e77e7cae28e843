package port

import (
	"testing"

	"github.com/simccl/simccl/packet/cc"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// TestNoteDuringStorm: pauses are those that frames ask for. One that is asked for in a storm begins then,
// and lasts until the neighbour resumes the port; a resume that follows no pause ends none.
func TestNoteDuringStorm(t *testing.T) {
	l := Link{Storm: true}
	ask := func(pause bool, at int64, culprit uint32) {
		before := l.Asked
		l.Ask(1, pause, at)
		l.Note(before, &frames.Frame{At: at, Flow: -1, Aux: culprit + 1})
	}
	l.Hold()
	if ask(false, 10, 0); l.Paused == 0 || l.HOL != nil {
		t.Errorf("paused %b, pauses %+v", l.Paused, l.HOL)
	}
	ask(true, 20, 7)
	l.Storm = false
	l.Hold()
	if ask(false, 50, 0); l.Paused != 0 || l.HOL == nil || l.HOL.First != 20 || l.HOL.To != 50 ||
		l.HOL.Behind.Worst(-1) != 7 {
		t.Errorf("paused %b, pauses %+v", l.Paused, l.HOL)
	}
}

// TestPauseDuringAStormCountsOnce: time under both a PFC pause and a pause storm is paused once.
func TestPauseDuringAStormCountsOnce(t *testing.T) {
	l := Link{Rate: 100e9}
	storm := func(on bool, at int64) {
		var now spec.Condition
		now.Storm[0], now.Rate = on, 100e9
		l.SetCondition(&spec.Fault{Storm: true}, &now, &cc.Params{}, 0, at)
	}
	l.Ask(3, true, 10) // paused from 10 to 60, by a storm from 20 to 40 as well, and again from 70 to 90
	storm(true, 20)
	storm(false, 40)
	l.Ask(3, false, 60)
	storm(true, 70)
	l.Ask(3, true, 80)
	if got := l.Report(85).Paused; got != 50+15 {
		t.Errorf("paused for %d ps by then", got)
	}
	storm(false, 88)
	l.Ask(3, false, 90)
	if got := l.Report(100).Paused; got != 50+20 {
		t.Errorf("paused for %d ps", got)
	}
}
