package event

import (
	"cmp"
	"math"
	"slices"
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
			k := key{units.Time(rapid.IntRange(0, 20).Draw(t, "at")),
				uint8(rapid.IntRange(0, 3).Draw(t, "class")), int32(i)}
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

// plain is a queue without any order: what comes next is looked for.
type plain []Event

func (p *plain) pop() (e Event) {
	at := 0
	for i := range *p {
		if (*p)[i].before(&(*p)[at]) {
			at = i
		}
	}
	e = (*p)[at]
	*p = append((*p)[:at], (*p)[at+1:]...)
	return e
}

// The queue gives what a search of all that waits gives, whatever lies between a
// push and its event: an instant, a slot, the wheel, or more. Time goes on also
// without events, as where a flow ends.
func TestQueueIsALookForTheNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		var p plain
		delay := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 3), rapid.Int64Range(0, 2<<slotBits),
			rapid.Int64Range(0, slots<<slotBits+2<<slotBits), rapid.Int64Range(0, 1<<40),
			rapid.Just(int64(slots<<slotBits)), rapid.Just(int64(1<<slotBits)))
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				at, class := q.Now+units.Time(delay.Draw(t, "delay")),
					uint8(rapid.IntRange(0, 2).Draw(t, "class"))
				if arg := rapid.Int32Range(-3, 2).Draw(t, "named"); arg >= 0 {
					q.PushNamed(at, class, 1, int32(i), arg)
					p = append(p, Event{At: at, order: uint64(class)<<56 | uint64(arg)<<40 | uint64(i)<<8 | 1,
						ID: int32(i), Arg: arg})
					break
				}
				q.Push(at, class, 1, int32(i), 2)
				p = append(p, Event{At: at, order: uint64(class)<<56 | byPush<<8 | q.seq<<8 | 1, ID: int32(i),
					Arg: 2})
			case 3, 4:
				var e Event
				if got := q.Pop(&e); got != (len(p) > 0) {
					t.Fatalf("pop: %v of %d", got, len(p))
				} else if got {
					if want := p.pop(); e != want {
						t.Fatalf("got %+v, want %+v", e, want)
					}
					q.Now = e.At
				}
			case 5:
				next, ok := q.Next()
				if earliest := slices.MinFunc(append(p, Event{At: math.MaxInt64}), func(a, b Event) int {
					return cmp.Compare(a.At, b.At)
				}).At; ok && next != earliest {
					t.Fatalf("next is at %v, want %v", next, earliest)
				}
				if ok && next > q.Now {
					q.Now += units.Time(rapid.Int64Range(0, int64(next-q.Now)).Draw(t, "on"))
				}
			}
			if q.Len() != len(p) {
				t.Fatalf("%d wait, want %d", q.Len(), len(p))
			}
		}
	})
}

// What is named comes before what was pushed, in an order of its own, whenever it came; and
// events that another queue has taken over keep their places.
func TestNamedEventsHaveAPlace(t *testing.T) {
	var q, next Queue
	q.Push(5, Done, 1, 1, 0)
	q.PushNamed(5, Done, 2, 7, 1)
	q.Push(5, Done, 1, 2, 0)
	q.PushNamed(5, Done, 2, 9, 0)
	q.PushNamed(5, Done, 2, 3, 1)
	next.Continue(&q)
	next.Push(5, Done, 1, 4, 0)
	for _, e := range q.AppendAll(nil) {
		next.Put(&e)
	}
	next.PushNamed(5, Done, 2, 8, 0)
	var e Event
	for _, want := range []int32{8, 9, 3, 7, 1, 2, 4} {
		if !next.Pop(&e) || e.ID != want {
			t.Errorf("event %d, want %d", e.ID, want)
		}
	}
}

// AppendAll lists what waits in the order in which Pop returns it, wherever in
// the queue it lies.
func TestAppendAllIsTheOrderOfPop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue
		var e Event
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			q.Push(q.Now+units.Time(rapid.SampledFrom([]int64{0, 1, 900, 5_000, 3_000_000, 9_000_000}).Draw(t,
				"in")), uint8(rapid.IntRange(0, 2).Draw(t, "class")), 0, int32(q.Len()), 7)
			if rapid.IntRange(0, 2).Draw(t, "pop") == 0 && q.Pop(&e) {
				q.Now = e.At
			}
		}
		all := q.AppendAll(nil)
		if len(all) != q.Len() {
			t.Fatalf("%d listed of %d", len(all), q.Len())
		}
		for i := range all {
			if q.Pop(&e); e != all[i] {
				t.Fatalf("event %d is %+v, listed as %+v", i, e, all[i])
			}
		}
	})
}
