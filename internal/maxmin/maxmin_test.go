package maxmin

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLevelsAreMaxMin: no resource is used beyond its room, and each task has its bound or uses a resource
// that is used up, on which no other task has a higher level. So no task can get more but from one that has
// no more than it (Bertsekas and Gallager, 6.5.2).
func TestLevelsAreMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := Filling[float64]{Eps: 1e-12}
		type used struct {
			resource int32
			weight   float64
		}
		var rooms, bounds []float64
		var uses [][]used
		for range rapid.IntRange(1, 8).Draw(t, "resources") {
			rooms = append(rooms, float64(rapid.IntRange(1, 20).Draw(t, "room")))
			f.Resource(rooms[len(rooms)-1])
		}
		for range rapid.IntRange(1, 12).Draw(t, "tasks") {
			bounds = append(bounds, float64(rapid.IntRange(1, 30).Draw(t, "bound")))
			f.Task(bounds[len(bounds)-1])
			var list []used
			for r := range rooms {
				if rapid.Bool().Draw(t, "uses") {
					list = append(list, used{int32(r), float64(rapid.IntRange(1, 4).Draw(t, "weight")) / 2})
					f.Use(int32(r), list[len(list)-1].weight)
				}
			}
			uses = append(uses, list)
		}
		f.Fill()
		const slack = 1e-9
		sums, highest := make([]float64, len(rooms)), make([]float64, len(rooms))
		for i := range uses {
			level, _ := f.Level(int32(i))
			for _, u := range uses[i] {
				sums[u.resource] += u.weight * level
				highest[u.resource] = math.Max(highest[u.resource], level)
			}
		}
		for r, sum := range sums {
			if sum > rooms[r]+slack {
				t.Fatalf("resource %d of %v is used %v", r, rooms[r], sum)
			}
		}
		for i := range uses {
			level, own := f.Level(int32(i))
			if own != (level == bounds[i]) || level > bounds[i]+slack {
				t.Fatalf("task %d: level %v (own bound: %v), bound %v", i, level, own, bounds[i])
			}
			if !own && !slices.ContainsFunc(uses[i], func(u used) bool {
				return sums[u.resource] >= rooms[u.resource]-slack && highest[u.resource] <= level+slack
			}) {
				t.Fatalf("task %d stops at %v below its bound %v, and no resource holds it there", i, level,
					bounds[i])
			}
		}
	})
}

// TestWholeSharesRoundDown: of integers each task gets the quotient, and at least Least.
func TestWholeSharesRoundDown(t *testing.T) {
	for _, x := range []struct{ room, want int64 }{{10, 3}, {2, 1}} {
		f := Filling[int64]{Least: 1}
		r := f.Resource(x.room)
		for range 3 {
			f.Task(100)
			f.Use(r, 1)
		}
		f.Fill()
		for i := range int32(3) {
			if level, own := f.Level(i); level != x.want || own {
				t.Errorf("task %d of 3 on a resource of %d: level %d (%v), want %d", i, x.room, level, own,
					x.want)
			}
		}
	}
}

// TestLeadsCover: a resource that does not lead is covered by its lead, of the same key, and leads do not
// cover each other.
func TestLeadsCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 20).Draw(t, "keys")
		needs := make([][2]int, len(keys)) // neither covers the other of {1, 2} and {2, 1}
		for i := range needs {
			needs[i] = [2]int{rapid.IntRange(0, 3).Draw(t, "first"), rapid.IntRange(0, 3).Draw(t, "second")}
		}
		covers := func(b, a int) bool { return needs[b][0] >= needs[a][0] && needs[b][1] >= needs[a][1] }
		leads := Leads(len(keys), func(i int) int { return keys[i] }, covers)
		for i, b := range leads {
			if leads[b] != b || keys[b] != keys[i] || !covers(b, i) {
				t.Fatalf("%d leads %d: keys %v, needs %v, leads %v", b, i, keys, needs, leads)
			}
			for j, c := range leads {
				if i != j && i == b && j == c && keys[i] == keys[j] && covers(i, j) {
					t.Fatalf("%d and %d both lead: keys %v, needs %v", i, j, keys, needs)
				}
				if i < j && i != b && j == b && needs[i] == needs[j] {
					t.Fatalf("%d leads %d, which came first and is equal", j, i)
				}
			}
		}
	})
}
