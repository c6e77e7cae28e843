package nccl

import (
	"fmt"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
)

// TestLanesNameThePeer: steps of a channel that overlap have lanes of their own, each of
// one peer; beyond sixteen peers they share some; in a viewer those of a peer follow each
// other.
func TestLanesNameThePeer(t *testing.T) {
	var m trace.Memory
	rec := New(&m, Options{Detail: DetailStep})
	step := func(peer int, dir Dir, transport string) {
		rec.Steps(&Step{Rank: 0, Channel: 3, Peer: peer, Dir: dir, Transport: transport, Chunk: -1}, 0,
			Phase{Wait: SendWait, Start: us, End: 2 * us})
	}
	step(9, Send, "NET/IB")
	step(1, Send, "P2P/CUMEM")
	step(9, Send, "NET/IB")
	step(9, Recv, "NET/IB")
	step(NoPeer, Send, "COLLNET/SHARP")
	step(4, Recv, "NVLS")
	for peer := 20; peer < 40; peer++ {
		step(peer, Recv, "P2P/CUMEM")
	}
	names := map[int64]string{}
	var list []string
	for i := range m.Tracks {
		tr := &m.Tracks[i]
		if other, ok := names[tr.Thread]; ok {
			t.Errorf("%s and %s are thread %d", other, tr.ThreadName, tr.Thread)
		}
		names[tr.Thread] = tr.ThreadName
		if i < 6 {
			list = append(list, tr.ThreadName)
		}
	}
	want := "ch 03 → rank 9 · step 0, ch 03 → rank 1 · step 0, ch 03 → rank 9 · step 1, ch 03 ← rank 9 · " +
		"step 0, ch 03 → the network · step 0, ch 03 ← NVLS 4 · step 0"
	if got := strings.Join(list, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if a, b, c := m.Tracks[0].ThreadSort, m.Tracks[2].ThreadSort, m.Tracks[1].ThreadSort; a >= b || b >= c {
		t.Errorf("lanes of rank 9 at %d and %d, that of rank 1 at %d", a, b, c)
	}
	if last := m.Tracks[len(m.Tracks)-1].ThreadName; last != fmt.Sprintf("ch 03 ← other ranks · step %d",
		20+2-namedPeers-1) {
		t.Error(last)
	}
}
