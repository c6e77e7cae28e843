package nccl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/simccl/simccl/trace"
	"github.com/simccl/simccl/units"
)

const us = units.Microsecond

func critical(m *trace.Memory) (out []string) {
	for _, e := range m.Events {
		if e.Cat == "critical" {
			out = append(out, fmt.Sprintf("%s r%d %g-%g", e.Name, e.Args[0].Int, e.Start.Micros(),
				(e.Start+e.Dur).Micros()))
		}
	}
	return out
}

// Rank 0 sends to 1, which passes on to 2; meanwhile 0 has something else to do
// that no rank waits for.
func TestCriticalPathFollowsTheData(t *testing.T) {
	var m trace.Memory
	sink := CriticalPath(&m, nil)
	rec := New(sink, Options{Detail: DetailStep})
	step := func(rank, peer int, dir Dir, flow int64, w Wait, from, to units.Time) {
		rec.Steps(&Step{Rank: rank, Peer: peer, Dir: dir, Transport: "P2P/CUMEM", Chunk: -1}, flow,
			Phase{Wait: w, Start: from, End: to})
	}
	step(0, 1, Send, 1, SendWait, 2*us, 5*us)
	step(1, 0, Recv, 1, RecvWait, 1*us, 5*us)
	step(0, 3, Send, 0, SendWait, 5*us, 8*us)
	step(1, 2, Send, 2, SendWait, 6*us, 10*us)
	step(2, 1, Recv, 2, RecvWait, 1*us, 10*us)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	want := "launch r0 0-2, SendWait r0 2-5, kernel r1 5-6, SendWait r1 6-10"
	if got := strings.Join(critical(&m), ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Two kernels of two ranks, of which rank 1 receives: before the first kernel and
// between the kernels is launch; what a kernel does before, between and behind its
// steps is its own.
func TestCriticalPathHasKernelsAndLaunches(t *testing.T) {
	var m trace.Memory
	sink := CriticalPath(&m, nil)
	rec := New(sink, Options{Detail: DetailStep})
	op := func(step int64, kernel, sends, sent, end units.Time) {
		rec.Kernel(0, 0, 0, kernel, sent, &Terms{})
		rec.Kernel(1, 0, 0, kernel, end, &Terms{})
		s := Step{Rank: 0, Peer: 1, Dir: Send, Step: step, Transport: "P2P/CUMEM", Chunk: -1}
		rec.Steps(&s, step, Phase{Wait: SendWait, Start: sends, End: sent})
		s.Rank, s.Peer, s.Dir = 1, 0, Recv
		rec.Steps(&s, step, Phase{Wait: RecvWait, Start: kernel, End: sent})
	}
	op(0, 3*us, 4*us, 6*us, 8*us)
	op(1, 10*us, 11*us, 12*us, 15*us)
	if err := sink.Close(); err != nil {
		t.Fatal(err)
	}
	want := "launch r0 0-3, kernel r0 3-4, SendWait r0 4-6, launch r0 6-10, kernel r0 10-11, SendWait r0 " +
		"11-12, kernel r1 12-15"
	if got := strings.Join(critical(&m), ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Whatever the steps, the path covers the run from zero to its end without gap
// or overlap.
func TestCriticalPathHasNoGap(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var m trace.Memory
		sink := CriticalPath(&m, nil)
		rec := New(sink, Options{Detail: DetailStep})
		end := units.Time(0)
		for i := range 1 + rng.IntN(60) {
			a, b := rng.IntN(4), rng.IntN(4)
			from := units.Time(rng.Int64N(int64(50 * us)))
			to := from + 10*units.Nanosecond + units.Time(rng.Int64N(int64(5*us)))
			wait := from - units.Time(rng.Int64N(int64(from)+1))
			flow := rec.Flow()
			s := Step{Rank: a, Peer: b, Channel: rng.IntN(2), Step: int64(i), Transport: "NET/IB", Chunk: -1}
			rec.Steps(&s, flow, Phase{Wait: SendWait, Start: from, End: to})
			s.Rank, s.Peer, s.Dir = b, a, Recv
			rec.Steps(&s, flow, Phase{Wait: RecvWait, Start: wait, End: to + us})
			end = max(end, to+us)
			if rng.IntN(4) == 0 {
				from := units.Time(rng.Int64N(int64(end)))
				until := from + units.Time(rng.Int64N(int64(10*us)))
				rec.Kernel(b, 0, s.Channel, from, until, &Terms{})
				end = max(end, until)
			}
		}
		if err := sink.Close(); err != nil {
			t.Fatal(err)
		}
		at := units.Time(0)
		for _, e := range m.Events {
			if e.Cat != "critical" {
				continue
			}
			if e.Start != at || e.Dur <= 0 {
				t.Fatalf("seed %d: %s begins at %v after %v", seed, e.Name, e.Start, at)
			}
			at = e.Start + e.Dur
		}
		if at != end {
			t.Fatalf("seed %d: the path ends at %v, the run at %v", seed, at, end)
		}
	}
}

// TestCancelledCriticalPathEnds: at whatever point it is cancelled, Close returns
// the reason, and there is no path.
func TestCancelledCriticalPathEnds(t *testing.T) {
	why := errors.New("cancelled")
	seek := func(end int) (polls int, m trace.Memory, err error) {
		sink := CriticalPath(&m, func() error {
			if polls++; end > 0 && polls >= end {
				return why
			}
			return nil
		})
		rec := New(sink, Options{Detail: DetailStep})
		for i := range 3 * pollEvery {
			at := units.Time(i) * us
			s := Step{Rank: i % 3, Peer: (i + 1) % 3, Step: int64(i), Transport: "P2P/CUMEM", Chunk: -1}
			rec.Steps(&s, rec.Flow(), Phase{Wait: SendWait, Start: at, End: at + us})
		}
		err = sink.Close()
		return polls, m, err
	}
	whole, m, err := seek(0)
	if err != nil || len(critical(&m)) == 0 || whole < 4 {
		t.Fatalf("polled %d times: %v", whole, err)
	}
	for end := 1; end <= whole; end++ {
		if _, m, err := seek(end); !errors.Is(err, why) || len(critical(&m)) > 0 {
			t.Errorf("cancelled at poll %d of %d: %v", end, whole, err)
		}
	}
}
