package event

import (
	"sort"
	"testing"

	"github.com/simccl/simccl/units"
	"pgregory.net/rapid"
)

// The queue gives what a stable sort by (time, class) gives, whatever the
// order of pushes and pops.
func TestQueueIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		type key struct {
			at    units.Time
			class uint8
			seq   int32
		}
		var want []key
		n := rapid.IntRange(0, 200).Draw(t, "n")
		for i := range n {
			k := key{units.Time(rapid.IntRange(0, 20).Draw(t, "at")), uint8(rapid.IntRange(0, 3).Draw(t, "class")), int32(i)}
			q.Push(k.at, k.class, 0, k.seq, 0)
			want = append(want, k)
		}
		sort.SliceStable(want, func(a, b int) bool {
			if want[a].at != want[b].at {
				return want[a].at < want[b].at
			}
			return want[a].class < want[b].class
		})
		var e Event
		for i, w := range want {
			if !q.Pop(&e) || e.At != w.at || e.Class() != w.class || e.ID != w.seq {
				t.Fatalf("pop %d: got (%d, %d, %d), want %v", i, e.At, e.Class(), e.ID, w)
			}
		}
		if q.Pop(&e) {
			t.Fatal("queue not empty at the end")
		}
	})
}

func TestQueueDoesNotAllocate(t *testing.T) {
	var q Queue
	for i := range int32(64) {
		q.Push(units.Time(i), 0, 0, i, 0)
	}
	var e Event
	if n := testing.AllocsPerRun(1000, func() {
		q.Pop(&e)
		q.Push(e.At+64, 0, 0, e.ID, 0)
	}); n != 0 {
		t.Fatalf("%v allocations per event, want 0", n)
	}
}

func BenchmarkQueue(b *testing.B) {
	for _, depth := range []int32{64, 1024, 65536} {
		b.Run(map[int32]string{64: "64", 1024: "1024", 65536: "65536"}[depth], func(b *testing.B) {
			var q Queue
			for i := range depth {
				q.Push(units.Time(i*7919%depth), 0, 0, i, 0)
			}
			var e Event
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q.Pop(&e)
				q.Push(e.At+units.Time(i*7919%(int(depth)*2)), 0, 0, e.ID, 0)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
