package pack

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/simccl/simccl/trace"
)

// random is a batch of n events with times below span, on few tracks, of which some may
// share a thread.
func random(r *rand.Rand, n int, span int64, single bool) *Batch {
	b := &Batch{Order: Order{Rank: []int32{6, 2, 0, 5, 1, 4, 3}}}
	if single {
		b.Order.Rank = []int32{0, 2, 0, 1, 1, 2, 0}
	}
	for i := range n {
		off := len(b.Data)
		b.Data = fmt.Appendf(b.Data, "event %d", i)
		b.Add(Key{TS: r.Int64N(span), Dur: r.Int64N(3)}, trace.TrackID(r.IntN(7)), off)
	}
	return b
}

// inOrder are the events of a batch as a stable sort by comparison has them.
func inOrder(b *Batch) (out []string) {
	recs := slices.Clone(b.Recs)
	slices.SortStableFunc(recs, func(x, y Record) int {
		return b.Order.compare(x.Key, y.Key, x.Track, y.Track)
	})
	for i := range recs {
		out = append(out, string(b.Bytes(&recs[i])))
	}
	return out
}

// Batches are sorted as by a stable sort: of few and many times, of times near and as
// far from each other as can be, and again with the memory of others.
func TestSortIsStable(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var memory Sorter
	for _, n := range []int{0, 1, 2, 15, 16, 17, 300, 5000} {
		for _, span := range []int64{1, 2, 40, 5000, 1 << 33, math.MaxInt64} {
			for _, single := range []bool{false, true} {
				b := random(r, n, span, single)
				want := inOrder(b)
				memory.Sort(b)
				for i := range want {
					if got := string(b.Bytes(b.At(i))); got != want[i] {
						t.Fatalf("%d events within %d: the %d-th is %s, want %s", n, span, i, got, want[i])
					}
				}
			}
		}
	}
}

// TestResetBatchIsEmpty: a batch that was sorted and emptied has what comes after alone, in its own order.
func TestResetBatchIsEmpty(t *testing.T) {
	var memory Sorter
	b := random(rand.New(rand.NewPCG(1, 1)), 300, 40, false)
	memory.Sort(b)
	if b.Reset(); b.Size() != 0 || len(b.Recs) != 0 {
		t.Errorf("%d bytes, %d records", b.Size(), len(b.Recs))
	}
	for _, times := range [][]int64{{1, 2, 3}, {3, 1, 2}} {
		b.Reset()
		for _, at := range times {
			off := len(b.Data)
			b.Data = fmt.Append(b.Data, at)
			b.Add(Key{TS: at}, 0, off)
		}
		memory.Sort(b)
		for i := range times {
			if got := string(b.Bytes(b.At(i))); got != fmt.Sprint(i+1) {
				t.Errorf("%v: %s at %d", times, got, i)
			}
		}
	}
}

// trickle gives few bytes at a time.
type trickle struct{ io.Reader }

func (r trickle) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), 7)]) }

// Batches that were spilled and merged are one batch sorted as a whole, also with an
// event larger than the buffer.
func TestMergeIsOneSort(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	var memory Sorter
	whole := &Batch{}
	var runs []*Run
	for k := range 5 {
		b := random(r, 400, 90, false)
		off := len(b.Data)
		b.Data = append(b.Data, bytes.Repeat([]byte{byte(k)}, 2*RunBuffer)...)
		b.Add(Key{TS: 45}, 3, off)
		whole.Order = b.Order
		for i := range b.Recs {
			at := len(whole.Data)
			whole.Data = append(whole.Data, b.Bytes(&b.Recs[i])...)
			whole.Add(b.Recs[i].Key, trace.TrackID(b.Recs[i].Track), at)
		}
		memory.Sort(b)
		var spool bytes.Buffer
		if size, err := memory.Spill(b, &spool); err != nil || size != int64(spool.Len()) {
			t.Fatalf("%d bytes of %d, %v", size, spool.Len(), err)
		}
		runs = append(runs, &Run{In: trickle{&spool}})
	}
	want := inOrder(whole)
	var got []string
	if err := Merge(&whole.Order, runs, func(_ *Record, event []byte) error {
		got = append(got, string(event))
		return nil
	}); err != nil || !slices.Equal(got, want) {
		t.Errorf("%d events of %d in another order, %v", len(got), len(want), err)
	}
}

// A spool that ends within an event is an error.
func TestMergeOfACutSpool(t *testing.T) {
	b := random(rand.New(rand.NewPCG(3, 3)), 10, 5, false)
	var memory Sorter
	memory.Sort(b)
	var spool bytes.Buffer
	if _, err := memory.Spill(b, &spool); err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, HeadSize, spool.Len() - HeadSize - 1} {
		run := &Run{In: bytes.NewReader(spool.Bytes()[:spool.Len()-cut])}
		if err := Merge(&b.Order, []*Run{run}, func(*Record, []byte) error { return nil }); err == nil {
			t.Errorf("%d bytes less and no error", cut)
		}
	}
}
