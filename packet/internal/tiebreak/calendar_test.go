package tiebreak

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// step is what begins in a chain, each of which plans the next.
type step struct {
	at    int64
	chain int32
}

// queued is the order in which a queue of events lets chains go on: of one instant what was
// planned first is first.
func queued(delays [][]int64) (all []step) {
	next := make([]step, len(delays)) // in the order in which they were planned
	for i := range next {
		next[i].chain = int32(i)
	}
	done := make([]int, len(delays))
	for len(next) > 0 {
		k := 0
		for i := range next {
			if next[i].at < next[k].at {
				k = i
			}
		}
		x := next[k]
		next = slices.Delete(next, k, k+1)
		all = append(all, x)
		if d := done[x.chain]; d < len(delays[x.chain]) {
			next = append(next, step{x.at + 1000*delays[x.chain][d], x.chain})
			done[x.chain]++
		}
	}
	return all
}

// TestOrder: windows that go through one chain after the other, with several calendars, put
// all that begins in the order of a queue of events; with one calendar also where some chains are
// ahead of the others.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const look = 8
		delay := rapid.SliceOfN(rapid.Int64Range(1, 12), 20, 40)
		delays := rapid.SliceOfN(delay, 1, 12).Draw(t, "delays")
		calendars := make([]*Calendar, rapid.IntRange(1, 3).Draw(t, "calendars"))
		for i := range calendars {
			calendars[i] = &Calendar{}
		}
		r := Ranker{Pauses: func(func(*Number, *uint64)) {}}
		r.Open(calendars, 1000*look, 1000*12, len(delays))
		r.least, r.room = rapid.IntRange(1, 100).Draw(t, "room"), 1
		at, last, done := make([]int64, len(delays)), make([]Number, len(delays)), make([]int, len(delays))
		type begun struct {
			step
			n Number
		}
		ahead := make([]int64, len(delays)) // ps
		for i := range ahead {
			if len(calendars) == 1 {
				ahead[i] = 1000 * rapid.Int64Range(0, 12).Draw(t, "ahead")
			}
		}
		var got, all []begun
		for from := int64(0); from < 1000*12*41; from += 1000 * look {
			r.Begin(from)
			for i := range delays {
				c := calendars[i%len(calendars)]
				for done[i] <= len(delays[i]) && at[i] < from+1000*look+ahead[i] {
					if c.By = Root(int32(i)); done[i] > 0 {
						c.SetCause(last[i])
					}
					last[i] = c.Sent(at[i], int32(i), 0)
					all = append(all, begun{step{at[i], int32(i)}, last[i]})
					if done[i] < len(delays[i]) {
						at[i] += 1000 * delays[i][done[i]]
					}
					done[i]++
				}
			}
			r.Close(from + 1000*look)
			var fresh, later []begun
			for _, b := range all {
				if b.at < from+1000*look {
					fresh = append(fresh, b)
				} else {
					later = append(later, b)
				}
			}
			all = later
			slices.SortFunc(fresh, func(a, b begun) int {
				return cmp.Or(cmp.Compare(a.at, b.at),
					map[bool]int{true: -1, false: 1}[calendars[0].First(a.n, b.n)])
			})
			got = append(got, fresh...)
		}
		for k, want := range queued(delays) {
			if got[k].step != want {
				t.Fatalf("number %d is %v, want %v", k, got[k], want)
			}
		}
	})
}

// TestKeys: keys of more than 2^24 that are in reach keep time and place apart, and far
// times stay behind near ones.
func TestKeys(t *testing.T) {
	for _, n := range []int{1, 2, 1 << 24, 1<<24 + 1, 1 << 28} {
		index, last := indexBits(n), n-1
		if k := key(8000, last, index); k&(1<<index-1) != uint64(last) || k>>index != 1000 {
			t.Errorf("the last of %d has key %#x with %d bits for its place", n, k, index)
		}
		if a, b := key(8000, last, index), key(16000, 0, index); a >= b {
			t.Errorf("of %d, the last at 8 ns has key %#x, the first at 16 ns %#x", n, a, b)
		}
		if a, b := key(1<<62, 0, index), key(8000, last, index); a <= b || n >= 1<<24 &&
			a>>index != 1<<(64-index)-1 {
			t.Errorf("of %d, a far time has key %#x, a near one %#x", n, a, b)
		}
	}
}
