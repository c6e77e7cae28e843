package heap

import (
	"math/rand"
	"slices"
	"testing"
)

// item is a number with a key, by which it is ordered.
type item struct{ key, v int }

func (a item) Before(b item) bool { return a.key < b.key || a.key == b.key && a.v < b.v }

// TestLeastComesFirst: whatever was pushed, moved and removed before, and places are true.
func TestLeastComesFirst(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	at := map[int]int{}
	h := Heap[item]{Moved: func(x item, i int) { at[x.v] = i }}
	for step := range 20000 {
		switch known := h.Len(); {
		case known == 0 || rng.Intn(3) == 0:
			h.Push(item{rng.Intn(50), step})
		case rng.Intn(3) == 0:
			v := h.list[rng.Intn(known)].v
			h.Fix(at[v], item{rng.Intn(50), v})
		case rng.Intn(2) == 0:
			h.Remove(rng.Intn(known))
		default:
			want := slices.MinFunc(h.list, func(a, b item) int {
				if a.Before(b) {
					return -1
				}
				return 1
			})
			if first := h.First(); first != want || h.Pop() != want {
				t.Fatalf("step %d: %v comes first, want %v", step, first, want)
			}
		}
		for i, x := range h.list {
			if at[x.v] != i {
				t.Fatalf("step %d: %v lies at %d, not at %d", step, x, i, at[x.v])
			}
		}
	}
}
