package packet

import (
	"errors"
	"testing"

	"github.com/simccl/simccl/units"
)

// oneSwitch is so many hosts at one switch.
func oneSwitch(hosts int) *Network { return leafSpine(1, hosts, 0, 100e9, 0) }

// play runs messages given beforehand and returns when each arrives, by token.
func play(t *testing.T, l *Live, n int) []units.Time {
	t.Helper()
	out := make([]units.Time, n)
	for {
		at, ok := l.Next()
		if !ok {
			return out
		}
		for _, tok := range l.Advance(at, nil) {
			if out[tok] != 0 {
				t.Fatalf("message %d arrives twice", tok)
			}
			out[tok] = at
		}
	}
}

// TestLiveAsRun: messages that are given while the run goes arrive as those of flows
// that are known beforehand: an acknowledgement's way before the flow ends.
func TestLiveAsRun(t *testing.T) {
	const bytes = 1_000_000
	for _, senders := range []int{1, 4} {
		n, cfg := oneSwitch(senders+1), settings(NoCC)
		var flows []Flow
		var queues []Queue
		for i := range senders {
			flows = append(flows, Flow{Src: int32(i + 1), Dst: 0, Bytes: bytes, Priority: 3})
			queues = append(queues, Queue{Src: int32(i + 1), Dst: 0, Priority: 3,
				Path: []int32{int32(i + 1), 0}})
		}
		want, err := Run(n, flows, cfg)
		if err != nil {
			t.Fatal(err)
		}
		l, err := NewLive(n, queues, settings(NoCC))
		if err != nil {
			t.Fatal(err)
		}
		for i := range senders {
			l.Send(int32(i), 0, bytes, int32(i))
		}
		back := 2*units.Microsecond + 2*4*units.Nanosecond // two cables, 60 bytes twice in whole nanoseconds
		for i, at := range play(t, l, senders) {
			if got := at + back; got != want.Flows[i].End {
				t.Errorf("%d to 1: flow %d ends at %v, its message arrives at %v", senders, i,
					want.Flows[i].End, at)
			}
		}
		if r := l.Result(); r.PeakQueue != want.PeakQueue || r.DataPacketHops != want.DataPacketHops {
			t.Errorf("%d to 1: deepest queue %d, %d hops; of flows %d, %d", senders, r.PeakQueue,
				r.DataPacketHops, want.PeakQueue, want.DataPacketHops)
		}
	}
}

