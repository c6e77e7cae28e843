package route

import (
	"slices"
	"testing"
)

// TestOrder: hosts 0 and 1 behind switches 2 and 5, which switches 3 and 4 join:
// next hops come from the last switch to the first, as in the peer's memory.
func TestOrder(t *testing.T) {
	var links []Link
	for _, c := range [][2]int32{{0, 2}, {1, 5}, {2, 3}, {2, 4}, {5, 3}, {5, 4}} {
		links = append(links, Link{c[0], c[1]}, Link{c[1], c[0]})
	}
	r := New([]bool{false, false, true, true, true, true}, links)
	if !r.Towards(1, 0) || r.Longest() != 4 {
		t.Fatalf("longest route %d, want 4 links", r.Longest())
	}
	if next := r.Tables().Next(2, 1); !slices.Equal(next, []int32{6, 4}) {
		t.Errorf("next hops %v, want links 6 (to switch 4) and 4 (to 3)", next)
	}
	path := make([]int32, 4)
	if n := r.Fill(path, Key{Src: 0, Dst: 1, SPort: 10000, DPort: 100}, nil); n != 4 ||
		links[path[3]].To != 1 {
		t.Errorf("route %v of %d links", path, n)
	}
	if n := r.Fill(path, Key{Src: 1, Dst: 0}, []int32{1, 5, 3, 0}); n != 4 ||
		!slices.Equal(path, []int32{2, 10, 7, 1}) {
		t.Errorf("route %v of %d links, want 2 10 7 1 along cables 1, 5, 3 and 0", path, n)
	}
	r.Remove(2)
	if !r.Towards(1, 0) || len(r.Tables().Next(2, 1)) != 1 {
		t.Error("a removed cable is still taken")
	}
}
