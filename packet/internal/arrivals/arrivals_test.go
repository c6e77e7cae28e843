package arrivals

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestParts: each port has what leaves by it, once, in the order of time and of numbers.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports, span := rapid.IntRange(1, 200).Draw(t, "ports"), rapid.Int64Range(1, 1<<38).Draw(t, "span")
		at := rapid.SliceOfN(rapid.Int64Range(0, min(span-1, rapid.SampledFrom([]int64{3, 1000, span}).Draw(t,
			"crowd"))), 0, 300).Draw(t, "at")
		var p Parts
		p.Begin(rapid.IntRange(1, 200).Draw(t, "before"))
		p.Add(0, 1)
		p.End()
		p.Begin(ports)
		keys := p.Room(len(at))
		want := make([][]uint64, ports)
		for i, x := range at {
			to := rapid.IntRange(0, ports-1).Draw(t, "port")
			keys[i] = Key(x, i)
			p.Add(uint16(to), keys[i])
			want[to] = append(want[to], Key(x, i))
		}
		p.End()
		leaving := rapid.SampledFrom([]func(int, int64) []uint64{p.Leaving, p.LeavingMixed}).Draw(t, "how")
		for k := range want {
			slices.Sort(want[k])
			if got := leaving(k, span); !slices.Equal(got, want[k]) || (p.Used[k/64]>>(k%64)&1 != 0) !=
				(len(got) > 0) {
				t.Fatalf("port %d: %v, want %v", k, got, want[k])
			}
		}
		all := slices.Sorted(slices.Values(keys))
		half := len(keys) / 2
		if got := Merge(nil, Sort(slices.Clone(keys[:half])), Sort(slices.Clone(keys[half:]))); !slices.Equal(
			got, all) {
			t.Fatalf("merged: %v, want %v", got, all)
		}
		if got := p.All(keys, span); !slices.Equal(got, all) {
			t.Fatalf("all: %v, want %v", got, all)
		}
	})
}

// TestBefore: bits say which times are before an end, also where a place has none.
func TestBefore(t *testing.T) {
	at := []int64{5, 0, 1<<63 - 1, 4}
	if got := Before(at, 5); got != 0b1010 {
		t.Errorf("before 5: %b", got)
	}
	if got := BeforeOf(at, []int32{3, -1, 2, 1, 0}, 5); got != 0b1001 {
		t.Errorf("before 5, by place: %b", got)
	}
}

// TestMorePorts: a node with more ports than the one before has room for their bits, wherever the
// room for ports ended.
func TestMorePorts(t *testing.T) {
	for few := 1; few < 200; few++ {
		var p Parts
		p.Begin(few)
		p.End()
		p.Begin(few + 1)
		p.Add(uint16(few), Key(1, 0))
		if p.End(); p.Used[(few)/64]>>((few)%64)&1 == 0 {
			t.Fatalf("%d ports, then %d: the last one is not in use", few, few+1)
		}
	}
}

// TestWindow: all that can come to a node in two windows can be numbered, also over cables that hold more;
// shorter ones stay.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		links  int
		rate   int64
		bytes  int
		length int64
		whole  bool
	}{{64, 400e9, 60, 1e6, true}, {2, 25e9, 60, 1e9, true}, {64, 400e9, 60, 1e10, false},
		{1, 100e12, 1, 1e12, false}, {3, 1e6, 60, 1 << 60, false}, {4000, 100e12, 1, 1e6, false}} {
		end := func(int) (int32, int64) { return 1, c.rate }
		got := Window(c.length, 2, c.links, c.bytes, end)
		frames := float64(c.links) * (2*float64(got)*float64(c.rate)/8e12/float64(c.bytes) + 1)
		if (got == c.length) != c.whole || got < 1 || got > Longest || frames > Place {
			t.Errorf("%d links of %g bit/s: a window of %d ps of %d, %g frames", c.links, float64(c.rate),
				got, c.length, frames)
		}
	}
}
