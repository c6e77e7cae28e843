package port

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/simccl/simccl/packet/internal/arrivals"
	"github.com/simccl/simccl/packet/internal/frames"
	"github.com/simccl/simccl/packet/spec"
)

// sizes are those of data and of acknowledgements.
var sizes = [2]uint16{1000, 60}

// random is a frame of either size, from one of four ports.
func random(r *rand.Rand, at int64) frames.Frame {
	what := uint8(r.IntN(2))
	return frames.Frame{At: at, Flow: int32(r.IntN(9)), Size: sizes[what], Flags: what, Class: 1,
		Tag: r.Uint32N(4)}
}

// TestEgressSends: a port sends what waits as a loop over single frames does, which takes all that has come
// by then into a list.
func TestEgressSends(t *testing.T) {
	deep, stopped := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := Link{Free: r.Int64N(50), Delay: 7, Sizes: sizes, Lasts: [2]int64{100, 6}, Marks: r.IntN(2) == 0,
			KMin: 3000, KMax: 3000, Alert: 3000}
		q, spare := Queue{}, (*frames.Piece)(nil)
		w := Egress{Config: &spec.Config{}, End: 1 + r.Int64N(3000), Surely: true, Held: make([]int64, 8),
			Spare: &spare}
		var keys []uint64
		for at := int64(0); len(keys) < r.IntN(60); at += r.Int64N(120) {
			keys = append(keys, arrivals.Key(at, len(keys)))
			w.Arrived = append(w.Arrived, random(r, at))
		}
		var list []frames.Frame
		var held [8]int64
		bytes := int64(0)
		for range r.IntN(70) {
			f := random(r, 0)
			list, bytes = append(list, f), bytes+int64(f.Size)
			held[2*f.Tag+1] += int64(f.Size)
			q.Pass(&f, 0, f.Tag, &spare)
			w.Held[2*f.Tag+1] += int64(f.Size)
		}
		q.Bytes = bytes
		var want []frames.Frame
		come, free, marks, peak := 0, l.Free, 0, int64(0)
		for len(list) > 0 && free < w.End {
			for ; come < len(keys) && w.Arrived[come].At <= free; come++ {
				bytes += int64(w.Arrived[come].Size)
				peak = max(peak, bytes)
			}
			f := list[0]
			list, bytes = list[1:], bytes-int64(f.Size)
			held[2*f.Tag+1] -= int64(f.Size)
			if l.Marks && bytes > l.KMin && f.Flags == 0 {
				f.Flags |= frames.CE
				marks++
			}
			free += l.Lasts[f.Flags&frames.Ack]
			f.At, f.Tag = free+l.Delay, 0
			want = append(want, f)
		}
		w.Send(&l, &q, keys)
		got := l.Wire.Between(l.Wire.Head, l.Wire.Tail, new([]frames.Frame))
		if !slices.Equal(got, want) || w.Marks != marks || w.Come != come || q.Bytes != bytes ||
			l.Free != free || l.Peak != peak || w.Stopped {
			t.Fatalf("seed %d: %d frames with %d marks, %d have come, %d bytes wait, free at %d, peak %d; "+
				"want %d with %d, %d, %d, %d, %d",
				seed, len(got), w.Marks, w.Come, q.Bytes, l.Free, l.Peak, len(want), marks, come, bytes, free,
				peak)
		}
		if !slices.Equal(w.Held, held[:]) {
			t.Fatalf("seed %d: of ports %v wait, want %v", seed, w.Held, held)
		}
		deep += marks
		stopped += len(list)
	}
	if deep == 0 || stopped == 0 {
		t.Errorf("%d frames were marked and %d were left in queues, want some", deep, stopped)
	}
}

// TestKeep: what has keys goes behind what waits, in their order, over several pieces.
func TestKeep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	q, spare := Queue{}, (*frames.Piece)(nil)
	w := Egress{Held: make([]int64, 8), Spare: &spare}
	var keys []uint64
	bytes := int64(0)
	for i := range 100 {
		w.Arrived = append(w.Arrived, random(r, int64(i)))
		w.From = append(w.From, uint16(i%4))
		keys = append(keys, arrivals.Key(int64(i), 99-i))
		bytes += int64(w.Arrived[i].Size)
	}
	w.Keep(&q, keys)
	if q.Bytes != bytes || w.Bytes != -bytes {
		t.Errorf("%d bytes wait and %d fewer were sent, want %d", q.Bytes, -w.Bytes, bytes)
	}
	for i := 99; i >= 0; i-- {
		want := w.Arrived[i]
		want.Tag = uint32(i % 4)
		if got := *q.Front(); got != want {
			t.Fatalf("frame %d is %v, want %v", i, got, want)
		}
		q.Pop(&spare)
	}
	if !q.Empty() {
		t.Error("more waits than was kept")
	}
}
