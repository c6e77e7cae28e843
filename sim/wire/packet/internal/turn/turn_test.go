package turn

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/sim/wire/packet/internal/pair"
)

func TestStrike(t *testing.T) {
	senders := make([]pair.Sender, 5)
	for i := range senders {
		senders[i].Frames, senders[i].Listed = 8, true
	}
	senders[1].Una, senders[3].Una = 8, 8
	l := List{Pairs: []int32{0, 1, 2, 3, 4}, Over: 2}
	at := l.strike(senders, 1, 4)
	if want := []int32{0, 2, 4}; !slices.Equal(l.Pairs, want) || at != 2 || l.Over != 0 || l.Only != nil {
		t.Errorf("%v, found at %d, %d over; want %v, 2, 0", l.Pairs, at, l.Over, want)
	}
	if senders[1].Listed || senders[3].Listed || !senders[2].Listed {
		t.Error("those that left the list, and no others, are not listed any more")
	}
	l = List{Pairs: []int32{2, 1}, Over: 1}
	if at := l.strike(senders, 1, -1); at != -1 || l.Only != &senders[2] {
		t.Errorf("nothing was found, but is at %d, and %v is alone", at, l.Only)
	}
}
