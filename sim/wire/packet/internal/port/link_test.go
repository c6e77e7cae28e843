package port

import (
	"testing"

	"github.com/simccl/simccl/sim/wire/packet/internal/frames"
)

// TestNoteAfterStorm: a frame may end a pause that a storm began, and that no frame asked for.
func TestNoteAfterStorm(t *testing.T) {
	l := Link{Storm: true}
	l.Hold()
	before := l.Paused
	l.Storm = false
	l.Ask(1, false, 10)
	l.Note(before, &frames.Frame{At: 10, Flow: -1})
	if before == 0 || l.Paused != 0 || l.HOL != nil {
		t.Errorf("paused %b, then %b; pauses %+v", before, l.Paused, l.HOL)
	}
}
