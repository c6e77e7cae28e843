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
	left, at := Strike([]int32{0, 1, 2, 3, 4}, senders, 1, 4)
	if want := []int32{0, 2, 4}; !slices.Equal(left, want) || at != 2 {
		t.Errorf("%v, found at %d; want %v, 2", left, at, want)
	}
	if senders[1].Listed || senders[3].Listed || !senders[2].Listed {
		t.Error("those that left the list, and no others, are not listed any more")
	}
	if _, at := Strike([]int32{1}, senders, 0, -1); at != -1 {
		t.Errorf("nothing was found, but is at %d", at)
	}
}