// TestLiveInOrder: messages of a queue pair follow each other without a pause, each
// with its own last frame, also where frames are lost.
func TestLiveInOrder(t *testing.T) {
	for _, selective := range []bool{false, true} {
		n, cfg := oneSwitch(2), settings(NoCC)
		for i := range n.Cables {
			n.Cables[i].Loss = 0.01
		}
		cfg.Repair = Repair{Selective: selective, Timeout: 100 * units.Microsecond}
		cfg.AckFrom = 4
		if selective {
			cfg.AckFrom = 1
		}
		l, err := NewLive(n, []Queue{{Src: 0, Dst: 1, Priority: 3, Path: []int32{0, 1}}}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range int32(20) {
			l.Send(0, units.Time(i)*units.Microsecond, int64(1+i*7777), i)
		}
		at := play(t, l, 20)
		for i := 1; i < 20; i++ {
			if at[i] <= 0 || at[i] < at[i-1] {
				t.Fatalf("selective %v: message %d arrives at %v, the one before at %v", selective, i, at[i],
					at[i-1])
			}
		}
		if r := l.Result(); r.Lost == 0 || r.Retransmitted == 0 || l.Why() != nil {
			t.Errorf("selective %v: %d frames lost, %d sent again, %v", selective, r.Lost, r.Retransmitted,
				l.Why())
		}
	}
}

// TestLiveReportsRest: once all messages have arrived, no port was last reported with something
// in its queue, though it is less than a microsecond since ports were looked at.
func TestLiveReportsRest(t *testing.T) {
	n := oneSwitch(4)
	for i := range n.Cables {
		n.Cables[i].Delay = 50 * units.Nanosecond
	}
	var queues []Queue
	for i := range int32(3) {
		queues = append(queues, Queue{Src: i + 1, Dst: 0, Priority: 3, Path: []int32{i + 1, 0}})
	}
	for bytes := int64(20_000); bytes < 80_000; bytes += 5_000 {
		l, err := NewLive(n, queues, settings(NoCC))
		if err != nil {
			t.Fatal(err)
		}
		queued, deepest := map[int64]int64{}, int64(0)
		l.Watch(func(s State) {
			if s.Queue < 0 {
				id := 2 * int64(s.Cable)
				if s.Back {
					id++
				}
				queued[id], deepest = s.Queued, max(deepest, s.Queued)
			}
		})
		for i := range int32(3) {
			l.Send(i, 0, bytes, i)
		}
		play(t, l, 3)
		for id, q := range queued { //lint:sorted each by itself
			if q != 0 || deepest == 0 {
				t.Errorf("%d bytes each: link %d has %d bytes at the end, at most %d", bytes, id, q, deepest)
			}
		}
	}
}

// TestLiveRefuses: paths that lead elsewhere are errors of the input.
func TestLiveRefuses(t *testing.T) {
	n := oneSwitch(3)
	for _, q := range []Queue{{Src: 0, Dst: 1, Priority: 3}, {Src: 0, Dst: 1, Priority: 3,
		Path: []int32{0, 2}}, {Src: 0, Dst: 1, Priority: 3, Path: []int32{1, 0}},
		{Src: 0, Dst: 1, Priority: 3, Path: []int32{0, 9}}, {Src: 0, Dst: 1, Path: []int32{0, 1}}} {
		var in *InputError
		if _, err := NewLive(n, []Queue{q}, settings(NoCC)); !errors.As(err, &in) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestLiveAllocatesNothing: once its queues have grown, messages take no memory.
func TestLiveAllocatesNothing(t *testing.T) {
	l, err := NewLive(oneSwitch(3), []Queue{{Src: 0, Dst: 2, Priority: 3, Path: []int32{0, 2}},
		{Src: 1, Dst: 2, Priority: 3, Path: []int32{1, 2}}}, settings(DCQCN))
	if err != nil {
		t.Fatal(err)
	}
	done := make([]int32, 0, 4)
	now := units.Time(0)
	round := func() {
		for q := range int32(2) {
			l.Send(q, now, 100_000, q)
		}
		for {
			at, ok := l.Next()
			if !ok {
				return
			}
			now = at
			done = l.Advance(at, done[:0])
		}
	}
	for range 50 {
		round()
	}
	if n := testing.AllocsPerRun(20, round); n > 2 { // a start is put in order in a list that moves on
		t.Errorf("%g allocations for two messages of 100 frames", n)
	}
}

// TestFirstAndLast: the first frame of each message carries where it is to be written, the last
// one immediate data; a message of one frame carries both.
func TestFirstAndLast(t *testing.T) {
	cfg := settings(NoCC)
	cfg.WholeNanos, cfg.Frames.First, cfg.Frames.Last = false, 16, 4
	l, err := NewLive(oneSwitch(2), []Queue{{Src: 1, Dst: 0, Priority: 3, Path: []int32{1, 0}}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Send(0, 0, 3000, 0)
	l.Send(0, 0, 500, 1)
	const byteTime = 80 * units.Picosecond     // at 100 Gb/s
	three := (2*1064 + 1048 + 1052) * byteTime // the second link has the first frame later by its length
	at := play(t, l, 2)
	for i, want := range []units.Time{three, three + 568*byteTime} {
		if got := at[i] - 2*units.Microsecond; got != want {
			t.Errorf("message %d arrives after %v without cables, want %v", i, got, want)
		}
	}
}

// TestWhyLiveMessagesWait: messages over a cable that is down wait, and their queue pairs, which give up, are
// counted.
func TestWhyLiveMessagesWait(t *testing.T) {
	n, cfg := oneSwitch(3), settings(NoCC)
	n.Cables[0].Loss = 1
	cfg.Repair = Repair{Timeout: 10 * units.Microsecond, Retries: 2}
	l, err := NewLive(n, []Queue{{Src: 0, Dst: 1, Priority: 3, Path: []int32{0, 1}},
		{Src: 2, Dst: 1, Priority: 3, Path: []int32{2, 1}}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	l.Send(0, 0, 10_000, 0)
	l.Send(1, 0, 10_000, 1)
	if at := play(t, l, 2); at[0] != 0 || at[1] == 0 {
		t.Errorf("messages arrive at %v", at)
	}
	if s := l.Why(); s == nil || s.Failed != 1 || s.Unfinished != 1 {
		t.Errorf("%+v", s)
	}
}
