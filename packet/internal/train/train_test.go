package train

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// some draws frames as they follow each other on a cable: trains and others, of one flow.
func some(t *rapid.T) (all []frame) {
	at, psn := int64(1000), uint32(0)
	for range rapid.IntRange(0, 8).Draw(t, "records") {
		f := frame{At: at, Flow: 3, Psn: psn, Size: 100, Class: 1}
		if n := rapid.Int64Range(1, 40).Draw(t, "frames"); rapid.Bool().Draw(t, "train") {
			Of(&f, n, rapid.Int64Range(100, 300).Draw(t, "gap"))
		}
		at, psn = Last(&f)+rapid.Int64Range(100, 102).Draw(t, "pause"), psn+uint32(Frames(&f))
		all = append(all, f)
	}
	return all
}

// TestFramesStay: however trains are put onto a cable, joined, cut and taken apart, the frames are the same.
func TestFramesStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := some(t)
		var q ring
		trains := 0
		for i := range sent {
			if f := &sent[i]; !Is(f) {
				q.Push(f)
			} else if !Push(&q, f, rapid.Int64Range(0, 5000).Draw(t, "from")) {
				trains++
			}
		}
		var came []frame
		for end := int64(0); !q.Empty(); end += rapid.Int64Range(1, 3000).Draw(t, "window") {
			before, n := len(came), 0
			came, n = Take(&q, end, came)
			trains -= n
			for i := before; i < len(came); i++ {
				if Last(&came[i]) >= end {
					t.Fatalf("a frame of %d is taken before %d", Last(&came[i]), end)
				}
			}
			if !q.Empty() && q.Front().At < end {
				t.Fatalf("a frame of %d is left at %d", q.Front().At, end)
			}
			if rapid.IntRange(0, 9).Draw(t, "apart") == 0 {
				Unload(&q)
				trains = 0
			}
		}
		if got, want := All(came, nil), All(sent, nil); !slices.Equal(got, want) || trains != 0 {
			t.Fatalf("%d trains too many; %v\nwant %v", trains, got, want)
		}
	})
}

// TestLine: a port takes a train exactly where it takes each of its frames.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Line{Free: rapid.Int64Range(0, 2000).Draw(t, "free"), Lasts: rapid.Int64Range(1, 310).Draw(t,
			"lasts")}
		one, whole := l, true
		for _, f := range some(t) {
			parts := true
			for _, x := range Apart(&f, nil) {
				parts = one.Takes(&x) && parts
			}
			if whole = l.Takes(&f); whole != parts || whole && l != one {
				t.Fatalf("%v: %v, its frames %v; %v, %v", f, whole, parts, l, one)
			}
			if !whole {
				return
			}
		}
	})
}

// TestUna: what is acknowledged while a queue pair sends is all counted, and its bound is found to delay a
// frame whenever it would delay one of them.
func TestUna(t *testing.T) {
	const ack = 1
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		come := some(t)
		for i := range come {
			come[i].Flags, come[i].Psn = ack, come[i].Psn+1
		}
		s := Sending{Flow: 3, Nxt: rapid.Uint32Range(400, 500).Draw(t, "next"),
			Most: rapid.Int64Range(0, 600).Draw(t, "most"), Free: rapid.Int64Range(900, 2000).Draw(t, "free"),
			Lasts: rapid.Int64Range(80, 300).Draw(t, "lasts"), Frames: rapid.Int64Range(1, 60).Draw(t,
				"frames")}
		una, ok := Una(come, s, ack)
		acks, delayed, now := All(come, nil), false, uint32(0)
		for k := range s.Frames {
			for len(acks) > 0 && acks[0].At <= s.Free+k*s.Lasts {
				now, acks = acks[0].Psn, acks[1:]
			}
			delayed = delayed || s.Most > 0 && int64(s.Nxt-now)+k >= s.Most
		}
		if len(acks) > 0 {
			now = acks[len(acks)-1].Psn
		}
		if ok && (delayed || una != now) {
			t.Fatalf("%+v, %v: delayed %v, acknowledged up to %d, not %d", s, come, delayed, una, now)
		}
		if delayed {
			held++
		}
		if come = append(come, frame{Flow: 3, Flags: ack | 2}); ok {
			if _, ok = Una(come, s, ack); ok {
				t.Fatal("what is no plain acknowledgement is taken for one")
			}
		}
	})
	if held == 0 {
		t.Error("no frame was delayed: some should be")
	}
}
