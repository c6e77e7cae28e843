package channels

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/connect"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
)

// TestHalves: the order of nodes, ranks and channels of 2.21.5, by hand from init.cc:1315
// and include/channel.h:15.
func TestHalves(t *testing.T) {
	for n, want := range map[int]string{1: "[0]", 2: "[0 1]", 3: "[0 1 2]", 4: "[0 2 1 3]", 5: "[0 2 3 1 4]",
		6: "[0 3 1 5 2 4]", 8: "[0 4 1 7 3 5 2 6]"} {
		if order, delta := halves(n); fmt.Sprint(delta) != want || int(order[delta[n-1]]) != n-1 {
			t.Errorf("%d nodes: %v, want %s", n, delta, want)
		}
	}
	old, err := rules.For("2.21.5")
	if err != nil {
		t.Fatal(err)
	}
	// Nodes of three ranks and of one, with four places each.
	c := &connect.Layout{Rules: old, NRanks: 4, NNodes: 2, MaxLocalRanks: 3, P2PChannels: 8,
		NodeRanks: [][]int32{{0, 1, 2}, {3}},
		NodeOf:    []int32{0, 0, 0, 1}, LocalRank: []int32{0, 1, 2, 0}}
	s := NewRounds(c, plan.Params{})
	got := ""
	for round := range s.Len() {
		to, from := s.Peers(1, round)
		got += fmt.Sprint(to, " ", from, "; ")
	}
	if want := "1 1; 2 0; -1 -1; 0 2; -1 -1; -1 3; -1 -1; 3 -1; "; got != want {
		t.Errorf("rank 1 of three and one: %s, want %s", got, want)
	}
	if r := s.Of(1, 3); r != 7 {
		t.Errorf("rank 1 sends to rank 3 in round %d, not 7", r)
	}
	// A node further is channel 1, in reverse 4; the second part of it the next.
	if a, b := s.Channel(1, 3, 7, 0), s.Channel(1, 3, 7, 1); a != 4 || b != 5 {
		t.Errorf("channels %d and %d, not 4 and 5", a, b)
	}
	c.NNodes, c.NodeRanks, c.NodeOf, c.LocalRank = 1, [][]int32{{0, 1, 2, 3}}, make([]int32, 4),
		[]int32{0, 1, 2, 3}
	c.MaxLocalRanks = 4
	s = NewRounds(c, plan.Params{})
	if ch := s.Channel(1, 0, s.Of(1, 0), 0); ch != 6 { // three places further
		t.Errorf("channel %d, not 6", ch)
	}
}
