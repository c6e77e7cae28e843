package heap

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSort: each thing follows what it depends on, the least number that may come
// comes, and a cycle is found.
func TestSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		edges := rapid.SliceOfN(rapid.IntRange(0, n*n-1), 0, 14).Draw(t, "edges")
		deps := func(i int32, yield func(int32)) {
			for _, e := range edges {
				if e/n == int(i) {
					yield(int32(e % n))
				}
			}
		}
		list, ok := Order(n, deps)
		var want []int32 // the same by looking through all, again and again
		for again := true; again; {
			again = false
			for i := range int32(n) {
				free := !slices.Contains(want, i)
				deps(i, func(on int32) { free = free && slices.Contains(want, on) })
				if free {
					want, again = append(want, i), true
					break
				}
			}
		}
		if !slices.Equal(list, want) || ok != (len(want) == n) {
			t.Fatalf("%v %v, want %v", list, ok, want)
		}
	})
}
