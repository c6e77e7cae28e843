package trace

import (
	"reflect"
	"testing"
)

// TestTeeHandsEverythingToAll: tracks, events and their arguments.
func TestTeeHandsEverythingToAll(t *testing.T) {
	var a, b Memory
	tee := Tee(&a, &b)
	lane := tee.Track(Track{Process: 1000003, Thread: 10000, ProcessName: "rank 3", Labels: "node0",
		ThreadName: "ch 00 send · step 0", ProcessSort: 3, ThreadSort: 10000})
	links := tee.Track(Track{Process: 3000000, Thread: 1, ProcessName: "links", ThreadName: "leaf0→spine1"})
	for _, e := range []Event{
		{Phase: Slice, Track: lane, Start: 6500000, Dur: 10833000, Cat: "NET", Name: "SendWait",
			Args: []Arg{Int("Step", 0), Str("transport", "NET/IB"), Num("share", 0.5)}},
		{Phase: FlowStart, Track: lane, Start: 6501000, Cat: "flow", Name: "xfer", ID: 1},
		{Phase: FlowEnd, Track: lane, Start: 18099000, Cat: "flow", Name: "xfer", ID: 1},
		{Phase: Counter, Track: links, Start: 6500000, Name: "leaf0→spine1 GB/s",
			Args: []Arg{Num("GB/s", 48.5)}},
		{Phase: Instant, Track: lane, Cat: "sim", Name: "tuner", Args: []Arg{Str("chosen", `RING "LL"`)}},
	} {
		tee.Emit(&e)
	}
	if err := tee.Close(); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a.Events, b.Events) || !reflect.DeepEqual(a.Tracks, b.Tracks) ||
		len(a.Events) != 5 || len(a.Tracks) != 2 {
		t.Errorf("tee lost something: %d and %d events", len(a.Events), len(b.Events))
	}
}
