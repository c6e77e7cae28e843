package frames

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// frame draws a frame that arrives at a time.
func frame(t *rapid.T, at int64) Frame {
	u := rapid.Uint32Range(0, 1<<16)
	return Frame{At: at, Flow: int32(u.Draw(t, "flow")), Psn: u.Draw(t, "psn"), Route: u.Draw(t, "route"),
		Aux: u.Draw(t, "aux"), Size: uint16(u.Draw(t, "size")), Flags: uint8(u.Draw(t, "flags")),
		Class: uint8(rapid.IntRange(0, 2).Draw(t, "class")), Tag: u.Draw(t, "tag")}
}

var calls = []string{"push", "push", "pass", "insert", "take", "move", "leave", "rewind", "reset"}

// TestRingIsAList: what a ring holds after any calls is what a list holds, in order, wherever it wraps
// around.
func TestRingIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Ring
		var list []Frame
		last := int64(0)
		for range rapid.IntRange(1, 120).Draw(t, "calls") {
			end := last - rapid.Int64Range(0, 8).Draw(t, "before the last")
			early, bytes, _ := before(list, end)
			switch rapid.SampledFrom(calls).Draw(t, "call") {
			case "push":
				last += rapid.Int64Range(0, 3).Draw(t, "later")
				f := frame(t, last)
				list = append(list, f)
				q.Push(&f)
			case "pass":
				last += rapid.Int64Range(0, 3).Draw(t, "later")
				f := frame(t, 7)
				q.Pass(&f, last, 9)
				f.At, f.Tag = last, 9
				list = append(list, f)
			case "insert":
				f := frame(t, max(0, end))
				q.Insert(&f)
				i := len(list)
				for i > 0 && list[i-1].At > f.At {
					i--
				}
				list, last = slices.Insert(list, i, f), max(last, f.At)
			case "take":
				got := q.Take(5, end, []Frame{{At: -1}})
				for i, want := range list[:early] {
					if want.Tag = 5; got[i+1] != want {
						t.Fatalf("takes %+v, want %+v", got[i+1], want)
					}
				}
				if len(got) != early+1 || got[0].At != -1 {
					t.Fatalf("takes %d after one, want %d", len(got)-1, early)
				}
				list = list[early:]
			case "move":
				got, n := q.Move(end, []Frame{{At: -1}})
				for i, want := range list[:early] {
					if want.Route++; got[i+1] != want {
						t.Fatalf("moves %+v, want %+v", got[i+1], want)
					}
				}
				if len(got) != early+1 || n != bytes {
					t.Fatalf("moves %d of %d bytes, want %d of %d", len(got)-1, n, early, bytes)
				}
				list = list[early:]
			case "leave":
				if !q.Empty() {
					q.Head++
					list = list[1:]
				}
			case "rewind":
				if empty := q.Empty(); empty {
					q.Rewind()
					atBegin(t, &q, empty)
				}
			case "reset":
				empty := q.Empty()
				q.Reset()
				atBegin(t, &q, empty)
			}
			compare(t, &q, list, end)
		}
	})
}

// atBegin holds that a ring that was empty is at the begin of its memory.
func atBegin(t *rapid.T, q *Ring, empty bool) {
	if empty && len(q.Buf) > 0 && q.Head&uint32(len(q.Buf)-1) != 0 {
		t.Fatalf("at %d of %d", q.Head, len(q.Buf))
	}
}

// before is how many of a list arrive before a time, their bytes, and whether none is control.
func before(list []Frame, end int64) (n int, bytes int64, plain bool) {
	for plain = true; n < len(list) && list[n].At < end; n++ {
		bytes += int64(list[n].Size)
		plain = plain && list[n].Class != 0
	}
	return n, bytes, plain
}

// compare holds what a ring says of itself against a list.
func compare(t *rapid.T, q *Ring, list []Frame, end int64) {
	if q.Empty() != (len(list) == 0) || int(q.Tail-q.Head) != len(list) ||
		q.Full() != (len(list) == len(q.Buf)) {
		t.Fatalf("%d frames of %d, want %d", q.Tail-q.Head, len(q.Buf), len(list))
	}
	for i := range list {
		if got := *q.At(q.Head + uint32(i)); got != list[i] {
			t.Fatalf("frame %d is %+v, want %+v", i, got, list[i])
		}
	}
	first := First(list)
	if soon := q.Soon(); soon != first {
		t.Fatalf("the first arrives at %d, want %d", soon, first)
	}
	if q.First() != first {
		t.Fatalf("the first arrives at %d, want %d", q.First(), first)
	}
	if len(list) > 0 && (*q.Last() != list[len(list)-1] || *q.Front() != list[0]) {
		t.Fatalf("first %+v, last %+v", *q.Front(), *q.Last())
	}
	early, bytes, plain := before(list, end)
	if to := q.Before(end); int(to-q.Head) != early {
		t.Fatalf("%d arrive before %d, want %d", to-q.Head, end, early)
	}
	if to, n, p := q.Upto(end); int(to-q.Head) != early || n != bytes || p != plain {
		t.Fatalf("%d of %d bytes before %d, plain %t; want %d of %d, %t", to-q.Head, n, end, p, early, bytes,
			plain)
	}
	var memory []Frame
	if got := q.Between(q.Head, q.Head+uint32(early), &memory); !slices.Equal(got, list[:early]) {
		t.Fatalf("%v between, want %v", got, list[:early])
	}
}

