package qp

import (
	"math/rand/v2"
	"testing"

	"github.com/simccl/simccl/packet/cc"
)

// TestTable: a list with a table chooses as one without does, whatever is sent, arrives or joins.
func TestTable(t *testing.T) {
	tabled := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(7, seed))
		rules := &Rules{CC: &cc.Params{VarWindow: seed%2 == 0}, Payload: 1000}
		n := 2 + r.IntN(20)
		var lists [2]RoundRobin
		var senders [2][]Sender
		for k := range senders {
			senders[k] = make([]Sender, n)
		}
		table, now := NewReadyTable(make([]int32, n)), int64(0)
		for joined := int32(0); now < 4000; now += r.Int64N(20) {
			if int(joined) < n && r.IntN(4) == 0 {
				s := Sender{Frames: 1 + r.Uint32N(30), NextAvail: now, Window: 3000,
					Rate: cc.Rate{Rate: 1, Line: 1}}
				for k := range senders {
					senders[k][joined] = s
					lists[k].Add(joined, senders[k])
				}
				joined++
			}
			paused := uint16(r.IntN(8) / 7)
			i, soon := -1, int64(0)
			if lists[0].Tabled {
				tabled++
				i, soon = table.Choose(&lists[0], senders[0], rules, paused, now)
			} else if i, soon = lists[0].Choose(senders[0], rules, paused, now); i < 0 {
				table.Fill(&lists[0], senders[0], rules)
			}
			k, want := lists[1].Choose(senders[1], rules, paused, now)
			if i != k || soon != want || lists[0].Over != lists[1].Over ||
				len(lists[0].Pairs) != len(lists[1].Pairs) {
				t.Fatalf("seed %d at %d: chose %d, the next is at %d; want %d and %d", seed, now, i, soon, k,
					want)
			}
			gap, acked, id := r.Int64N(200), r.Uint32N(3), int32(r.IntN(n))
			for k := range senders {
				l, all := &lists[k], senders[k]
				if i >= 0 {
					s := &all[l.Pairs[i]]
					l.Last, s.Nxt, s.NextAvail = int32(i), s.Nxt+1, now+gap
					table.Note(&lists[0], l.Pairs[i], &senders[0][l.Pairs[i]])
				}
				if s := &all[id]; s.Una < s.Nxt {
					s.Una = min(s.Nxt, s.Una+acked)
					if s.NextAvail -= gap / 4; s.Una == s.Frames && !s.Ended {
						s.Ended = true
						l.Over++
					}
					table.Note(&lists[0], id, &senders[0][id])
				}
			}
		}
	}
	if tabled < 1000 {
		t.Errorf("only %d of the choices were by a table", tabled)
	}
}
