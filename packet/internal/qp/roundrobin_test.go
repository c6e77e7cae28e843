package qp

import (
	"slices"
	"testing"

	"github.com/simccl/simccl/packet/cc"
)

// TestEndedSends: a queue pair whose flow has ended sends on as long as it has frames and no window, and
// leaves the list when a pause keeps it from that.
func TestEndedSends(t *testing.T) {
	rules := &Rules{CC: &cc.Params{}, Payload: 1000}
	list := func() ([]Sender, *RoundRobin) {
		senders := []Sender{{Frames: 8, Una: 8, Nxt: 5, Class: 1}, {Frames: 8, Una: 2, Nxt: 4, Class: 2,
			NextAvail: 90}}
		return senders, &RoundRobin{Pairs: []int32{0, 1}, Last: 1, Over: 1}
	}
	senders, l := list()
	if at, _ := l.Choose(senders, rules, 0, 10); at != 0 || len(l.Pairs) != 2 {
		t.Errorf("%d is chosen of %v", at, l.Pairs)
	}
	for _, avail := range []int64{0, 50} {
		senders, l = list()
		senders[0].NextAvail = avail
		if at, soon := l.Choose(senders, rules, 1<<1, 10); at != -1 || soon != 90 || len(l.Pairs) != 1 ||
			l.Over != 0 {
			t.Errorf("while its class is paused: %d is chosen of %v, the next at %d", at, l.Pairs, soon)
		}
	}
	senders = []Sender{{Frames: 8, Una: 8, Nxt: 8}, {Frames: 8, Una: 8, Nxt: 5}, {Frames: 8, Una: 2, Nxt: 4}}
	l = &RoundRobin{Pairs: []int32{0, 1, 2}, Last: 2, Over: 2}
	if at, _ := l.Choose(senders, rules, 0, 10); at != 0 || l.Pairs[0] != 2 || len(l.Pairs) != 1 {
		t.Errorf("with one before it that leaves: %d is chosen of %v", at, l.Pairs)
	}
}

func TestStrike(t *testing.T) {
	senders := make([]Sender, 5)
	for i := range senders {
		senders[i].Frames, senders[i].Listed = 8, true
	}
	senders[1].Una, senders[3].Una = 8, 8
	l := RoundRobin{Pairs: []int32{0, 1, 2, 3, 4}, Over: 2}
	at := l.strike(senders, 1, 4)
	if want := []int32{0, 2, 4}; !slices.Equal(l.Pairs, want) || at != 2 || l.Over != 0 || l.Only != nil {
		t.Errorf("%v, found at %d, %d over; want %v, 2, 0", l.Pairs, at, l.Over, want)
	}
	if senders[1].Listed || senders[3].Listed || !senders[2].Listed {
		t.Error("those that left the list, and no others, are not listed any more")
	}
	l = RoundRobin{Pairs: []int32{2, 1}, Over: 1}
	if at := l.strike(senders, 1, -1); at != -1 || l.Only != &senders[2] {
		t.Errorf("nothing was found, but is at %d, and %v is alone", at, l.Only)
	}
}
