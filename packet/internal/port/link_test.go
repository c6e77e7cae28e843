package port

import (
	"testing"

	"github.com/simccl/simccl/packet/internal/frames"
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
