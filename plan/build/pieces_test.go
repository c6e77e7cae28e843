package build

import (
	"fmt"
	"testing"

	"github.com/simccl/simccl/coll"
	"github.com/simccl/simccl/dev/draw"
	"github.com/simccl/simccl/plan"
	"github.com/simccl/simccl/rules"
)

// TestPieceWarps: warps by places, by hand from enqueue.cc:117 of 2.21.5.
func TestPieceWarps(t *testing.T) {
	for n, want := range map[int][2]int{1: {17, 16}, 2: {9, 8}, 3: {5, 4}, 4: {5, 4}, 6: {3, 2}, 8: {3, 2},
		9: {1, 1}, 16: {1, 1}} {
		if send, recv := pieceWarps(n); [2]int{send, recv} != want {
			t.Errorf("%d places: %d and %d warps, want %v", n, send, recv, want)
		}
	}
}

// TestPlacesOfPieces: in 2.21.5 sends and receives of a batch have places of their own, an
// in-place copy too; every eighth round begins a batch.
func TestPlacesOfPieces(t *testing.T) {
	old, err := rules.For("2.21.5")
	if err != nil {
		t.Fatal(err)
	}
	c := draw.Plain(10, 1, 1)
	c.Rules, c.MaxLocalRanks = old, 10
	for _, x := range []struct {
		inPlace bool
		want    string
	}{
		// Rank 3 sends to itself and to seven others, then to the last two: 16 places
		// and 4, of ten ranks on one channel (16 places: the copy is the send's).
		{false, "phase 0: 15 programs, 32 threads; phase 1: 4 programs, 128 to 160 threads; "},
		{true, "phase 0: 14 programs, 32 threads; phase 1: 4 programs, 128 to 160 threads; "},
	} {
		p, err := Plan(c, plan.Request{Func: coll.AllToAll, Count: 100, Type: coll.Int8, InPlace: x.inPlace})
		if err != nil {
			t.Fatal(err)
		}
		if got := phases(p.Programs(3)); got != x.want {
			t.Errorf("in place %v: %s, want %s", x.inPlace, got, x.want)
		}
	}
}

func phases(list []plan.Program) string {
	out := ""
	for len(list) > 0 {
		n, least, most := 0, list[0].Threads, list[0].Threads
		for n < len(list) && list[n].Phase == list[0].Phase {
			least, most = min(least, list[n].Threads), max(most, list[n].Threads)
			n++
		}
		threads := fmt.Sprint(least)
		if most > least {
			threads = fmt.Sprintf("%d to %d", least, most)
		}
		out += fmt.Sprintf("phase %d: %d programs, %s threads; ", list[0].Phase, n, threads)
		list = list[n:]
	}
	return out
}