// TestLaneIsAList: also over the ends of its pieces, whose memory is used again.
func TestLaneIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Lane
		var spare *Piece
		var list []Frame
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			n := rapid.IntRange(1, 40).Draw(t, "frames")
			switch rapid.SampledFrom([]string{"pass", "room", "pop", "drop"}).Draw(t, "call") {
			case "pass":
				for i := range n {
					f := Frame{Psn: uint32(len(list)), Size: uint16(i), Tag: 1}
					q.Pass(&f, int64(i), 2, &spare)
					f.At, f.Tag = int64(i), 2
					list = append(list, f)
				}
			case "room":
				room := q.Room(&spare)
				if len(room) == 0 || len(room) > perPiece {
					t.Fatalf("room for %d", len(room))
				}
				n = min(n, len(room))
				for i := range n {
					room[i] = Frame{Psn: uint32(i), Size: 3}
					list = append(list, room[i])
				}
				q.Came(n)
			case "pop":
				for n = min(n, len(list)); n > 0; n-- {
					q.Pop(&spare)
					list = list[1:]
				}
			case "drop":
				if len(list) > 0 {
					n := len(q.Piece())
					q.Drop(n, &spare)
					list = list[n:]
				}
			}
			if q.Empty() != (len(list) == 0) || int(q.Tail-q.Head) != len(list) {
				t.Fatalf("%d frames, want %d", q.Tail-q.Head, len(list))
			}
			if len(list) == 0 {
				continue
			}
			if *q.Front() != list[0] || *q.Back() != list[len(list)-1] {
				t.Fatalf("from %+v to %+v, want from %+v to %+v", *q.Front(), *q.Back(), list[0],
					list[len(list)-1])
			}
			if p := q.Piece(); len(p) == 0 || !slices.Equal(p, list[:len(p)]) ||
				len(p) < len(list) && int(q.at)+len(p) != perPiece {
				t.Fatalf("a piece of %d of %d", len(p), len(list))
			}
		}
	})
}

// TestPiecesAreUsedAgain: eight are made at a time, and one that is left is the next that is taken.
func TestPiecesAreUsedAgain(t *testing.T) {
	var q Lane
	var spare *Piece
	for range 3 * perPiece {
		q.Pass(&Frame{}, 0, 0, &spare)
	}
	left := 0
	for p := spare; p != nil; p = p.next {
		left++
	}
	if left != 5 {
		t.Errorf("%d pieces are left of eight, want 5", left)
	}
	first := q.first
	for range perPiece {
		q.Pop(&spare)
	}
	if spare != first || q.first == first {
		t.Error("the piece that was left is not the next one")
	}
	q.Drop(perPiece, &spare)
	for range perPiece {
		q.Pop(&spare)
	}
	if !q.Empty() || q.at != 0 || q.end != 0 {
		t.Errorf("an empty lane is at %d to %d", q.at, q.end)
	}
}

// TestControlGoesFirstThenClassesInTurn: after the class that was served last.
func TestControlGoesFirstThenClassesInTurn(t *testing.T) {
	for _, c := range []struct {
		can          uint16
		last         uint8
		classes      int
		want, lastIs uint8
	}{
		{0b0001, 2, 4, 0, 2}, {0b1111, 2, 4, 0, 2}, {0b1110, 0, 4, 1, 1}, {0b1110, 1, 4, 2, 2}, {0b1110, 3, 4,
			1, 1},
		{0b1010, 1, 4, 3, 3}, {0b1010, 3, 4, 1, 1}, {0b0100, 2, 4, 2, 2}, {0b10, 1, 2, 1, 1}, {0b10, 0, 2, 1,
			0},
		{0b100, 2, 3, 2, 2}, {0b10, 2, 3, 1, 1},
	} {
		last := c.last
		if got := InTurn(c.can, &last, c.classes); got != c.want || last != c.lastIs {
			t.Errorf("%04b after %d of %d: %d, then after %d; want %d, %d", c.can, c.last, c.classes, got,
				last, c.want,
				c.lastIs)
		}
	}
}

// TestFramesGoOnward: each to the next link of its route, its port in the tag or in a list of its own.
func TestFramesGoOnward(t *testing.T) {
	for _, keep := range []bool{false, true} {
		a, keys := []Frame{{Route: 4, Tag: 1}, {Route: 9, Tag: 2}}, make([]uint64, 2)
		from := Onward(a, keys, []uint16{3}, 7, keep)
		want := []uint16{3}
		if keep {
			want = []uint16{3, 7, 7}
		}
		if a[0].Route != 5 || a[1].Route != 10 || !slices.Equal(keys, []uint64{0, 1}) || !slices.Equal(from,
			want) ||
			(a[0].Tag == 7) == keep || (a[1].Tag == 7) == keep {
			t.Errorf("keep %t: %+v, keys %v, ports %v", keep, a, keys, from)
		}
	}
}

// TestArrivalsAreSortedStably, and a list grows by one frame at a time, 16 at first.
func TestArrivalsAreSortedStably(t *testing.T) {
	a := []Frame{{At: 3, Psn: 1}, {At: 1, Psn: 2}, {At: 3, Psn: 3}, {At: 1, Psn: 4}}
	Sort(a)
	for i, psn := range []uint32{2, 4, 1, 3} {
		if a[i].Psn != psn {
			t.Errorf("%+v", a)
		}
	}
	b := Extend(nil)
	if len(b) != 1 || cap(b) < 16 {
		t.Errorf("%d of %d", len(b), cap(b))
	}
	b[0].Psn = 5
	full := Extend(b[:cap(b)])
	if len(full) != cap(b)+1 || cap(full) < 2*cap(b) || full[0].Psn != 5 {
		t.Errorf("%d of %d after %d", len(full), cap(full), cap(b))
	}
	if First(nil) != never {
		t.Error("of nothing there is a first")
	}
}
